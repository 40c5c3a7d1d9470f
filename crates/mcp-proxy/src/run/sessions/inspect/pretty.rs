//! JSON over several lines, token by token: a parser that makes values would lose digits, order and duplicate keys,
//! which are often just what is looked for.

use mcp_proxy_wire::visible::push_json;

/// Deeper levels are not moved further to the right, so that a deep message stays readable and small.
const DEEPEST: usize = 40;

/// Lays out valid JSON, two spaces a level.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\r' | '\n' => {}
            '"' => {
                out.push('"');
                string(&mut letters, &mut out);
            }
            '{' | '[' => {
                out.push(letter);
                while letters
                    .next_if(|next| matches!(next, ' ' | '\t' | '\r' | '\n'))
                    .is_some()
                {}
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => push_json(&mut out, other),
        }
    }
    out
}

/// The rest of a string, with its closing quote.
fn string(letters: &mut impl Iterator<Item = char>, out: &mut String) {
    while let Some(letter) = letters.next() {
        push_json(out, letter);
        match letter {
            '\\' => out.extend(letters.next()),
            '"' => return,
            _ => {}
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(DEEPEST) {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_as_they_are() {
        let json =
            r#" {"a" :[1.0,12345678901234567890123456789, {}],"a":"x\"},\\", "e":[ ],"n":null}"#;
        let expected = r#"{
  "a": [
    1.0,
    12345678901234567890123456789,
    {}
  ],
  "a": "x\"},\\",
  "e": [],
  "n": null
}"#;
        assert_eq!(pretty(json), expected);
        assert_eq!(pretty("7"), "7");
        assert_eq!(pretty("\"\u{202e}\u{9b}\""), r#""\u202e\u009b""#);
    }

    #[test]
    fn deep_messages_stay_small() {
        let deep = "[".repeat(900) + &"]".repeat(900);
        assert!(pretty(&deep).len() < 200_000);
    }
}
