//! A value of a config file that knows its place: reads it as a type, or says what is wrong with it and where.

use std::collections::HashSet;
use std::time::Duration;

use super::document::{DocumentContent as Content, DocumentMember, DocumentValue, FileText};
use super::duration::{self, LONGEST};
use super::error::{ConfigError, ConfigFault, TextPosition};
use super::keys::closest;
use super::size::parse_size;
use super::variables::{Environment, credentials, expand, names_a_credential};
use super::warning::UnknownConfigKey;

/// A value with its place.
#[derive(Clone)]
pub(super) struct Node<'a> {
    file: FileText<'a>,
    value: &'a DocumentValue,
    /// Where its key starts, or the value itself if it has none.
    key_start: usize,
    path: String,
}

/// The members of an object whose keys are known.
pub(super) struct Fields<'a> {
    known: &'static [&'static str],
    members: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Node<'a> {
    /// The outermost value of a file.
    pub(super) fn root(file: FileText<'a>, value: &'a DocumentValue) -> Node<'a> {
        Node {
            file,
            key_start: value.start,
            value,
            path: String::new(),
        }
    }

    /// A value of the file that was put into another form: `path` leads to the table that it is in.
    pub(super) fn of_member(
        file: FileText<'a>,
        path: &str,
        member: &'a DocumentMember,
    ) -> Node<'a> {
        Node {
            file,
            value: &member.value,
            key_start: member.key_start,
            path: join(path, &member.written),
        }
    }

    /// The first member with this key, unless it is null. Nothing for what is not an object.
    pub(super) fn child(&self, key: &str) -> Option<Node<'a>> {
        let mut members = self.value.members()?.iter();
        let member = members.find(|member| member.key == key)?;
        let (_, node) = self.member(member);
        (!node.is_null()).then_some(node)
    }

    /// The value as it stands in the file.
    pub(super) fn value(&self) -> &'a DocumentValue {
        self.value
    }

    /// The keys that lead to it.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Where its key stands.
    pub(super) fn position(&self) -> TextPosition {
        TextPosition::of(self.file.text, self.key_start)
    }

    /// An error about the value.
    pub(super) fn error(&self, fault: ConfigFault) -> ConfigError {
        self.file.error(self.value.start, self.path.clone(), fault)
    }

    /// An error about the key.
    pub(super) fn key_error(&self, fault: ConfigFault) -> ConfigError {
        self.file.error(self.key_start, self.path.clone(), fault)
    }

    /// An error that says what is wrong with the value.
    pub(super) fn bad(&self, why: &'static str) -> ConfigError {
        self.error(ConfigFault::BadValue(why))
    }

    /// An error that says what the key takes.
    pub(super) fn wrong_type(&self, expected: &'static str) -> ConfigError {
        self.error(ConfigFault::WrongType {
            expected,
            found: type_name(self.value),
        })
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.value.content, Content::Null)
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value.content, Content::List(_))
    }

    /// A string, with its variables filled in.
    pub(super) fn text(&self) -> Result<String, ConfigError> {
        match &self.value.content {
            Content::Text(text) => self.expand(text),
            _ => Err(self.wrong_type("a string")),
        }
    }

    /// A string that is not empty.
    pub(super) fn nonempty_text(&self) -> Result<String, ConfigError> {
        match self.text()? {
            text if text.is_empty() => Err(self.bad("must not be empty")),
            text => Ok(text),
        }
    }

    /// A string, or a number or boolean as the text it was written as. People write `"PORT": 8080`.
    pub(super) fn scalar_text(&self) -> Result<String, ConfigError> {
        match &self.value.content {
            Content::Text(text) => self.expand(text),
            Content::Variable { before, name, .. } => match self.variable(name) {
                Some(value) => Ok(format!("{before}{value}")),
                None => Err(self.error(ConfigFault::MissingNamedVariable(name.clone()))),
            },
            Content::Number(number) => Ok(number.clone()),
            Content::Boolean(boolean) => Ok(boolean.to_string()),
            _ => Err(self.wrong_type("a string")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, ConfigError> {
        match &self.value.content {
            Content::Boolean(boolean) => Ok(*boolean),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// A whole number of a type whose range is the range that makes sense.
    pub(super) fn integer<T: std::str::FromStr>(
        &self,
        expected: &'static str,
    ) -> Result<T, ConfigError> {
        match &self.value.content {
            Content::Number(number) => {
                let read = number.parse();
                read.map_err(|_| self.error(ConfigFault::BadValue(expected)))
            }
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// `"30s"`, `"1m30s"`, or a number of seconds.
    pub(super) fn duration(&self) -> Result<Duration, ConfigError> {
        let read = match &self.value.content {
            Content::Text(text) => duration::parse(&self.expand(text)?),
            Content::Number(number) => duration::parse_seconds(number),
            _ => return Err(self.wrong_type("a duration such as \"30s\"")),
        };
        let read = read.ok_or_else(|| self.bad("expected a duration such as \"30s\" or \"5m\""))?;
        match read <= LONGEST {
            true => Ok(read),
            false => Err(self.bad("longer than a year")),
        }
    }

    /// A number of bytes: `1048576` or `"500M"`, in powers of 1024.
    pub(super) fn size(&self) -> Result<u64, ConfigError> {
        let read = match &self.value.content {
            Content::Number(number) => number.parse().ok(),
            Content::Text(text) => parse_size(&self.expand(text)?),
            _ => return Err(self.wrong_type("a size such as 65536 or \"64K\"")),
        };
        read.ok_or_else(|| self.bad("expected a size such as 65536 or \"64K\""))
    }

    /// A duration that is not zero.
    pub(super) fn positive_duration(&self) -> Result<Duration, ConfigError> {
        match self.duration()? {
            Duration::ZERO => Err(self.bad("must be longer than zero")),
            duration => Ok(duration),
        }
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, ConfigError> {
        self.choice_of(&self.text()?, words)
    }

    /// One of some words, which is a part of this value.
    pub(super) fn choice_of<T: Copy>(
        &self,
        word: &str,
        words: &[(&'static str, T)],
    ) -> Result<T, ConfigError> {
        if let Some((_, meaning)) = words.iter().find(|(known, _)| *known == word) {
            return Ok(*meaning);
        }
        let expected: Vec<&'static str> = words.iter().map(|(known, _)| *known).collect();
        Err(self.error(ConfigFault::UnknownWord {
            suggestion: closest(word, &expected),
            expected,
        }))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, ConfigError> {
        let Content::List(list) = &self.value.content else {
            return Err(self.wrong_type("a list"));
        };
        let item = |(index, value): (usize, &'a DocumentValue)| Node {
            file: self.file,
            key_start: value.start,
            value,
            path: format!("{}[{index}]", self.path),
        };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// A list of strings.
    pub(super) fn texts(&self) -> Result<Vec<String>, ConfigError> {
        self.items()?.iter().map(Node::nonempty_text).collect()
    }

    /// The members of an object, in their order. A key that appears twice is an error.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>, ConfigError> {
        let members = self.all_members()?;
        refuse_duplicates(&members)?;
        Ok(members)
    }

    fn all_members(&self) -> Result<Vec<(&'a str, Node<'a>)>, ConfigError> {
        let Content::Table(members) = &self.value.content else {
            return Err(self.wrong_type("an object"));
        };
        let members = members.iter();
        Ok(members.map(|member| self.member(member)).collect())
    }

    fn member(&self, member: &'a DocumentMember) -> (&'a str, Node<'a>) {
        let node = Node {
            file: self.file,
            value: &member.value,
            key_start: member.key_start,
            path: self.member_path(member),
        };
        (&member.key, node)
    }

    fn member_path(&self, member: &DocumentMember) -> String {
        let Content::Variable { key, .. } = &member.value.content else {
            return join(&self.path, &member.written);
        };
        let entry = self.path.rsplit_once('.').map_or("", |(entry, _)| entry);
        join(&join(entry, key), &member.written)
    }

    /// The members of an object that is ours: an unknown key is an error.
    pub(super) fn fields(&self, known: &'static [&'static str]) -> Result<Fields<'a>, ConfigError> {
        let members = self.members()?;
        for (name, node) in &members {
            if !known.contains(name) {
                let suggestion = closest(name, known);
                return Err(node.key_error(ConfigFault::UnknownKey { suggestion }));
            }
        }
        Ok(Fields { known, members })
    }

    /// The members of an object that other programs share: unknown keys are added to a list, and null means not there.
    pub(super) fn shared_fields(
        &self,
        known: &'static [&'static str],
        unknown: &mut Vec<UnknownConfigKey>,
    ) -> Result<Fields<'a>, ConfigError> {
        let members = self.all_members()?.into_iter();
        let (members, others): (Vec<_>, Vec<_>) =
            members.partition(|(name, _)| known.contains(name));
        refuse_duplicates(&members)?;
        unknown.extend(others.into_iter().map(|(name, node)| UnknownConfigKey {
            path: node.path,
            suggestion: closest(name, known),
        }));
        let members = members.into_iter().filter(|(_, node)| !node.is_null());
        Ok(Fields {
            known,
            members: members.collect(),
        })
    }

    /// Any JSON, with the variables in its strings filled in.
    pub(super) fn json(&self) -> Result<serde_json::Value, ConfigError> {
        Ok(match &self.value.content {
            Content::Text(_) | Content::Variable { .. } => self.scalar_text()?.into(),
            Content::Number(number) => serde_json::Value::Number(
                serde_json::from_str(number).map_err(|_| self.bad("not a number"))?,
            ),
            Content::Boolean(boolean) => (*boolean).into(),
            Content::Null => serde_json::Value::Null,
            Content::List(_) => {
                let items = self.items()?;
                items.iter().map(Node::json).collect::<Result<_, _>>()?
            }
            Content::Table(_) => {
                let read = |(name, node): (&str, Node<'_>)| Ok((name.to_owned(), node.json()?));
                let members = self.members()?.into_iter().map(read);
                serde_json::Value::Object(members.collect::<Result<_, _>>()?)
            }
        })
    }

    /// The values of all variables in it whose names sound like credentials.
    pub(super) fn credentials(&self) -> Vec<String> {
        fn collect(value: &DocumentValue, environment: Environment<'_>, found: &mut Vec<String>) {
            match &value.content {
                Content::Text(text) => found.extend(credentials(text, environment)),
                Content::Variable { name, .. } if names_a_credential(name) => {
                    found.extend(environment(name));
                }
                Content::List(list) => {
                    for item in list {
                        collect(item, environment, found);
                    }
                }
                Content::Table(members) => {
                    for member in members {
                        collect(&member.value, environment, found);
                    }
                }
                Content::Variable { .. }
                | Content::Number(_)
                | Content::Boolean(_)
                | Content::Null => {}
            }
        }
        let mut found = Vec::new();
        collect(self.value, self.file.environment, &mut found);
        found
    }

    /// The value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.file.environment)(name)
    }

    fn expand(&self, text: &str) -> Result<String, ConfigError> {
        expand(text, self.file.environment).map_err(|fault| self.error(fault))
    }
}

impl<'a> Fields<'a> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'a>> {
        debug_assert!(
            self.known.contains(&key),
            "`{key}` is missing in the list of keys"
        );
        let found = self.members.iter().find(|(name, _)| *name == key);
        found.map(|(_, node)| node)
    }

    /// Forgets the member that a path leads to or into.
    pub(super) fn remove_around(&mut self, path: &str) {
        self.members.retain(|(_, node)| !contains(&node.path, path));
    }

    /// The value of a key, read.
    pub(super) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Node<'a>) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(key).map(read).transpose()
    }

    /// The value of a key that has a second name, read. Only one of the two may be there.
    pub(super) fn read_either<T>(
        &self,
        key: &str,
        alias: &str,
        read: impl FnOnce(&Node<'a>) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        match (self.get(key), self.get(alias)) {
            (Some(_), Some(alias)) => {
                Err(alias.bad("the same option is also set under its other name"))
            }
            (Some(node), None) | (None, Some(node)) => read(node).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn contains(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn refuse_duplicates(members: &[(&str, Node<'_>)]) -> Result<(), ConfigError> {
    let mut seen = HashSet::new();
    match members.iter().find(|(name, _)| !seen.insert(*name)) {
        Some((_, node)) => Err(node.key_error(ConfigFault::Duplicate)),
        None => Ok(()),
    }
}

fn join(path: &str, name: &str) -> String {
    if name.is_empty() && !path.is_empty() {
        return path.to_owned();
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '$');
    let name = match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    };
    match path {
        "" => name,
        path => format!("{path}.{name}"),
    }
}

fn type_name(value: &DocumentValue) -> &'static str {
    match &value.content {
        Content::Text(_) | Content::Variable { .. } => "a string",
        Content::Number(_) => "a number",
        Content::Boolean(_) => "a boolean",
        Content::Table(_) => "an object",
        Content::List(_) => "a list",
        Content::Null => "null",
    }
}
