//! Reads a part of a config file as a type that `serde` knows, with the variables in its strings filled in.

use std::collections::HashSet;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::error::{ConfigError, ConfigFault};
use super::keys::closest;
use super::tree::{Tree, join};
use super::variables::{Environment, expand};

/// A config file while it is read.
#[derive(Clone, Copy)]
pub(super) struct ConfigReader<'a> {
    /// The file's name.
    pub(super) file: &'a str,
    pub(super) environment: Environment<'a>,
}

/// A value that could not be read.
pub(super) struct ReadError {
    pub(super) error: ConfigError,
    /// The key that the mistake is in, among those of the table that was read.
    pub(super) key: Option<String>,
}

impl From<ReadError> for ConfigError {
    fn from(read: ReadError) -> ConfigError {
        read.error
    }
}

impl ConfigReader<'_> {
    /// Reads a value; `base` are the keys that lead to it.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        tree: &Tree,
        base: &str,
    ) -> Result<T, ReadError> {
        let value = ValueReader {
            tree,
            environment: self.environment,
        };
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = tree.written_path(base, error.path());
            let key = error.path().iter().next().and_then(|first| match first {
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                _ => None,
            });
            let fault = error.into_inner();
            let path = match &fault {
                ConfigFault::Duplicate(key) => join(&path, key),
                _ => path,
            };
            let error = self.error(path, fault);
            ReadError { error, key }
        })
    }

    /// An error about a value that makes no sense.
    pub(super) fn bad(&self, key: impl Into<String>, why: &str) -> ConfigError {
        self.error(key, ConfigFault::BadValue(why.to_owned()))
    }

    /// An error at a place in the file.
    pub(super) fn error(&self, key: impl Into<String>, fault: ConfigFault) -> ConfigError {
        ConfigError {
            file: self.file.to_owned(),
            key: key.into(),
            fault,
        }
    }
}

/// A value that is read.
#[derive(Clone, Copy)]
struct ValueReader<'a> {
    tree: &'a Tree,
    environment: Environment<'a>,
}

impl<'a> ValueReader<'a> {
    fn of(self, tree: &'a Tree) -> ValueReader<'a> {
        ValueReader { tree, ..self }
    }

    fn wrong_type<T>(self, expected: &'static str) -> Result<T, ConfigFault> {
        Err(ConfigFault::WrongType {
            expected,
            found: self.tree.type_name(),
        })
    }
}

impl<'de> Deserializer<'de> for ValueReader<'de> {
    type Error = ConfigFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.tree {
            Tree::Null => visitor.visit_unit(),
            Tree::Boolean(boolean) => visitor.visit_bool(*boolean),
            Tree::Number(number) => visit_number(number, visitor),
            Tree::Text(_) => self.deserialize_string(visitor),
            Tree::List(_) => self.deserialize_seq(visitor),
            Tree::Table(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.tree {
            Tree::Boolean(boolean) => visitor.visit_bool(*boolean),
            _ => self.wrong_type("true or false"),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.tree {
            Tree::Number(number) => {
                let whole = number.parse();
                let expected = || ConfigFault::BadValue("expected a whole number".to_owned());
                visitor.visit_u64(whole.map_err(|_| expected())?)
            }
            _ => self.wrong_type("a number"),
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        self.deserialize_u64(visitor)
    }

    /// A number or boolean is taken as the text that it was written as: people write `"PORT": 8080`.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.tree {
            // Nothing that a text is used for takes a NUL: no process, path, URL or header.
            Tree::Text(text) if text.contains('\0') => {
                let why = "must not contain a NUL character";
                Err(ConfigFault::BadValue(why.to_owned()))
            }
            Tree::Text(text) => visitor.visit_string(expand(text, self.environment)?),
            Tree::Number(number) => visitor.visit_str(number),
            Tree::Boolean(boolean) => visitor.visit_string(boolean.to_string()),
            _ => self.wrong_type("a string"),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        match self.tree {
            Tree::List(items) => {
                let items = items.iter().map(|item| self.of(item));
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            _ => self.wrong_type("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        let mut seen = HashSet::new();
        let mut members = self.tree.members().unwrap_or_default().iter();
        if let Some(twice) = members.find(|member| !seen.insert(&member.key)) {
            return Err(ConfigFault::Duplicate(twice.key.clone()));
        }
        self.deserialize_struct("", &[], visitor)
    }

    /// A struct finds by itself what it has twice; what it does not know may be there twice.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        let Tree::Table(members) = self.tree else {
            return self.wrong_type("an object");
        };
        let members = members
            .iter()
            .map(|member| (member.key.as_str(), self.of(&member.value)));
        visitor.visit_map(MapDeserializer::new(members))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        match self.tree {
            Tree::Text(text) => {
                visitor.visit_enum(expand(text, self.environment)?.into_deserializer())
            }
            _ => self.wrong_type("a string"),
        }
    }

    /// A key that is there has a value: null is not the same as no key.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        visitor.visit_some(self)
    }

    /// Of what is not used, no variable has to be set.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigFault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConfigFault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

impl<'de> IntoDeserializer<'de, ConfigFault> for ValueReader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &str, visitor: V) -> Result<V::Value, ConfigFault> {
    if let Ok(whole) = number.parse() {
        return visitor.visit_u64(whole);
    }
    if let Ok(negative) = number.parse() {
        return visitor.visit_i64(negative);
    }
    match number.parse() {
        Ok(fraction) if f64::is_finite(fraction) => visitor.visit_f64(fraction),
        _ => Err(ConfigFault::BadValue("not a number".to_owned())),
    }
}

/// What `serde` finds wrong. Its own texts quote values, so none of them is used but those that types of ours have.
impl de::Error for ConfigFault {
    fn custom<T: std::fmt::Display>(text: T) -> ConfigFault {
        ConfigFault::BadValue(text.to_string())
    }

    fn invalid_type(_found: Unexpected<'_>, expected: &dyn de::Expected) -> ConfigFault {
        ConfigFault::BadValue(format!("expected {expected}"))
    }

    /// A number outside of the range of its type.
    fn invalid_value(_found: Unexpected<'_>, expected: &dyn de::Expected) -> ConfigFault {
        ConfigFault::BadValue(match expected.to_string().as_str() {
            "u16" => "expected a number from 0 to 65535".to_owned(),
            "a nonzero u16" => "expected a number from 1 to 65535".to_owned(),
            "a nonzero usize" => "expected a whole number above zero".to_owned(),
            other => format!("expected {other}"),
        })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ConfigFault {
        ConfigFault::UnknownWord {
            suggestion: closest(variant, expected),
            expected,
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ConfigFault {
        let suggestion = closest(field, expected);
        ConfigFault::UnknownKey { suggestion }
    }

    fn duplicate_field(field: &'static str) -> ConfigFault {
        ConfigFault::Duplicate(field.to_owned())
    }
}
