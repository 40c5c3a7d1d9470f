//! Tools that return each kind of content, fail, or have a schema with unusual keywords.

use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject, ResourceContents},
    tool, tool_router,
};
use serde_json::{Value, json};

use crate::{resources::logo_base64, server::DemoServer};

#[tool_router(router = content_tools, vis = "pub(crate)")]
impl DemoServer {
    /// Return one text.
    #[tool]
    fn test_simple_text(&self) -> String {
        "This is a simple text response for testing.".to_owned()
    }

    /// Return one picture.
    #[tool]
    fn test_image_content(&self) -> CallToolResult {
        CallToolResult::success(vec![image()])
    }

    /// Return one sound.
    #[tool]
    fn test_audio_content(&self) -> CallToolResult {
        let sound = ContentBlock::audio(STANDARD.encode(silence()), "audio/wav");
        CallToolResult::success(vec![sound])
    }

    /// Return one resource inside the result.
    #[tool]
    fn test_embedded_resource(&self) -> CallToolResult {
        let text = "This is an embedded resource content.";
        let resource = ResourceContents::text(text, "test://embedded-resource");
        CallToolResult::success(vec![ContentBlock::resource(
            resource.with_mime_type("text/plain"),
        )])
    }

    /// Return a text, a picture and a resource together.
    #[tool]
    fn test_multiple_content_types(&self) -> CallToolResult {
        let data = json!({ "test": "data", "value": 123 }).to_string();
        let resource = ResourceContents::text(data, "test://mixed-content-resource");
        CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            ContentBlock::resource(resource.with_mime_type("application/json")),
        ])
    }

    /// Fail, as a tool fails.
    #[tool]
    fn test_error_handling(&self) -> CallToolResult {
        let text = "This tool intentionally returns an error for testing";
        CallToolResult::error(vec![ContentBlock::text(text)])
    }

    /// Take a contact. The schema uses keywords that an implementation may lose on the way.
    #[tool(input_schema = contact_schema())]
    fn json_schema_2020_12_tool(&self, arguments: JsonObject) -> String {
        format!("received {}", Value::Object(arguments))
    }
}

fn image() -> ContentBlock {
    ContentBlock::image(logo_base64(), "image/png")
}

/// The keywords are those that the scenario looks for.
fn contact_schema() -> std::sync::Arc<JsonObject> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    match schema {
        Value::Object(schema) => std::sync::Arc::new(schema),
        _ => std::sync::Arc::default(),
    }
}

/// Ten milliseconds of nothing: mono, 8 bits, 8000 samples a second.
fn silence() -> Vec<u8> {
    const RATE: u32 = 8000;
    const SAMPLES: u32 = 80;
    let mut wav = Vec::new();
    wav.extend(b"RIFF");
    wav.extend((36 + SAMPLES).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16_u32.to_le_bytes());
    wav.extend([1_u16, 1].map(u16::to_le_bytes).concat()); // PCM, one channel
    wav.extend([RATE, RATE].map(u32::to_le_bytes).concat()); // samples and bytes a second
    wav.extend([1_u16, 8].map(u16::to_le_bytes).concat()); // bytes and bits a sample
    wav.extend(b"data");
    wav.extend(SAMPLES.to_le_bytes());
    wav.extend([128; SAMPLES as usize]);
    wav
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_has_the_length_it_says() {
        let wav = silence();
        assert_eq!(wav.len(), 44 + 80);
        assert_eq!(wav[4..8], (wav.len() as u32 - 8).to_le_bytes());
    }

    #[test]
    fn the_contact_schema_reaches_the_tool_whole() {
        let schema = DemoServer::json_schema_2020_12_tool_tool_attr().input_schema;
        for keyword in [
            "$schema",
            "$defs",
            "allOf",
            "if",
            "then",
            "else",
            "additionalProperties",
        ] {
            assert!(schema.contains_key(keyword), "{keyword}");
        }
    }
}
