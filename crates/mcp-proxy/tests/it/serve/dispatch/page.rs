//! Everything that `docs/dispatch.md` shows, run against the program.
//!
//! A JSON block with an `action` or a `method` is a request, and the next one is its answer, where `…` stands for anything. A
//! text block after that is the text of the answer. A `sh` block of one line is the command line of what follows.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::test_hub::TestHub;
use super::{refusal, text};
use crate::programs::PROXY;

const PAGE: &str = include_str!("../../../../../../docs/dispatch.md");
/// The home of the page's user.
const HOME: &str = "/people/ada";
const COMMAND: &str = "mcp-proxy serve --config mcp.json ";

/// A block of the page.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

/// What the page's user has: files, a hub, and the results that were kept so far.
struct Reader {
    home: TempDir,
    config: Option<String>,
    hub: Option<TestHub>,
    /// What a handle of the page is called in this run.
    handles: HashMap<String, String>,
    answer: Option<Value>,
    answers: usize,
}

fn blocks() -> Vec<Block<'static>> {
    let mut fences = PAGE.split("\n```");
    let mut blocks = Vec::new();
    fences.next();
    // Every other piece is between two blocks.
    while let Some(inside) = fences.next() {
        let (language, text) = inside.split_once('\n').unwrap();
        blocks.push(Block { language, text });
        fences.next();
    }
    blocks
}

impl Reader {
    fn new() -> Reader {
        let home = tempfile::tempdir().unwrap();
        write_files(home.path());
        Reader {
            home,
            config: None,
            hub: None,
            handles: HashMap::new(),
            answer: None,
            answers: 0,
        }
    }

    /// What the page says, in the words of this run.
    fn localized(&self, text: &str) -> String {
        let mut text = text.replace(HOME, self.home.path().to_str().unwrap());
        for (shown, real) in &self.handles {
            text = text.replace(shown, real);
        }
        text
    }

    fn start(&mut self, flags: &str) {
        let config = self.localized(self.config.as_deref().unwrap());
        let flags = self.localized(flags);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let hub = TestHub::start(&serde_json::from_str(&config).unwrap(), &flags);
        // The answers are about all servers.
        hub.until("the servers are up", |hub| {
            hub.states().iter().all(|(_, state)| state == "ready")
        });
        self.hub = Some(hub);
        self.handles.clear();
    }

    fn ask(&self, request: &str) -> Value {
        let request: Value = serde_json::from_str(&self.localized(request)).unwrap();
        let hub = self.hub.as_ref().unwrap();
        match request["method"].as_str() {
            Some(method) => hub.answer(method, &request["params"])["result"].clone(),
            None => hub.dispatch(&request),
        }
    }

    fn compare(&mut self, shown: &str, answer: Value) {
        let meta = |key: &str| answer["_meta"][key]["resultFile"].as_str();
        let handle = meta("mcp-proxy/dispatch").or(meta("mcp-proxy/spill"));
        if let (Some(shown), Some(real)) = (handle_in(shown), handle.and_then(handle_in)) {
            self.handles.insert(shown.to_owned(), real.to_owned());
        }
        let shown = without_space(&self.localized(shown));
        let real = answer.to_string();
        assert!(
            is_like(&shown, &real),
            "on the page:\n{shown}\nreally:\n{real}"
        );
        self.answer = Some(answer);
        self.answers += 1;
    }

    /// The rows of the table of errors: a code, a request, and the text of its answer.
    fn check_error(&self, row: &str) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, code, request, shown, _] = cells[..] else {
            panic!("{row}");
        };
        let (real_code, real) = refusal(&self.ask(request.trim_matches('`')));
        assert_eq!(code.trim_matches('`'), real_code, "{row}");
        assert!(is_like(&self.localized(shown), &real), "{row}\n{real}");
    }
}

fn write_files(home: &Path) {
    for folder in ["notes", "data"] {
        std::fs::create_dir(home.join(folder)).unwrap();
    }
    let orders: Vec<Value> = (1..=200)
        .map(|number| {
            let status = if number % 20 == 0 { "open" } else { "paid" };
            json!({"id": number, "customer": format!("Customer {number}"), "total": number * 5, "status": status})
        })
        .collect();
    let orders = json!({"currency": "EUR", "orders": orders}).to_string();
    std::fs::write(home.join("notes/orders.json"), orders).unwrap();
    let message = json!({"message": "Hello from a file"}).to_string();
    std::fs::write(home.join("data/message.json"), message).unwrap();
}

