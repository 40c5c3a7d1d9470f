//! Reads a rules file. Every mistake is named with its line; a key that is not known is a mistake.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{Change, ChangePart, Filter};
use mcp_proxy_wire::headers::HeaderEdits;
use mcp_proxy_wire::{Direction, Message, flatten, json_string};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::rules_file::read_file;
use super::{MOST_RULES, NamePatterns, Rule, RuleAction, RuleName, RulesError};

/// A file is read at once.
pub(super) const LARGEST: usize = 4 << 20;
/// The same for a file that an `answer-file` names.
const LARGEST_ANSWER: u64 = 16 << 20;
/// Clients give up after a minute; who wants to see what they do then still can.
const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// The keys that say what a rule does.
const ACTIONS: [&str; 9] = [
    "change",
    "set-header",
    "remove-header",
    "delay",
    "answer",
    "answer-file",
    "error",
    "drop",
    "redirect",
];
/// The others.
const HEADS: [&str; 7] = [
    "name",
    "direction",
    "method",
    "tool",
    "server",
    "filter",
    "part",
];

pub(super) fn parse(text: &str, folder: &Path) -> Result<Vec<Rule>, RulesError> {
    let newlines = text.bytes().enumerate();
    let newlines = newlines.filter(|(_, byte)| *byte == b'\n');
    let file = RulesParser {
        newlines: newlines.map(|(place, _)| place).collect(),
        folder,
    };
    if text.len() > LARGEST {
        return Err(file.wrong(
            0..0,
            format!("the file is larger than {} MiB", LARGEST >> 20),
        ));
    }
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        file.wrong(span, error.message().to_owned())
    })?;
    let mut rules = Vec::new();
    for (key, value) in document.get_ref() {
        let tables = match value.get_ref() {
            DeValue::Array(tables) if key.get_ref() == "rule" => tables,
            _ => {
                let why = format!(
                    "`{}` is not known here: a rule begins with [[rule]]",
                    key.get_ref()
                );
                return Err(file.wrong(key.span(), why));
            }
        };
        for table in tables.iter() {
            if rules.len() == MOST_RULES {
                return Err(file.wrong(
                    table.span(),
                    format!("there are more than {MOST_RULES} rules"),
                ));
            }
            rules.push(file.rule(rules.len() + 1, table)?);
        }
    }
    Ok(rules)
}

