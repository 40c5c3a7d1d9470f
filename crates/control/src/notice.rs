//! What a subscriber is told: that there is something new, never the thing itself.

use serde_json::{Value, json};

use crate::InterceptResult;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The record has something new.
    Rows {
        /// The newest message that can be fetched. If it is that of the notice before, something was added about older
        /// messages.
        upto: u64,
    },
    /// A message is held or was decided, its time was changed, or a mode, a breakpoint or the rules have changed: the present, as `intercept.get` gives it.
    Holds(InterceptResult),
    /// The viewer took no notices for a while; those that follow state the present.
    Lagged,
}

impl Notice {
    /// The line, without its newline.
    pub fn to_json(&self) -> Vec<u8> {
        let (method, params) = match self {
            Notice::Rows { upto } => ("rows", json!({"upto": upto})),
            Notice::Holds(present) => ("holds", json!(present)),
            Notice::Lagged => ("lagged", json!({})),
        };
        json!({"jsonrpc": "2.0", "method": method, "params": params})
            .to_string()
            .into_bytes()
    }

    /// The notice of this name. `None`: it is not known here, as one of a newer proxy would be.
    pub fn new(method: &str, params: Value) -> Option<Notice> {
        match method {
            "rows" => Some(Notice::Rows {
                upto: params.get("upto")?.as_u64()?,
            }),
            "holds" => serde_json::from_value(params).ok().map(Notice::Holds),
            "lagged" => Some(Notice::Lagged),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InterceptMode;

    #[test]
    fn notices_are_written_as_notifications_and_read_back() {
        let present = InterceptResult {
            mode: InterceptMode::Intercept,
            held: vec![1, 2],
            breakpoints: 1,
            ..InterceptResult::default()
        };
        for (notice, text) in [
            (
                Notice::Rows { upto: 4 },
                r#"{"jsonrpc":"2.0","method":"rows","params":{"upto":4}}"#,
            ),
            (
                Notice::Holds(present),
                r#"{"jsonrpc":"2.0","method":"holds","params":{"mode":"intercept","held":[1,2],"breakpoints":1,"rules":0}}"#,
            ),
            (
                Notice::Lagged,
                r#"{"jsonrpc":"2.0","method":"lagged","params":{}}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(notice.to_json()).unwrap(), text);
            let line: Value = serde_json::from_str(text).unwrap();
            let method = line["method"].as_str().unwrap();
            assert_eq!(Notice::new(method, line["params"].clone()), Some(notice));
        }
        assert_eq!(Notice::new("news", json!({})), None);
    }
}
