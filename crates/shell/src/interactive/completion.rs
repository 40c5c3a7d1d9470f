//! What Tab offers: commands, names, arguments and their values, each with its documentation.

use std::borrow::Cow;

use mcp_proxy_client::{CapabilityType, ToolWord};
use mcp_proxy_wire::terminal_text::sanitize;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use serde_json::Value;

use super::line::{commands, verbs};
use crate::catalog::{CatalogItem, CatalogPart};
use crate::details::{NAME_FLAG, name_word, parameter_rows, quoted};
use crate::schema::{JsonType, allowed_types, choices, property};
use crate::text::{cut, first_sentence};

/// What a line of documentation takes at most, if the terminal is not narrower.
const DOCUMENTATION: usize = 78;

/// The names that exist now.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNames {
    pub(super) connections: Vec<String>,
    /// What the server in use offers.
    pub(super) parts: Vec<CatalogPart>,
}

/// The line editor's helper.
#[derive(Default)]
pub(super) struct ShellHelper {
    known: KnownNames,
    /// The width of the terminal, if it is known.
    width: Option<usize>,
}

/// A hint that is shown but not taken over.
pub(super) struct ParameterHint(String);

/// Something that can be typed, and what it is.
struct Candidate {
    text: String,
    about: String,
}

impl Candidate {
    fn new(text: impl Into<String>, about: impl Into<String>) -> Candidate {
        Candidate {
            text: text.into(),
            about: about.into(),
        }
    }
}

impl ShellHelper {
    pub(super) fn set(&mut self, known: KnownNames, width: Option<usize>) {
        (self.known, self.width) = (known, width);
    }

    fn items(&self, kind: CapabilityType) -> impl Iterator<Item = &CatalogItem> {
        let parts = self
            .known
            .parts
            .iter()
            .filter(move |part| part.kind == kind);
        parts.flat_map(|part| &part.items)
    }

    fn find(&self, kind: CapabilityType, name: &str) -> Option<&CatalogItem> {
        let name = name.strip_prefix(NAME_FLAG).unwrap_or(name);
        self.items(kind).find(|item| item.name == name)
    }

    fn names(&self, kind: CapabilityType) -> Vec<Candidate> {
        let candidate = |item: &CatalogItem| {
            let word = match kind {
                CapabilityType::Resource => quoted(&item.name),
                CapabilityType::Tool | CapabilityType::Prompt => name_word(&item.name),
            };
            Candidate::new(word, first_sentence(item.about()))
        };
        self.items(kind).map(candidate).collect()
    }