/// The name in the first handle of a text.
fn handle_in(text: &str) -> Option<&str> {
    let name = text.split("spill:").nth(1)?;
    name.split(['"', ' ']).next()
}

/// JSON without the white space between its tokens.
fn without_space(json: &str) -> String {
    let mut is_string = false;
    let mut is_escaped = false;
    json.chars()
        .filter(|letter| {
            is_string ^= *letter == '"' && !is_escaped;
            is_escaped = is_string && *letter == '\\' && !is_escaped;
            is_string || !letter.is_whitespace()
        })
        .collect()
}

/// Whether `real` is what `shown` says, in which `…` stands for anything.
fn is_like(shown: &str, real: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = real.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        last = Some(piece);
        rest = &rest[at + piece.len()..];
    }
    last.map_or(rest.is_empty(), |last| real.ends_with(last))
}

#[test]
fn the_examples_are_true() {
    let mut reader = Reader::new();
    let mut request: Option<Value> = None;
    for block in blocks() {
        match block.language {
            "sh" if block.text.starts_with(COMMAND) && block.text.lines().count() == 1 => {
                reader.start(block.text.strip_prefix(COMMAND).unwrap());
            }
            "json" if block.text.contains("\"mcpServers\"") => {
                reader.config.get_or_insert_with(|| block.text.to_owned());
            }
            "json" if request.is_some() => {
                let answer = request.take().unwrap();
                reader.compare(block.text, answer);
            }
            "json" => request = Some(reader.ask(block.text)),
            "text" => {
                let real = text(reader.answer.as_ref().unwrap()).to_owned();
                let shown = reader.localized(block.text);
                assert!(
                    is_like(&shown, &real),
                    "on the page:\n{shown}\nreally:\n{real}"
                );
            }
            _ => {}
        }
    }
    assert!(reader.answers > 15, "{} answers", reader.answers);
    let rows = PAGE.lines().filter(|line| line.contains("`{\"action\""));
    let rows = rows.filter(|line| line.starts_with("| `")).count();
    assert!(rows > 10, "{rows} errors");
}

#[test]
fn the_errors_are_true() {
    let mut reader = Reader::new();
    let mut configs = blocks()
        .into_iter()
        .filter(|block| block.text.contains("\"mcpServers\""));
    reader.config = configs.next().map(|block| block.text.to_owned());
    reader.start("--expose dispatch");
    for row in PAGE.lines() {
        if row.starts_with("| `") && row.contains("`{\"action\"") {
            reader.check_error(row);
        }
    }
}

#[test]
fn the_config_files_are_accepted() {
    let reader = Reader::new();
    for block in blocks() {
        if block.text.contains("\"mcpServers\"") {
            let config = serde_json::from_str(&reader.localized(block.text)).unwrap();
            TestHub::start(&config, &[]);
        }
    }
}

#[test]
fn every_parameter_is_explained() {
    let hub = super::start(&[]);
    let listed = hub.ask("tools/list", &json!({}));
    let schema = &listed["tools"][0]["inputSchema"]["properties"];
    let names = schema.as_object().unwrap().keys();
    let table = PAGE.split("## Parameters").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let explained: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let names: Vec<&str> = names.map(String::as_str).collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !explained.contains(name))
        .collect();
    let invented: Vec<_> = explained
        .iter()
        .filter(|name| !names.contains(name))
        .collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "{missing:?} {invented:?}"
    );
}

#[test]
fn every_flag_is_explained() {
    let help = Command::new(PROXY).args(["serve", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let section = help.split("Large results:").nth(1).unwrap();
    let flags = section
        .split([' ', '\n', '['])
        .filter(|word| word.starts_with("--spill-"));
    let flags: Vec<&str> = flags.collect();
    assert!(flags.len() >= 5, "{section}");
    for flag in flags {
        assert!(PAGE.contains(&format!("| `{flag}")), "{flag}");
    }
}
