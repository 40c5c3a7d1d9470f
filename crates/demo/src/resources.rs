//! The demo resources: a text, a picture, a number that changes, and a template.
//!
//! Reading is a pure function of the URI and the tally.

use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// Counts the tool calls answered so far. Clients may subscribe to it.
pub(crate) const TALLY: &str = "demo://tally";
/// The template behind `demo://greeting/…`.
pub(crate) const GREETING: &str = "demo://greeting/{name}";

const README: &str = "demo://readme";
const LOGO: &str = "demo://logo";

const README_TEXT: &str = "# The demo server\n\n\
    A small MCP server that lives inside mcp-proxy. It has five tools, three resources, a resource template\n\
    and two prompts, and it keeps nothing when it ends.\n";

/// A small picture.
pub fn logo_base64() -> String {
    STANDARD.encode(include_bytes!("../assets/logo.png"))
}

/// What `resources/list` shows.
pub(crate) fn list() -> Vec<Resource> {
    vec![
        Resource::new(README, "readme")
            .with_title("About this server")
            .with_description("What the demo server offers.")
            .with_mime_type("text/markdown"),
        Resource::new(LOGO, "logo")
            .with_title("Logo")
            .with_description("Two arrows, 16 by 16 pixels.")
            .with_mime_type("image/png"),
        Resource::new(TALLY, "tally")
            .with_title("Tally of calls")
            .with_description(
                "How many tool calls this server has answered. Changes; can be watched.",
            )
            .with_mime_type("application/json"),
    ]
}

/// What `resources/templates/list` shows.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(GREETING, "greeting")
            .with_title("A greeting")
            .with_description("A greeting for the name in the URI, taken as written.")
            .with_mime_type("text/plain"),
    ]
}

/// The contents behind a URI, or `None` for a URI that is not ours.
pub(crate) fn read(uri: &str, tally: u64) -> Option<ResourceContents> {
    let contents = match uri {
        README => ResourceContents::text(README_TEXT, uri).with_mime_type("text/markdown"),
        LOGO => ResourceContents::blob(logo_base64(), uri).with_mime_type("image/png"),
        TALLY => ResourceContents::text(json!({ "calls": tally }).to_string(), uri)
            .with_mime_type("application/json"),
        _ => {
            let name = uri.strip_prefix("demo://greeting/")?;
            if name.is_empty() || name.contains('/') {
                return None;
            }
            ResourceContents::text(format!("Hello, {name}!"), uri).with_mime_type("text/plain")
        }
    };
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_listed_can_be_read() {
        for resource in list() {
            assert!(read(&resource.uri, 0).is_some(), "{}", resource.uri);
        }
    }

    #[test]
    fn the_template_takes_one_name_and_nothing_else() {
        assert!(read("demo://greeting/Ada", 0).is_some());
        assert!(read("demo://greeting/", 0).is_none());
        assert!(read("demo://greeting/a/b", 0).is_none());
        assert!(read("demo://nothing", 0).is_none());
    }
}
