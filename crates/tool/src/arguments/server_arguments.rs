//! What a server gets of `args`.

use bytes::Bytes;
use mcp_proxy_wire::Message;

use crate::tool_values::on_one_line;
use crate::{CapabilityType, json};
use mcp_proxy_wire::json::{push_bytes, push_compact};

/// What the server gets of an object. Resources take no arguments, so whatever was sent for one is dropped.
pub(super) fn server_arguments(args: Option<Bytes>, kind: CapabilityType) -> Option<Bytes> {
    let args = args?;
    match kind {
        CapabilityType::Tool => Some(on_one_line(args)),
        CapabilityType::Resource => None,
        CapabilityType::Prompt => Some(prompt_arguments(&Message::parse(args))),
    }
}

/// The arguments of prompts are strings, which models tend to forget: any other value becomes its JSON text, and `null`
/// is left out.
fn prompt_arguments(args: &Message) -> Bytes {
    let mut strings = vec![b'{'];
    for (key, value) in json::members(args, args.root()) {
        let text = args.slice(value);
        if text == b"null" {
            continue;
        }
        if strings.len() > 1 {
            strings.push(b',');
        }
        strings.extend_from_slice(args.slice(key));
        strings.push(b':');
        if text.first() == Some(&b'"') {
            strings.extend_from_slice(text);
        } else {
            let mut compact = Vec::new();
            push_compact(&mut compact, text);
            push_bytes(&mut strings, &compact);
        }
    }
    strings.push(b'}');
    strings.into()
}
