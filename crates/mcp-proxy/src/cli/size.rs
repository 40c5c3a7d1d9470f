//! Sizes as people type them, for every flag that takes one.

use mcp_proxy_hub::config::parse_size;

/// `1048576`, `500M`, `1G` as bytes: powers of 1024, with or without `B` or `iB`.
pub fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| format!("{text:?} is not a size; use 1048576, 500M or 1G"))
}

/// A limit that lets something through.
pub fn size_above_zero(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("nothing would be allowed; use 1048576, 500M or 1G".to_owned()),
        bytes => Ok(bytes),
    }
}
