//! Leaving out what definitions and results say with `null`.

use mcp_proxy_wire::Span;
use mcp_proxy_wire::json::push_compact;
use memchr::memmem;

use crate::json;

/// Appends `json` without white space between its tokens. If it is an object, its own members that are `null` are left out: in definitions and results
/// they say no more than a missing member. Deeper down, as in a schema's `"default": null`, they may mean something.
pub(crate) fn push_compact_without_nulls(out: &mut Vec<u8>, json: &bytes::Bytes) {
    // Nearly always there is none, and this says so without reading the members.
    if memmem::find(json, b"null").is_none() {
        return push_compact(out, json);
    }
    let Some(value) = json::parse(json.clone()) else {
        return push_compact(out, json);
    };
    let members = json::members(&value, value.root());
    let is_null = |span: Span| value.slice(span) == b"null";
    if !members.iter().any(|(_, member)| is_null(*member)) {
        return push_compact(out, json);
    }
    out.push(b'{');
    let kept = members.iter().filter(|(_, member)| !is_null(*member));
    for (place, (key, member)) in kept.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.slice(*key));
        out.push(b':');
        push_compact(out, value.slice(*member));
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_nulls(json: &'static str) -> String {
        let mut out = Vec::new();
        push_compact_without_nulls(&mut out, &json.into());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_outer_nulls_are_dropped() {
        assert_eq!(
            without_nulls(r#"{ "a": null, "b": {"default": null}, "c": null, "d": [null] }"#),
            r#"{"b":{"default":null},"d":[null]}"#
        );
        assert_eq!(without_nulls(r#"{"a": null}"#), "{}");
        assert_eq!(without_nulls(" [null, 1] "), "[null,1]");
    }
}
