//! A hub for tests: the real program, and what tests ask it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::control::test_home::{TestHome, until_within};
use crate::programs::ListeningProgram;

/// A hub on a port, in a home of its own.
pub struct TestHub {
    pub home: TestHome,
    pub program: ListeningProgram,
    pub session: String,
    pub config: PathBuf,
}

impl TestHub {
    pub fn start(config: &Value, flags: &[&str]) -> TestHub {
        TestHub::start_in(TestHome::new(), config, flags)
    }

    /// The same in a home that may have been used before.
    pub fn start_in(home: TestHome, config: &Value, flags: &[&str]) -> TestHub {
        let hub = TestHub::start_in_without_session(home, config, flags);
        let session = hub.program.session();
        TestHub { session, ..hub }
    }

    /// The same, for clients that bring a session or a token.
    pub fn start_in_without_session(home: TestHome, config: &Value, flags: &[&str]) -> TestHub {
        let path = home.path("config.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let file = path.to_str().unwrap();
        let mut words = vec!["serve", "--listen", "http", "--config", file];
        if !flags.contains(&"--listen-port") {
            words.extend(["--listen-port", "0"]);
        }
        let program = ListeningProgram::start_with(&[&words[..], flags].concat(), &home.env());
        TestHub {
            home,
            program,
            session: String::new(),
            config: path,
        }
    }

    /// The result of a request; an error is a failure of the test.
    pub fn ask(&self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    pub fn answer(&self, method: &str, params: &Value) -> Value {
        self.answer_in(&self.session, method, params)
    }

    /// The same in another client's session.
    pub fn answer_in(&self, session: &str, method: &str, params: &Value) -> Value {
        serde_json::from_str(&self.text_in(session, method, params)).unwrap()
    }

    /// The answer as it was sent.
    pub fn answer_text(&self, method: &str, params: &Value) -> String {
        self.text_in(&self.session, method, params)
    }

    fn text_in(&self, session: &str, method: &str, params: &Value) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let headers = [("mcp-session-id", session)];
        let answer = self.program.post(&headers, &body.to_string());
        let text = answer.text();
        let line = text.lines().rev().find_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            line.starts_with('{').then_some(line)
        });
        line.unwrap().to_owned()
    }

    pub fn proxy(&self, arguments: &Value) -> Value {
        self.ask(
            "tools/call",
            &json!({"name": "proxy", "arguments": arguments}),
        )
    }

    pub fn tool_names(&self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let names = listed["tools"].as_array().unwrap().iter();
        names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The state of each server.
    pub fn states(&self) -> Vec<(String, String)> {
        let listed = self.home.ctl(&["servers.list"]);
        let servers = listed["servers"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        servers
            .map(|row| (text(&row["name"]), text(&row["health"]["state"])))
            .collect()
    }

    /// Waits for something that other processes bring about.
    pub fn until(&self, what: &str, mut happened: impl FnMut(&TestHub) -> bool) {
        until_within(
            Duration::from_secs(30),
            || happened(self),
            || format!("{what}: {:?}", self.states()),
        );
    }

    /// The process of the only server: the child of the only guard.
    pub fn server_process(&self) -> String {
        let children = |parent: u32| -> Vec<u32> {
            let path = format!("/proc/{parent}/task/{parent}/children");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect()
        };
        let processes = std::fs::read_dir("/proc").unwrap();
        let parent_of = |pid: u32| -> Option<u32> {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
        };
        let guard = processes
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok())
            .find(|pid| parent_of(*pid) == Some(self.program.pid()))
            .expect("a guard");
        children(guard).first().expect("a server").to_string()
    }

    pub fn is_ready(&self, server: &str) -> bool {
        self.states()
            .contains(&(server.to_owned(), "ready".to_owned()))
    }
}

/// How many processes have this variable, `NAME=value`, in their environment.
pub fn processes_with(variable: &str) -> usize {
    let has_it = |folder: &Path| {
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|other| other == variable.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let folders = processes.map(|entry| entry.unwrap().path());
    folders.filter(|folder| has_it(folder)).count()
}

pub fn demo() -> Value {
    json!({"mcp-proxy": {"builtin": "demo"}})
}

pub fn time() -> Value {
    json!({"mcp-proxy": {"builtin": "time"}})
}
