//! The outer form of a token: three parts in base64url, separated by dots (RFC 7515, section 7.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny};
use serde_json::{Map, Value};

use crate::TokenError;

/// Real tokens have a few hundred bytes, and those of large identity providers two thousand.
const LONGEST_TOKEN: usize = 8 * 1024;

/// A token in its parts. Nothing of it is to be trusted before the signature is verified.
#[derive(Debug)]
pub(crate) struct CompactToken<'a> {
    pub header: TokenHeader,
    /// What the signature is made of: the first two parts with their dot.
    pub signed: &'a [u8],
    pub claims: Vec<u8>,
    pub signature: Vec<u8>,
}

/// The fields of the header that matter here. Keys that a token brings along (`jwk`, `jku`, `x5c`) are never looked at.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenHeader {
    pub alg: String,
    pub kid: Option<String>,
    /// Whether there is a `crit`, whatever its value.
    #[serde(rename = "crit", default, deserialize_with = "is_present")]
    pub is_critical: bool,
}

impl<'a> CompactToken<'a> {
    pub fn parse(token: &'a str) -> Result<CompactToken<'a>, TokenError> {
        let parts = TokenParts::split(token)?;
        let header = decode(parts.header)?;
        Ok(CompactToken {
            header: parse_object(&header).ok_or(TokenError::Malformed)?,
            signed: parts.signed.as_bytes(),
            claims: decode(parts.claims)?,
            signature: decode(parts.signature)?,
        })
    }
}

/// What a token says, for a person who wants to look at it. Its signature was not verified: nothing of it is to be trusted.
#[derive(Debug)]
pub struct DecodedToken {
    /// The header.
    pub header: Map<String, Value>,
    /// The claims.
    pub claims: Map<String, Value>,
}

impl DecodedToken {
    /// Reads a token without verifying it.
    pub fn decode(token: &str) -> Result<DecodedToken, TokenError> {
        let parts = TokenParts::split(token)?;
        let object =
            |part| serde_json::from_slice(&decode(part)?).map_err(|_| TokenError::Malformed);
        Ok(DecodedToken {
            header: object(parts.header)?,
            claims: object(parts.claims)?,
        })
    }
}

struct TokenParts<'a> {
    header: &'a str,
    claims: &'a str,
    signature: &'a str,
    signed: &'a str,
}

impl<'a> TokenParts<'a> {
    fn split(token: &'a str) -> Result<TokenParts<'a>, TokenError> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        // A further dot is in one of the parts, where it is not base64url.
        Ok(TokenParts {
            header,
            claims,
            signature,
            signed,
        })
    }
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenError::Malformed)
}

/// A JSON object. Serde alone would also take a list of its values.
pub(crate) fn parse_object<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    let is_object = json.trim_ascii_start().starts_with(b"{");
    is_object
        .then(|| serde_json::from_slice(json).ok())
        .flatten()
}

fn is_present<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}
