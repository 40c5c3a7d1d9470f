//! Fixture resources: a text, a picture, one to subscribe to, and a template.

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::resources::logo_base64;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

pub(crate) fn list() -> Vec<Resource> {
    vec![
        Resource::new(TEXT, "static-text")
            .with_description("A text that never changes.")
            .with_mime_type("text/plain"),
        Resource::new(BINARY, "static-binary")
            .with_description("A picture that never changes.")
            .with_mime_type("image/png"),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A resource to subscribe to.")
            .with_mime_type("text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("Data for the id in the URI.")
            .with_mime_type("application/json"),
    ]
}

/// The contents behind a URI, or `None` for a URI that is not a fixture.
pub(crate) fn read(uri: &str) -> Option<ResourceContents> {
    let contents = match uri {
        TEXT => ResourceContents::text("This is the content of the static text resource.", uri)
            .with_mime_type("text/plain"),
        BINARY => ResourceContents::blob(logo_base64(), uri).with_mime_type("image/png"),
        WATCHED => ResourceContents::text("This resource can be watched.", uri)
            .with_mime_type("text/plain"),
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Some(contents)
}