struct RulesParser<'a> {
    newlines: Vec<usize>,
    folder: &'a Path,
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl RulesParser<'_> {
    fn rule(&self, number: usize, table: &TomlValue<'_>) -> Result<Rule, RulesError> {
        let mut name = RuleName { number, name: None };
        let line = self.line(&table.span());
        let DeValue::Table(members) = table.get_ref() else {
            return Err(self.wrong(table.span(), "a rule begins with [[rule]]".to_owned()));
        };
        if let Some(value) = get(members, "name") {
            name.name = Some(self.string(value).map_err(|error| error.for_rule(&name))?);
        }
        let rule = self
            .head(name.clone(), line, members)
            .map_err(|error| error.for_rule(&name))?;
        Ok(rule)
    }

    fn head(&self, name: RuleName, line: usize, members: &DeTable<'_>) -> Result<Rule, RulesError> {
        for (key, _) in members {
            let known = HEADS
                .iter()
                .chain(&ACTIONS)
                .any(|known| known == key.get_ref());
            if !known {
                let why = format!(
                    "`{}` is not known: {} or {}",
                    key.get_ref(),
                    HEADS.join(", "),
                    ACTIONS.join(", ")
                );
                return Err(self.wrong(key.span(), why));
            }
        }
        let mut actions = members
            .iter()
            .filter(|(key, _)| ACTIONS.contains(&&**key.get_ref()));
        let (key, value) = actions.next().ok_or_else(|| RulesError {
            rule: None,
            line,
            why: format!("it does nothing: give it one of {}", ACTIONS.join(", ")),
        })?;
        if let Some((second, _)) = actions.next() {
            let why = format!(
                "it has `{}` and `{}`: one rule does one thing",
                key.get_ref(),
                second.get_ref()
            );
            return Err(self.wrong(second.span(), why));
        }
        let part = get(members, "part")
            .map(|value| self.part(value))
            .transpose()?;
        if let (Some(value), false) = (get(members, "part"), key.get_ref() == "change") {
            return Err(self.wrong(value.span(), "`part` goes with `change` only".to_owned()));
        }
        let names = |key: &str| {
            let names = get(members, key).map(|value| self.names(key, value));
            names.transpose()
        };
        Ok(Rule {
            name,
            line,
            direction: get(members, "direction")
                .map(|value| self.direction(value))
                .transpose()?,
            method: names("method")?,
            tool: names("tool")?,
            server: names("server")?,
            filter: match get(members, "filter") {
                Some(value) => Filter::parse(&self.string(value)?)
                    .map_err(|error| self.wrong(value.span(), format!("filter {error}")))?,
                None => Filter::default(),
            },
            action: self.action(key.get_ref(), value, part)?,
            too_slow: Arc::default(),
        })
    }

    fn action(
        &self,
        key: &str,
        value: &TomlValue<'_>,
        part: Option<ChangePart>,
    ) -> Result<RuleAction, RulesError> {
        match key {
            "change" => Change::parse(&self.string(value)?)
                .map(|change| RuleAction::Change(change, part))
                .map_err(|error| self.wrong(value.span(), format!("change {error}"))),
            "set-header" => self.set_header(value),
            "remove-header" => self.remove_header(value),
            "delay" => self.delay(value).map(RuleAction::Delay),
            "answer" => {
                let result = json(value).map_err(|why| self.wrong(value.span(), why))?;
                Ok(RuleAction::Answer(result.into()))
            }
            "answer-file" => self.answer_file(value),
            "error" => self.error(value),
            "drop" => match value.get_ref() {
                DeValue::Boolean(true) => Ok(RuleAction::Drop),
                _ => Err(self.wrong(value.span(), "`drop` must be true, or left out".to_owned())),
            },
            _ => match self.string(value)? {
                server if server.trim().is_empty() => {
                    Err(self.wrong(value.span(), "`redirect` names a server".to_owned()))
                }
                server => match out_of_reach(&server) {
                    Some(why) => {
                        Err(self.wrong(value.span(), format!("redirect: `{server}`: {why}")))
                    }
                    None => Ok(RuleAction::Redirect(server)),
                },
            },
        }
    }

    /// `{ X-Trace = "1" }`; a list sets several lines of one header.
    fn set_header(&self, value: &TomlValue<'_>) -> Result<RuleAction, RulesError> {
        let wrong = |span, why: String| self.wrong(span, format!("set-header: {why}"));
        let members = match value.get_ref() {
            DeValue::Table(members) if !members.is_empty() => members,
            _ => {
                let why = "write names and values: { X-Trace = \"1\" }".to_owned();
                return Err(wrong(value.span(), why));
            }
        };
        let mut edits = HeaderEdits::default();
        for (name, value) in members {
            let values = self.strings(value)?;
            edits
                .set(name.get_ref(), values.iter().map(String::as_str))
                .map_err(|error| wrong(name.span(), error.to_string()))?;
        }
        Ok(RuleAction::Headers(edits))
    }

    /// A name, or a list of names.
    fn remove_header(&self, value: &TomlValue<'_>) -> Result<RuleAction, RulesError> {
        let mut edits = HeaderEdits::default();
        for name in self.strings(value)? {
            edits
                .remove(&name)
                .map_err(|error| self.wrong(value.span(), format!("remove-header: {error}")))?;
        }
        Ok(RuleAction::Headers(edits))
    }

    fn error(&self, value: &TomlValue<'_>) -> Result<RuleAction, RulesError> {
        let wrong = || {
            let why = "`error` has a code and a message: { code = -32000, message = \"not now\" }, and may have data";
            self.wrong(value.span(), why.to_owned())
        };
        let DeValue::Table(members) = value.get_ref() else {
            return Err(wrong());
        };
        let allowed = |key: &str| matches!(key, "code" | "message" | "data");
        if !members.keys().all(|key| allowed(key.get_ref())) {
            return Err(wrong());
        }
        let code = get(members, "code").and_then(|code| whole(code.get_ref()));
        let message = get(members, "message").and_then(|text| text.get_ref().as_str());
        let data = get(members, "data").map(json).transpose();
        match (code, message, data) {
            (Some(code), Some(message), Ok(data)) => Ok(RuleAction::Error {
                code,
                message: message.to_owned(),
                data,
            }),
            _ => Err(wrong()),
        }
    }

    fn answer_file(&self, value: &TomlValue<'_>) -> Result<RuleAction, RulesError> {
        let name = self.string(value)?;
        let path = self.folder.join(&name);
        let cannot = |why: String| self.wrong(value.span(), format!("answer-file {name}: {why}"));
        let bytes = read_file(&path, LARGEST_ANSWER).map_err(cannot)?;
        // On one line, because an answer must be one on stdio.
        let message = Message::parse(bytes.trim_ascii().to_vec());
        let line = flatten(&message).unwrap_or(message);
        match (line.is_json(), String::from_utf8(line.into_raw().into())) {
            (true, Ok(result)) => Ok(RuleAction::Answer(result.into())),
            _ => Err(cannot("it is not JSON".to_owned())),
        }
    }

    /// `250ms`, `2s`, `1m`.
    fn delay(&self, value: &TomlValue<'_>) -> Result<Duration, RulesError> {
        let text = self.string(value)?;
        let digits = text
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = match unit {
            "ms" => Some(1),
            "s" => Some(1000),
            "m" => Some(60_000),
            _ => None,
        };
        let number = number.parse::<u64>().ok();
        let delay = number
            .zip(scale)
            .and_then(|(number, scale)| number.checked_mul(scale));
        match delay.map(Duration::from_millis) {
            Some(delay) if delay <= LONGEST_DELAY => Ok(delay),
            Some(_) => Err(self.wrong(value.span(), "`delay` is 10m at most".to_owned())),
            None => Err(self.wrong(
                value.span(),
                format!("{text:?} is not a delay: write 250ms, 2s or 1m"),
            )),
        }
    }

    fn direction(&self, value: &TomlValue<'_>) -> Result<Direction, RulesError> {
        self.string(value)?
            .parse()
            .map_err(|error| self.wrong(value.span(), format!("direction: {error}")))
    }

    fn part(&self, value: &TomlValue<'_>) -> Result<ChangePart, RulesError> {
        match self.string(value)?.as_str() {
            "params" => Ok(ChangePart::Params),
            "result" => Ok(ChangePart::Result),
            "error" => Ok(ChangePart::Error),
            other => Err(self.wrong(
                value.span(),
                format!("part: {other:?} is not one of params, result, error"),
            )),
        }
    }

    /// A name, or a list of names.
    fn names(&self, key: &str, value: &TomlValue<'_>) -> Result<NamePatterns, RulesError> {
        let names = self.strings(value)?;
        if names.iter().any(|name: &String| name.is_empty()) {
            let why = format!(
                "{key}: an empty name matches nothing; for any write \"*\", or leave {key} out"
            );
            return Err(self.wrong(value.span(), why));
        }
        Ok(NamePatterns::new(names))
    }

    /// A string, or a list of strings that is not empty.
    fn strings(&self, value: &TomlValue<'_>) -> Result<Vec<String>, RulesError> {
        let strings = match value.get_ref() {
            DeValue::Array(strings) => strings
                .iter()
                .map(|string| self.string(string))
                .collect::<Result<_, _>>()?,
            _ => vec![self.string(value)?],
        };
        match strings.is_empty() {
            true => Err(self.wrong(value.span(), "an empty list names nothing".to_owned())),
            false => Ok(strings),
        }
    }

    fn string(&self, value: &TomlValue<'_>) -> Result<String, RulesError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            other => Err(self.wrong(
                value.span(),
                format!("expected a string, not {}", other.type_str()),
            )),
        }
    }

    fn wrong(&self, span: Range<usize>, why: String) -> RulesError {
        RulesError {
            rule: None,
            line: self.line(&span),
            why,
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.newlines.partition_point(|place| *place < span.start) + 1
    }
}

