//! Words that stand for a value. An unknown word is refused with the parameter's name and the words that are allowed,
//! which serde's own error for an enum would not say.

use std::str::FromStr;

use mcp_proxy_wire::Direction;
use serde::{Deserialize, Deserializer, Serializer};

/// Finds the value that `word` stands for.
pub(crate) fn find<T: Copy>(param: &str, word: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{param}: `{word}` is not one of {}", names.join(", "))
    })
}

/// Writes a direction by its name.
pub(crate) fn write_direction<S: Serializer>(
    direction: &Direction,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(direction.as_str())
}

/// Reads a direction by its name.
pub(crate) fn read_direction<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Direction, D::Error> {
    direction(&String::deserialize(deserializer)?)
}

/// The same for a direction that may be missing.
pub(crate) fn write_some_direction<S: Serializer>(
    direction: &Option<Direction>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match direction {
        Some(direction) => write_direction(direction, serializer),
        None => serializer.serialize_none(),
    }
}

/// The same for a direction that may be missing.
pub(crate) fn read_some_direction<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Direction>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    word.as_deref().map(direction).transpose()
}

fn direction<E: serde::de::Error>(word: &str) -> Result<Direction, E> {
    Direction::from_str(word).map_err(|_| {
        E::custom(format!(
            "direction: `{word}` is neither client_to_server nor server_to_client"
        ))
    })
}
