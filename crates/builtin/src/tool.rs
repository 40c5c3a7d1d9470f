//! What a tool says about itself, and what it returns.

use std::fmt;

use serde_json::{Value, json};

/// The longest text in an answer.
pub(crate) const TEXT_LIMIT: usize = 256 << 10;

/// One entry of `tools/list`.
pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: String,
    /// A JSON schema; its `properties` and `required` are also what calls are checked against.
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
    pub(crate) effect: ToolEffect,
}

/// What a call may change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// Nothing.
    Reads,
    /// It replaces something, and a second call changes nothing more.
    Replaces,
    /// It changes something, and a second call may change it again.
    Edits,
}

/// What a call returned.
pub(crate) struct ToolOutput {
    content: Vec<Value>,
    structured: Option<Value>,
}

/// Why a call failed, for the model to read: which parameter, and what is allowed.
#[derive(Debug)]
pub(crate) struct ToolFailure(String);

pub(crate) type ToolResult = Result<ToolOutput, ToolFailure>;

impl ToolDefinition {
    pub(crate) fn to_json(&self) -> Value {
        let mut tool = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input,
        });
        if let Some(output) = &self.output {
            tool["outputSchema"] = output.clone();
        }
        tool["annotations"] = self.effect.annotations();
        tool
    }
}

impl ToolEffect {
    fn annotations(self) -> Value {
        json!({
            "readOnlyHint": self == ToolEffect::Reads,
            "destructiveHint": self != ToolEffect::Reads,
            "idempotentHint": self != ToolEffect::Edits,
            "openWorldHint": false,
        })
    }
}

impl ToolOutput {
    /// Plain text.
    pub(crate) fn text(text: impl Into<String>) -> ToolOutput {
        ToolOutput::content(text_content(text.into()))
    }

    /// One content block.
    pub(crate) fn content(content: Value) -> ToolOutput {
        ToolOutput {
            content: vec![content],
            structured: None,
        }
    }

    /// A value that the output schema describes. Its JSON is also the text, for clients that know only text.
    pub(crate) fn structured(value: Value) -> ToolOutput {
        ToolOutput {
            content: vec![text_content(value.to_string())],
            structured: Some(value),
        }
    }

    /// The same with a remark in a block of its own, so that nobody takes it for content.
    pub(crate) fn with_note(mut self, note: Option<String>) -> ToolOutput {
        self.content.extend(note.map(text_content));
        self
    }
}

impl ToolFailure {
    pub(crate) fn new(reason: impl Into<String>) -> ToolFailure {
        ToolFailure(reason.into())
    }

    pub(crate) fn unknown_tool(name: &str) -> ToolFailure {
        ToolFailure(format!("unknown tool `{}`", clip(name, 64)))
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of `tools/call`.
pub(crate) fn call_result(result: ToolResult) -> Value {
    match result {
        Ok(output) => {
            let mut result = json!({ "content": output.content, "isError": false });
            if let Some(structured) = output.structured {
                result["structuredContent"] = structured;
            }
            result
        }
        Err(failure) => json!({ "content": [text_content(failure.0)], "isError": true }),
    }
}

fn text_content(text: String) -> Value {
    json!({ "type": "text", "text": text })
}

/// As much of the start of `text` as fits in `limit` bytes, without cutting a character in two.
pub(crate) fn clip(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(clip("naïve", 3), "na");
        assert_eq!(clip("naïve", 4), "naï");
        assert_eq!(clip("naïve", 99), "naïve");
        assert_eq!(clip("ï", 0), "");
    }
}