impl RulesError {
    fn for_rule(self, rule: &RuleName) -> RulesError {
        RulesError {
            rule: Some(rule.clone()),
            ..self
        }
    }
}

fn get<'t, 'i>(members: &'t DeTable<'i>, name: &str) -> Option<&'t TomlValue<'i>> {
    members
        .iter()
        .find(|(key, _)| key.get_ref() == name)
        .map(|(_, value)| value)
}

fn whole(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A value of TOML as JSON, in one line.
fn json(value: &TomlValue<'_>) -> Result<String, String> {
    Ok(match value.get_ref() {
        DeValue::String(text) => json_string(text),
        DeValue::Integer(_) => whole(value.get_ref())
            .ok_or("the number is too large")?
            .to_string(),
        DeValue::Float(number) => {
            let number: f64 = number
                .as_str()
                .parse()
                .map_err(|_| "the number cannot be read")?;
            if !number.is_finite() {
                return Err("JSON has no nan and no inf".to_owned());
            }
            format!("{number:?}")
        }
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(time) => json_string(&time.to_string()),
        DeValue::Array(elements) => {
            let elements: Result<Vec<_>, _> = elements.iter().map(json).collect();
            format!("[{}]", elements?.join(","))
        }
        DeValue::Table(members) => {
            let member = |(key, value): (&Spanned<_>, &TomlValue<'_>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                Ok::<_, String>(format!("{}:{}", json_string(key), json(value)?))
            };
            let members: Result<Vec<_>, _> = members.iter().map(member).collect();
            format!("{{{}}}", members?.join(","))
        }
    })
}

/// Why a server that is a URL cannot be reached, as far as its text tells.
fn out_of_reach(server: &str) -> Option<&'static str> {
    let (scheme, _) = server.split_once("://")?;
    let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    if !scheme.chars().all(is_scheme) {
        // A command with a URL in it.
        return None;
    }
    let spoken = ["http", "https"];
    if !spoken.iter().any(|word| scheme.eq_ignore_ascii_case(word)) {
        return Some("only http:// and https:// servers can be reached");
    }
    let url = server.parse::<http::Uri>().ok();
    let host = url.as_ref().and_then(http::Uri::host);
    host.is_none_or(str::is_empty)
        .then_some("this is not a URL with a host")
}
