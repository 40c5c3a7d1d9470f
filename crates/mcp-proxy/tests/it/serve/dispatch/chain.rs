//! The result of one tool as the arguments of the next, without a model in between that would have to read it.

use serde_json::{Value, json};

use super::data_server::{DataServer, remote};
use super::{handle, text};
use crate::control::test_home::TestHome;
use crate::programs::{INITIALIZE, INITIALIZED, StdioProgram};

/// 50 MB, or what a program that was built without optimisation can do in the same time.
const SIZE: usize = if cfg!(debug_assertions) {
    5_000_000
} else {
    50_000_000
};

/// An object of this size, on one line.
fn large_object() -> String {
    let mut object = String::with_capacity(SIZE + 2000);
    object.push_str(r#"{"rows":["#);
    let filler = "élan ".repeat(190);
    for number in 0.. {
        if number > 0 {
            object.push(',');
        }
        // Numbers that a floating-point value would change.
        object.push_str(&format!(
            r#"{{"number":{number},"exact":1.10,"large":12345678901234567890123,"text":"{filler}"}}"#
        ));
        if object.len() > SIZE {
            break;
        }
    }
    object.push_str("]}");
    object
}

/// A hub over stdio, which takes the time that it takes.
struct StdioHub(StdioProgram);

impl StdioHub {
    fn start(config: &Value) -> StdioHub {
        let home = TestHome::new();
        let path = home.path("config.json");
        std::fs::write(&path, config.to_string()).unwrap();
        // All limits are the defaults.
        let words = "serve --listen stdio --expose dispatch --no-record --quiet --config";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(path.to_str().unwrap());
        let mut hub = StdioProgram::start_with(&words, &home.env());
        hub.say(INITIALIZE);
        assert!(hub.hear().contains("serverInfo"));
        hub.say(INITIALIZED);
        StdioHub(hub)
    }

    fn dispatch(&mut self, arguments: &Value) -> Value {
        let params = json!({"name": "proxy-dispatch", "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        self.0.say(&request.to_string());
        loop {
            let answer: Value = serde_json::from_str(&self.0.hear()).unwrap();
            if answer["id"] == 7 {
                return answer["result"].clone();
            }
        }
    }
}

#[test]
fn three_calls_over_50_megabytes_show_less_than_2_kilobytes() {
    let data = large_object();
    let server = DataServer::start(&[("fetch", &data), ("transform", &data), ("merge", &data)]);
    let mut hub = StdioHub::start(&json!({"mcpServers": {"data": remote(&server.url)}}));

    let mut seen = 0;
    let mut call = |arguments: &Value| {
        let result = hub.dispatch(arguments);
        seen += arguments.to_string().len() + result["content"].to_string().len();
        let facts = result["_meta"]["mcp-proxy/dispatch"].to_string();
        assert!(!facts.contains("rows"), "{facts}");
        result
    };
    let first = call(&json!({"action": "call", "tool": "fetch", "resultToFile": true}));
    let preview = text(&first).split("Preview: ").nth(1).unwrap();
    assert!(preview.starts_with(r#"{"rows":[{"number":0"#), "{preview}");
    let second = call(
        &json!({"action": "call", "tool": "transform", "argumentsFile": handle(&first), "resultToFile": true}),
    );
    let third = call(
        &json!({"action": "call", "tool": "merge", "argumentsFile": handle(&second), "resultToFile": true}),
    );
    assert_ne!(handle(&third), handle(&second));
    assert!(seen < 2048, "{seen} bytes");

    let calls = server.take_calls();
    let tools: Vec<&str> = calls.iter().map(|call| &*call.tool).collect();
    assert_eq!(tools, ["fetch", "transform", "merge"]);
    // Not with assert_eq!, which would print it all.
    assert!(calls[1].arguments == data, "other data for the second tool");
    assert!(calls[2].arguments == data, "other data for the third tool");
}
