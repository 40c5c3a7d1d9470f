//! The secrets of a sign-in are nowhere but in the file that is made for them: a whole story, told as loudly as our programs
//! can, and then a search in all that they wrote and showed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use super::hub_client::HubClient;
use super::person::{LIMIT, Person};
use super::servers::AuthorizationServer;
use crate::fixtures::PROXY;
use crate::process::{RunningProgram, finish, said};
use crate::texts;

/// What was written and shown, each part with its name.
#[derive(Default)]
struct Evidence(Vec<(String, Vec<u8>)>);

impl Evidence {
    fn add(&mut self, name: &str, text: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), text.into()));
    }

    /// Runs our program.
    fn run(&mut self, person: &Person, arguments: &[&str]) -> Output {
        let output = person.run(arguments);
        self.add(&arguments.join(" "), said(&output));
        output
    }

    /// The arguments and the environment of a process and of all that it started.
    fn add_processes(&mut self, root: u32) {
        for process in family(root) {
            for file in ["cmdline", "environ"] {
                let path = format!("/proc/{process}/{file}");
                // A process may be gone already.
                self.add(&path, std::fs::read(&path).unwrap_or_default());
            }
        }
    }

    /// Every file of the person, the one with the tokens and the browser's own apart.
    fn add_files(&mut self, person: &Person, folder: &Path) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.add_files(person, &path);
            } else if path.is_file()
                && path != person.tokens_file()
                && path != person.path("browser.log")
            {
                let text = std::fs::read(&path).expect("a file");
                self.add(&path.display().to_string(), text);
            }
        }
    }

    /// Where the secrets are that should not be anywhere.
    fn leaks(&self, secrets: &BTreeSet<String>) -> String {
        let mut found = String::new();
        for (name, text) in &self.0 {
            let text = String::from_utf8_lossy(text);
            for secret in secrets
                .iter()
                .filter(|secret| text.contains(secret.as_str()))
            {
                let _ = writeln!(found, "{secret} is in {name}");
            }
        }
        found
    }
}

/// A process and its descendants, whichever of its threads started them.
fn family(root: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{root}/task")).into_iter();
    let tasks = tasks.flatten().flatten().map(|task| task.path());
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|ids| {
            ids.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|id| id.parse().ok())
        .collect();
    let descendants = children.into_iter().flat_map(family);
    std::iter::once(root).chain(descendants).collect()
}

#[test]
fn no_secret_of_a_sign_in_is_written_or_shown() {
    let issuer = AuthorizationServer::start(&["--confidential-clients"]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let mut evidence = Evidence::default();

    // A login, looked at while it waits for its person.
    let mut login = person.command(&["login", &server.url, "--no-browser", "--scope", "openid"]);
    let login = RunningProgram::start(&mut login);
    let page = format!("{}/auth", issuer.url);
    let url = page.clone() + &login.wait_for(&page);
    evidence.add_processes(login.id());
    let mut browser = Command::new(person.path("browser"));
    let pages = finish(person.with_environment(browser.arg(&url)), LIMIT);
    assert!(pages.status.success(), "{}", said(&pages));
    super::until("the login has ended", || {
        person.signed_in(&server.url).then_some(())
    });
    evidence.add("the login", login.said());

    // A hub, in front of which all kinds of calls succeed and fail.
    let servers = json!({
        "notes": { "url": server.url },
        "demo": { "command": PROXY, "args": ["demo-server", "stdio"] },
    });
    let hub = person.hub("hub", &servers, &[]);
    let mut client = HubClient::connect(&hub.url);
    client.call_until_it_answers("notes_whoami");
    issuer.forget_access_tokens();
    client.call("notes_whoami");
    client.call_needs_sign_in("notes_write_note");
    evidence.add_processes(hub.running.id());
    for words in [
        &["status", "--json"][..],
        &["status"],
        &["ls"],
        &["ctl", "hello"],
        &["ctl", "servers.list"],
        &["ctl", "connections.list"],
        &["ctl", "get", "last=1000", "raw=true"],
    ] {
        evidence.run(&person, words);
    }

    // In front of one server, with a record; and from the shell.
    let record = person.path("one.jsonl");
    let record = record.to_str().expect("a temporary name is UTF-8");
    let mut one = person.command(&["proxy", "--listen", "http", "--listen-port", "0"]);
    one.args(["--session-file", record, &server.url]);
    let one = RunningProgram::start(&mut one);
    let one_url = one.wait_for(texts::LISTENING_ON);
    let id = one.wait_for(texts::ATTACH_WITH);
    evidence.run(&person, &["call", "whoami", "--url", &one_url, "-v"]);
    evidence.run(&person, &["ctl", &id, "get", "last=1000", "raw=true"]);
    evidence.add_processes(one.id());
    evidence.run(&person, &["call", "whoami", "--url", &server.url, "-v"]);
    evidence.run(
        &person,
        &["call", "write_note", "text=x", "--url", &server.url, "-v"],
    );

    // Errors, and the end.
    issuer.forget_refresh_tokens();
    issuer.forget_access_tokens();
    client.call_needs_sign_in("notes_whoami");
    evidence.run(&person, &["call", "whoami", "--url", &server.url]);
    evidence.run(&person, &["login", &server.url]);
    evidence.run(&person, &["export", record, "--output-format", "har"]);
    // Not that it finds nothing because there is nothing: the one file has them.
    let kept = std::fs::read_to_string(person.tokens_file()).expect("a file");
    let is_kept = |secret: &&String| kept.contains(secret.as_str());
    assert!(
        issuer.secrets().iter().filter(is_kept).count() >= 3,
        "{kept}"
    );
    evidence.run(&person, &["logout", &server.url]);
    evidence.add("the hub", hub.running.said());
    evidence.add("the proxy", one.said());
    evidence.add_files(&person, person.home());

    let secrets = issuer.secrets();
    // An access and a refresh token of two logins and a renewal, their codes and verifiers, and a client's secret.
    assert!(secrets.len() >= 10, "{secrets:?}");
    assert_eq!(evidence.leaks(&secrets), "");
    // The login, the hub with the guard and the server that it started, and the proxy.
    let processes = evidence
        .0
        .iter()
        .filter(|(part, _)| part.ends_with("/environ"));
    assert!(processes.count() >= 5);
    let named = |name: &str| {
        evidence
            .0
            .iter()
            .any(|(part, text)| part.ends_with(name) && !text.is_empty())
    };
    for part in [
        "hub.jsonl",
        "one.jsonl",
        "sign-ins.json",
        "cmdline",
        "environ",
        "the hub",
    ] {
        assert!(named(part), "nothing to search in {part}");
    }
}