    /// Everything that could stand where `word` is, after `before`.
    fn candidates(&self, before: &[&str], word: &str) -> Vec<Candidate> {
        let of_verbs = || {
            verbs()
                .into_iter()
                .map(|(name, about)| Candidate::new(name, about))
        };
        let connections = || {
            let names = self.known.connections.iter();
            names.map(|name| Candidate::new(name, "")).collect()
        };
        match before {
            [] => of_verbs().collect(),
            ["help"] => of_verbs().collect(),
            ["use" | "disconnect"] => connections(),
            ["call"] => self.names(CapabilityType::Tool),
            ["read"] => self.names(CapabilityType::Resource),
            ["prompt"] => self.names(CapabilityType::Prompt),
            ["info"] => CapabilityType::all()
                .iter()
                .flat_map(|kind| self.names(*kind))
                .collect(),
            ["call", name, given @ ..] => match self.find(CapabilityType::Tool, name) {
                Some(tool) => tool_arguments(tool, given, word),
                None => Vec::new(),
            },
            ["prompt", name, given @ ..] => match self.find(CapabilityType::Prompt, name) {
                Some(prompt) => prompt_arguments(prompt, given),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

fn is_given(given: &[&str], name: &str) -> bool {
    given.iter().any(|word| {
        let rest = word.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('=') || rest.starts_with(":="))
    })
}

fn tool_arguments(tool: &CatalogItem, given: &[&str], word: &str) -> Vec<Candidate> {
    let schema = tool.input_schema();
    if let Some((name, _)) = word.split_once('=') {
        return values(&schema, name);
    }
    parameter_rows(&schema)
        .into_iter()
        .filter(|row| {
            let own = property(&schema, &schema, &row.name);
            let is_list =
                own.is_some_and(|own| allowed_types(&schema, own).contains(&JsonType::Array));
            is_list || !is_given(given, &row.name)
        })
        .map(|row| {
            let use_ = if row.use_.is_empty() {
                String::new()
            } else {
                format!(", {}", row.use_)
            };
            let about = format!("{}{use_}  {}", row.kind, first_sentence(&row.about));
            Candidate::new(format!("{}=", row.name), about)
        })
        .collect()
}

/// The values that an argument can have, if the schema lists them.
fn values(schema: &Value, name: &str) -> Vec<Candidate> {
    let Some(own) = property(schema, schema, name) else {
        return Vec::new();
    };
    let items = own.get("items").unwrap_or(own);
    let mut texts: Vec<String> = choices(schema, items)
        .into_iter()
        .map(|value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        })
        .collect();
    if texts.is_empty() && allowed_types(schema, own).contains(&JsonType::Boolean) {
        texts = vec!["true".to_owned(), "false".to_owned()];
    }
    let texts = texts.into_iter();
    texts
        .map(|text| Candidate::new(quoted(&format!("{name}={text}")), ""))
        .collect()
}

fn prompt_arguments(prompt: &CatalogItem, given: &[&str]) -> Vec<Candidate> {
    let arguments = prompt.prompt_arguments().into_iter();
    arguments
        .filter(|(name, ..)| !is_given(given, name))
        .map(|(name, about, is_required)| {
            let use_ = if is_required { "required  " } else { "" };
            Candidate::new(
                format!("{name}="),
                format!("{use_}{}", first_sentence(about)),
            )
        })
        .collect()
}

/// The words before the one at the cursor, and that word with its place.
fn split(line: &str) -> (Vec<&str>, usize, &str) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| {
        at + line[at..].chars().next().map_or(1, char::len_utf8)
    });
    (
        line[..start].split_whitespace().collect(),
        start,
        &line[start..],
    )
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (before, start, word) = split(&line[..position]);
        let mut found = self.candidates(&before, word);
        // What would act on the terminal must not be put into the line.
        found.retain(|candidate| {
            candidate.text.starts_with(word) && sanitize(&candidate.text) == candidate.text
        });
        let widest = found
            .iter()
            .map(|candidate| candidate.text.chars().count())
            .max();
        let width = widest.unwrap_or_default().min(40);
        let line = DOCUMENTATION.min(self.width.unwrap_or(DOCUMENTATION).saturating_sub(2));
        let pairs = found.into_iter().map(|candidate| {
            let shown = match candidate.about.is_empty() {
                true => candidate.text.clone(),
                false => format!("{:<width$}  {}", candidate.text, candidate.about),
            };
            // A name that is complete is followed by something else, an argument by its value.
            let end = if candidate.text.ends_with('=') {
                ""
            } else {
                " "
            };
            Pair {
                display: cut(sanitize(&shown).trim_end(), line),
                replacement: format!("{}{end}", candidate.text),
            }
        });
        Ok((start, pairs.collect()))
    }
}

impl Hint for ParameterHint {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for ShellHelper {
    type Hint = ParameterHint;

