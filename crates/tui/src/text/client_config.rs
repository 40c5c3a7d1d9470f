//! What to put into the config of a client so that it connects to a proxy.

use mcp_proxy_wire::json_string;

/// An `mcpServers` object with one entry, laid out to be pasted.
pub(crate) fn client_config(name: &str, url: &str, transport: &str) -> String {
    let kind = match transport {
        "sse" => "sse",
        _ => "http",
    };
    let (name, url) = (json_string(name), json_string(url));
    format!(
        "{{\n  \"mcpServers\": {{\n    {name}: {{ \"type\": \"{kind}\", \"url\": {url} }}\n  }}\n}}"
    )
}
