//! The answer to a batch.

use bytes::Bytes;

use super::ProxyAction;
use super::facts::{Facts, embedded_resource};
use crate::ToolWord;
use crate::json::{self, Edits};
use crate::tool_values::finished;
use mcp_proxy_wire::json::push_compact;

/// The result of a batch whose operations had these results, in their order.
pub fn render_batch(results: &[Bytes]) -> Bytes {
    let mut text = vec![b'['];
    for (place, result) in results.iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        push_compact(&mut text, &without_annotations(result));
    }
    text.push(b']');
    let mut facts = Facts::default();
    facts.text("pythonType", "CallToolResult");
    facts.raw("many", "true");
    facts.text("proxyAction", ProxyAction::Batch.as_str());
    facts.raw("totalCount", results.len().to_string());
    facts.text("dataType", "CallToolResult");
    facts.raw("isArray", "true");
    embedded_resource("batch", &text, &facts, &facts)
}

/// A result without the facts in its annotations: the caller knows what it asked for, and `_meta` has the others.
fn without_annotations(result: &Bytes) -> Bytes {
    let Some((value, content)) = finished(result, "content") else {
        return result.clone();
    };
    let mut edits = Edits::default();
    for item in json::elements(&value, content) {
        edits.remove_annotations(&value, item);
    }
    edits.apply(&value)
}