    /// The required parameters that are still missing.
    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<ParameterHint> {
        let (before, _, word) = split(line);
        let (["call", name, given @ ..], true, "") =
            (before.as_slice(), position == line.len(), word)
        else {
            return None;
        };
        let schema = self.find(CapabilityType::Tool, name)?.input_schema();
        let rows = parameter_rows(&schema).into_iter();
        let missing: Vec<String> = rows
            .filter(|row| row.use_ == "required" && !is_given(given, &row.name))
            .map(|row| format!("{}=<{}>", row.name, row.kind))
            .collect();
        (!missing.is_empty()).then(|| ParameterHint(sanitize(&missing.join(" "))))
    }
}

impl Highlighter for ShellHelper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

impl Validator for ShellHelper {
    /// A line with an open quote continues on the next: JSON may have several.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match commands(context.input()).1.is_empty() {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Helper for ShellHelper {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn helper() -> ShellHelper {
        let tool = json!({"name": "draw", "description": "Draws a shape. Slowly.", "inputSchema": {
            "type": "object", "required": ["shape"], "properties": {
                "size": {"type": "integer", "default": 3},
                "shape": {"enum": ["circle", "square"], "description": "What to draw."},
                "fill": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}}
        }}});
        let prompt = json!({"name": "greet", "arguments": [{"name": "who", "required": true}]});
        let part = |kind, definition| CatalogPart {
            kind,
            items: vec![CatalogItem::new(kind, definition)],
            lacks_a_server: false,
        };
        let mut helper = ShellHelper::default();
        helper.set(
            KnownNames {
                connections: vec!["one".to_owned()],
                parts: vec![
                    part(CapabilityType::Tool, tool),
                    part(CapabilityType::Prompt, prompt),
                ],
            },
            None,
        );
        helper
    }

    fn completed(line: &str) -> Vec<(String, String)> {
        let history = rustyline::history::DefaultHistory::new();
        let context = Context::new(&history);
        let (start, pairs) = helper().complete(line, line.len(), &context).unwrap();
        let pairs = pairs.into_iter();
        pairs
            .map(|pair| {
                (
                    format!("{}{}", &line[..start], pair.replacement),
                    pair.display,
                )
            })
            .collect()
    }

    fn lines(line: &str) -> Vec<String> {
        completed(line).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn commands_names_arguments_and_values_are_completed() {
        assert_eq!(lines("ca"), ["call "]);
        assert_eq!(lines("call d"), ["call draw "]);
        assert_eq!(lines("info "), ["info draw ", "info greet "]);
        assert_eq!(
            lines("call draw "),
            [
                "call draw shape=",
                "call draw size=",
                "call draw fill=",
                "call draw tags="
            ]
        );
        assert_eq!(
            lines("call draw size=1 tags=a s"),
            ["call draw size=1 tags=a shape="]
        );
        assert_eq!(lines("call draw tags=a t"), ["call draw tags=a tags="]);
        assert_eq!(lines("call draw shape=c"), ["call draw shape=circle "]);
        assert_eq!(
            lines("call draw fill="),
            ["call draw fill=true ", "call draw fill=false "]
        );
        assert_eq!(lines("prompt greet "), ["prompt greet who="]);
        assert_eq!(lines("use "), ["use one "]);
        assert!(lines("call unknown ").is_empty());
    }

    #[test]
    fn what_acts_on_the_terminal_is_not_completed() {
        let tool = |name: &str| {
            let schema =
                json!({"properties": {"a\u{1b}[2J": {}, "b": {"enum": ["\u{9b}2J", "c"]}}});
            CatalogItem::new(
                CapabilityType::Tool,
                json!({"name": name, "inputSchema": schema}),
            )
        };
        let mut helper = ShellHelper::default();
        helper.set(
            KnownNames {
                connections: Vec::new(),
                parts: vec![CatalogPart {
                    kind: CapabilityType::Tool,
                    items: vec![tool("draw"), tool("draw\u{1b}[2J")],
                    lacks_a_server: false,
                }],
            },
            None,
        );
        let history = rustyline::history::DefaultHistory::new();
        for (line, only) in [
            ("call ", "draw "),
            ("call draw ", "b="),
            ("call draw b=", "b=c "),
        ] {
            let context = Context::new(&history);
            let (_, pairs) = helper.complete(line, line.len(), &context).unwrap();
            let texts: Vec<String> = pairs.into_iter().map(|pair| pair.replacement).collect();
            assert_eq!(texts, [only], "{line}");
        }
    }

    #[test]
    fn completions_have_their_documentation() {
        let shown: Vec<String> = completed("call draw ")
            .into_iter()
            .map(|(_, shown)| shown)
            .collect();
        insta::assert_snapshot!("completions", shown.join("\n"));
    }

    #[test]
    fn missing_parameters_are_hinted() {
        let history = rustyline::history::DefaultHistory::new();
        let context = Context::new(&history);
        let hint = |line: &str| helper().hint(line, line.len(), &context).map(|hint| hint.0);
        assert_eq!(hint("call draw ").as_deref(), Some("shape=<string>"));
        assert_eq!(hint("call draw shape=circle "), None);
        assert_eq!(hint("tools "), None);
    }
}
