//! A person with a home folder, a browser and our program. Sign-ins are kept in a file, so that tests touch no keychain.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{self, PROXY};
use crate::process::{RunningProgram, finish, said};
use crate::texts;

/// Longer than any command takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct Person {
    home: TempDir,
}

impl Person {
    pub fn new() -> Person {
        let person = Person {
            home: tempfile::tempdir().expect("a temporary directory"),
        };
        let script = format!(
            "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
            fixtures::node(),
            fixtures::peer("browser.mjs")
        );
        let browser = person.path("browser");
        std::fs::write(&browser, script).expect("a file");
        std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o700)).expect("our file");
        person
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The file with the tokens.
    pub fn tokens_file(&self) -> PathBuf {
        self.path("data/mcp-proxy/tokens.json")
    }

    /// Lets the browser trust this certificate.
    pub fn trust(&self, cert: &str) {
        std::fs::copy(cert, self.path("ca.pem")).expect("a file");
    }

    /// Any program with the person's environment.
    pub fn with_environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, folder) in [
            ("HOME", ""),
            ("XDG_RUNTIME_DIR", ""),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("BROWSER", "browser"),
            ("TEST_BROWSER_LOG", "browser.log"),
        ] {
            command.env(name, self.path(folder));
        }
        command.env("MCP_PROXY_TOKEN_STORE", "file");
        let trusted = self.path("ca.pem");
        if trusted.exists() {
            command.env("NODE_EXTRA_CA_CERTS", trusted);
        }
        // As loud as it gets: some tests look for what should not be said.
        command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1")
    }

    /// Our program.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fixtures::command(PROXY, arguments);
        self.with_environment(&mut command);
        command
    }

    /// Runs our program to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        finish(&mut self.command(arguments), LIMIT)
    }

    /// Signs in with the browser, which must succeed.
    pub fn login(&self, server: &str, flags: &[&str]) -> Output {
        self.succeed(&[&["login", server], flags].concat())
    }

    /// Runs what we were told to type.
    pub fn type_in(&self, words: &[String]) -> Output {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.succeed(&words)
    }

    /// Runs our program to its end, which must be a success.
    pub fn succeed(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", said(&output));
        output
    }

    /// What a tool answers from the shell.
    pub fn call(&self, url: &str, tool: &str) -> CallOutcome {
        CallOutcome(self.run(&[
            "call",
            tool,
            "--url",
            url,
            "--args",
            r#"{"text":"x"}"#,
            "--json",
        ]))
    }

    /// Whether there is a sign-in to this server.
    pub fn signed_in(&self, url: &str) -> bool {
        let file = std::fs::read_to_string(self.path("data/mcp-proxy/sign-ins.json"));
        file.is_ok_and(|text| text.contains(url))
    }

    /// The URLs that the browser has opened, one a line, and the status of the pages that it ended on.
    pub fn browser_log(&self) -> String {
        std::fs::read_to_string(self.path("browser.log")).unwrap_or_default()
    }

    /// A file in the home folder, and its path.
    pub fn write(&self, name: &str, text: &Value) -> String {
        let path = self.path(name);
        std::fs::write(&path, text.to_string()).expect("a file");
        path.to_str().expect("a temporary name is UTF-8").to_owned()
    }

    /// A hub with these entries of a config file.
    pub fn hub(&self, name: &str, servers: &Value, flags: &[&str]) -> SignInHub {
        let config = self.write(&format!("{name}.json"), &json!({ "mcpServers": servers }));
        let record = self.path(&format!("{name}.jsonl"));
        let mut command = self.command(&["serve", "--headless", "--expose", "all"]);
        command.args(["--listen", "http", "--listen-port", "0", "--config"]);
        command.arg(config).arg("--session-file").arg(record);
        let running = RunningProgram::start(command.args(flags));
        let url = running.wait_for(texts::LISTENING_ON);
        SignInHub { running, url }
    }
}

/// How `mcp-proxy call` ended.
pub struct CallOutcome(pub Output);

impl CallOutcome {
    /// The text of the result.
    pub fn text(&self) -> String {
        assert!(self.0.status.success(), "{}", said(&self.0));
        let result: Value = serde_json::from_slice(&self.0.stdout).expect("JSON");
        result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// What to type, if a sign-in is needed.
    pub fn needs_sign_in(&self) -> Vec<String> {
        assert!(!self.0.status.success(), "{}", said(&self.0));
        login_command(&said(&self.0))
    }
}

/// The arguments of the `mcp-proxy login` that a text names between backticks.
pub fn login_command(text: &str) -> Vec<String> {
    let found = text
        .split('`')
        .find(|word| word.starts_with("mcp-proxy login "));
    let words = found.and_then(shlex::split);
    let words = words.unwrap_or_else(|| panic!("it names no command: {text}"));
    words[1..].to_vec()
}

/// A hub of the person.
pub struct SignInHub {
    pub running: RunningProgram,
    pub url: String,
}
