//! A client of a hub on the official SDK, which calls tools that nobody has listed.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixtures;
use crate::piped_program::PipedProgram;

/// The error code of a call that needs a sign-in.
const NEEDS_SIGN_IN: i64 = -31016;

pub struct HubClient(PipedProgram);

impl HubClient {
    /// Connected to this hub.
    pub fn connect(url: &str) -> HubClient {
        let script = fixtures::peer("ts_asks.mjs");
        let arguments = [script.as_str(), "demo", "legacy", url];
        HubClient::over(&mut fixtures::command(&fixtures::node(), &arguments))
    }

    /// `ts_asks.mjs` with these arguments.
    pub fn over(command: &mut Command) -> HubClient {
        let mut client = HubClient(PipedProgram::start(command));
        client.0.say("");
        assert_eq!(client.answer()["ok"], true);
        client
    }

    /// Sends a call.
    pub fn send_call(&mut self, tool: &str) {
        let call = json!({ "name": tool, "arguments": { "text": "x", "message": "x" } });
        self.0.say(&call.to_string());
    }

    /// The report about the next answer.
    pub fn answer(&mut self) -> Value {
        let line = self.0.stdout.next().expect("it reports");
        serde_json::from_str(&line).expect("a report is JSON")
    }

    /// The text that a tool answers.
    pub fn call(&mut self, tool: &str) -> String {
        self.send_call(tool);
        text(&self.answer())
    }

    /// What to type, if a call needs a sign-in.
    pub fn call_needs_sign_in(&mut self, tool: &str) -> Vec<String> {
        self.send_call(tool);
        let report = self.answer();
        assert_eq!(report["code"], NEEDS_SIGN_IN, "{report}");
        super::person::login_command(report["error"].as_str().unwrap_or_default())
    }

    /// Calls a tool until it answers, as soon as the hub has noticed a sign-in.
    pub fn call_until_it_answers(&mut self, tool: &str) -> String {
        super::until("the tool answers", || {
            self.send_call(tool);
            let report = self.answer();
            (report["ok"] == true).then(|| text(&report))
        })
    }
}

/// The text of a result.
pub fn text(report: &Value) -> String {
    assert_eq!(report["ok"], true, "{report}");
    let text = report["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {report}"))
        .to_owned()
}
