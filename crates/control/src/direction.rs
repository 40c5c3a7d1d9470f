//! Directions by their names, as serde writes and reads them.

use mcp_proxy_wire::Direction;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A direction.
pub(crate) fn write<S: Serializer>(direction: &Direction, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(direction.as_str())
}

/// A direction.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Direction, D::Error> {
    let word = String::deserialize(from)?;
    word.parse().map_err(|_| {
        let known = "client_to_server nor server_to_client";
        D::Error::custom(format!("`{word}` is neither {known}"))
    })
}

/// A direction that may be missing.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        direction: &Option<Direction>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        direction.map(Direction::as_str).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Direction>, D::Error> {
        #[derive(Deserialize)]
        struct Named(#[serde(deserialize_with = "read")] Direction);
        let named = Option::<Named>::deserialize(from)?;
        Ok(named.map(|named| named.0))
    }
}
