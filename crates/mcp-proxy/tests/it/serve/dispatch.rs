//! `serve --expose dispatch`: search, call, and large results in files.

mod aliases;
mod chain;
mod data_server;
mod files;
mod leftovers;
mod links;
mod owners;
mod page;
mod refresh;
mod toon;

use serde_json::{Value, json};

use super::test_hub::{TestHub, demo, time};

/// The hub in front of the built-in servers, with `proxy-dispatch`.
fn start(flags: &[&str]) -> TestHub {
    let config = json!({"mcpServers": {"clock": time(), "demo": demo()}});
    TestHub::start(&config, &[&["--expose", "dispatch"], flags].concat())
}

impl TestHub {
    /// The result of a call of `proxy-dispatch`.
    fn dispatch(&self, arguments: &Value) -> Value {
        self.dispatch_in(&self.session, arguments)
    }

    /// The same in another client's session.
    fn dispatch_in(&self, session: &str, arguments: &Value) -> Value {
        let params = json!({"name": "proxy-dispatch", "arguments": arguments});
        let answer = self.answer_in(session, "tools/call", &params);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Has `demo` echo a message into a file; the file's handle.
    fn spill(&self, message: &str) -> String {
        self.spill_in(&self.session, message)
    }

    fn spill_in(&self, session: &str, message: &str) -> String {
        let call = json!({"action": "call", "tool": "echo", "arguments": {"message": message}, "resultToFile": true});
        handle(&self.dispatch_in(session, &call))
    }

    /// Reads a whole file.
    fn read(&self, file: &str) -> Value {
        self.dispatch(&json!({"action": "readresult", "resultFile": file, "op": "read"}))
    }
}

/// Where a call has put its result.
#[track_caller]
fn handle(result: &Value) -> String {
    let handle = result["_meta"]["mcp-proxy/dispatch"]["resultFile"].as_str();
    handle.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// The first text of a result.
#[track_caller]
fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}"))
}

/// What `list`, `search` and `status` answer: an object in the only text.
#[track_caller]
fn answer(result: &Value) -> Value {
    assert_eq!(result["isError"], false, "{result}");
    serde_json::from_str(text(result)).unwrap()
}

/// The code and the text of an error.
#[track_caller]
fn refusal(result: &Value) -> (String, String) {
    assert_eq!(result["isError"], true, "{result}");
    let code = result["_meta"]["mcp-proxy/dispatch"]["code"].as_str();
    (code.unwrap().to_owned(), text(result).to_owned())
}
