//! How much of one result known clients show to a model without cutting it.

use super::Hub;
use crate::server_link::ClientId;

/// Names in `clientInfo`, and the bytes of text that arrive whole. A name that ends in `*` stands for all that begin like it.
const KNOWN_CLIENTS: [(&str, u64); 11] = [
    ("cline", 7_000),
    ("@cline/core", 7_000),
    ("codex-mcp-client", 12_000),
    ("copilot-cli", 20_000),
    ("qwen-cli-mcp-client-*", 28_000),
    ("gemini-cli-mcp-client", 40_000),
    ("factory-cli", 40_000),
    ("claude-code", 50_000),
    ("kimi-code", 50_000),
    ("opencode", 50_000),
    ("goose-cli", 50_000),
];

/// Small enough for nearly every client.
const UNKNOWN_CLIENT: u64 = 8 * 1024;

impl Hub {
    /// How many bytes of a result this client shows to a model. It is what `readresult` returns at most if the call does not
    /// say, and larger results of `proxy-dispatch` are kept in files.
    pub(super) fn whole_result_bytes(&self, client: ClientId) -> u64 {
        let client = self.clients.get(&client);
        whole_result_bytes(client.map_or("", |client| &client.name))
    }
}

fn whole_result_bytes(client_name: &str) -> u64 {
    let is_this = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => client_name.starts_with(beginning),
        None => client_name.eq_ignore_ascii_case(known),
    };
    let mut known = KNOWN_CLIENTS.into_iter();
    known
        .find_map(|(name, bytes)| is_this(name).then_some(bytes))
        .unwrap_or(UNKNOWN_CLIENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g9_sizes_fit_the_client() {
        for (name, bytes) in [
            ("Cline", 7_000),
            ("@cline/core", 7_000),
            ("codex-mcp-client", 12_000),
            ("qwen-cli-mcp-client-hub", 28_000),
            ("factory-cli", 40_000),
            ("goose-cli", 50_000),
            ("goose-cli-2", 8_192),
            ("", 8_192),
        ] {
            assert_eq!(whole_result_bytes(name), bytes, "{name}");
        }
    }
}
