//! The examples of `docs/rules.md`, mistakes in files, and rules that fail.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use mcp_proxy_core::rules::{Rule, RuleEffect, RuleOutcome, Rules};
use mcp_proxy_session::{EnvelopeFacts, MessageFacts, MessageFlags, RequestFacts};
use mcp_proxy_wire::{Direction, Message, Transport};

const DELAYED: RuleEffect = RuleEffect::Delayed(Duration::from_secs(1));

fn facts<'a>(message: &'a Message, direction: Direction, sequence: u64) -> MessageFacts<'a> {
    MessageFacts {
        sequence,
        time: SystemTime::UNIX_EPOCH,
        direction,
        origin: direction.from().into(),
        parent: None,
        transport: Transport::Stdio,
        connection: 1,
        server: None,
        exchange: 0,
        message,
        partial_head: None,
        request: None,
        envelope: EnvelopeFacts::Plain,
        flags: MessageFlags::default(),
    }
}

/// What the documents say about a message.
fn told(rules: &Rules, facts: &MessageFacts<'_>) -> String {
    let Some(verdict) = rules.judge(facts) else {
        return "   nothing\n".to_owned();
    };
    let mut told = String::new();
    for applied in &verdict.applied {
        writeln!(told, "   {applied}").unwrap();
    }
    let text = |message: &Message| String::from_utf8(message.raw().to_vec()).unwrap();
    let now = verdict.message.as_ref().unwrap_or(facts.message);
    match &verdict.outcome {
        RuleOutcome::Pass | RuleOutcome::Redirect(_) => {
            writeln!(told, "   on {}", text(now)).unwrap()
        }
        RuleOutcome::Answer(answer) => writeln!(told, "   back {}", text(answer)).unwrap(),
        RuleOutcome::Drop => {}
    }
    told
}

/// Plays the messages of a transcript and writes it anew.
fn played(rules: &Rules, transcript: &str) -> String {
    let mut asked: HashMap<String, (String, Option<String>)> = HashMap::new();
    let mut played = String::new();
    let mut sequence = 0;
    for line in transcript.lines() {
        let (direction, raw) = match (line.strip_prefix("C> "), line.strip_prefix("S< ")) {
            (Some(raw), _) => (Direction::ClientToServer, raw),
            (_, Some(raw)) => (Direction::ServerToClient, raw),
            _ => continue,
        };
        sequence += 1;
        let message = Message::parse(raw.to_owned());
        let id = message.id().map(|id| id.to_string()).unwrap_or_default();
        let mut facts = facts(&message, direction, sequence);
        let known = asked.get(&id).cloned();
        match (&known, message.method()) {
            (_, Some(method)) => {
                let name = facts.name().map(|name| name.into_owned());
                asked.insert(id, (method.into_owned(), name));
            }
            (Some((method, name)), None) => {
                facts.request = Some(RequestFacts {
                    held: Duration::ZERO,
                    sequence: 1,
                    method: Some(method),
                    name: name.as_deref(),
                    latency: Duration::from_millis(1),
                });
            }
            _ => {}
        }
        writeln!(played, "{line}").unwrap();
        played.push_str(&told(rules, &facts));
    }
    played
}

#[test]
fn the_examples_of_the_documentation() {
    let page = include_str!("../../../../docs/rules.md");
    let folder = tempfile::tempdir().unwrap();
    let blocks = || {
        let mut blocks = page.split("```").skip(1).step_by(2);
        std::iter::from_fn(move || blocks.next()?.split_once('\n'))
    };
    for (kind, text) in blocks() {
        if let Some(name) = kind.strip_prefix("json ") {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
    }
    let mut rules = Rules::default();
    let mut transcripts = 0;
    for (kind, text) in blocks() {
        match kind {
            "toml" => rules = Rules::parse(text, folder.path()).unwrap(),
            "transcript" => {
                transcripts += 1;
                assert_eq!(played(&rules, text), text);
            }
            _ => {}
        }
    }
    assert_eq!(transcripts, 5);
}

#[test]
fn mistakes_name_rule_line_and_reason() {
    let wrong = [
        ("[[rule]]\nx = 1\ndrop = true", 2, Some(1)),
        ("[[rule]]\nname = \"a\"", 1, Some(1)),
        (
            "[[rule]]\ndrop = true\n\n[[rule]]\nname = \"b\"\ndrop = true\ndelay = \"1s\"",
            7,
            Some(2),
        ),
        ("[[rule]]\ndrop = false", 2, Some(1)),
        ("[[rule]]\ndrop = true\npart = \"params\"", 3, Some(1)),
        ("[[rule]]\nchange = '.a = '", 2, Some(1)),
        ("[[rule]]\nfilter = '.nope == 1'\ndrop = true", 2, Some(1)),
        ("[[rule]]\ndelay = \"5\"", 2, Some(1)),
        ("[[rule]]\ndelay = \"11m\"", 2, Some(1)),
        ("[[rule]]\ndelay = 5", 2, Some(1)),
        ("[[rule]]\ndrop = true\ndirection = \"up\"", 3, Some(1)),
        ("[[rule]]\nerror = { code = 1 }", 2, Some(1)),
        ("[[rule]]\nanswer = { a = nan }", 2, Some(1)),
        ("[[rule]]\nanswer-file = \"no.json\"", 2, Some(1)),
        ("[[rule]]\nmethod = []\ndrop = true", 2, Some(1)),
        ("[[rule]]\nredirect = \"\"", 2, Some(1)),
        ("[[rule]]\nredirect = \"ftp://x\"", 2, Some(1)),
        ("[[rule]]\nredirect = \"http://\"", 2, Some(1)),
        ("[[rule]]\nredirect = \"https://:80/mcp\"", 2, Some(1)),
        ("[[rule]]\nredirect = \" \"", 2, Some(1)),
        ("[[rule]]\nmethod = \"\"\ndrop = true", 2, Some(1)),
        ("[[rule]]\ntool = [\"a\", \"\"]\ndrop = true", 2, Some(1)),
        ("[[rule]]\nset-header = \"x\"", 2, Some(1)),
        (
            "[[rule]]\nset-header = { Content-Length = \"1\" }",
            2,
            Some(1),
        ),
        ("[[rule]]\nset-header = { x = \"a\\nb\" }", 2, Some(1)),
        (
            "[[rule]]\nremove-header = \"Transfer-Encoding\"",
            2,
            Some(1),
        ),
        ("[[rule]]\nremove-header = []", 2, Some(1)),
        ("[rule]\ndrop = true", 1, None),
        ("x = 1", 1, None),
    ];
    let errors = wrong.map(|(file, line, rule)| {
        let found = Rules::parse(file, Path::new("/nowhere")).unwrap_err();
        let number = found.rule.as_ref().map(|rule| rule.number);
        assert_eq!((found.line, number), (line, rule), "{file}");
        found.to_string()
    });
    insta::assert_snapshot!("rules_errors", errors.join("\n"));
    for server in [
        "http://h",
        "HTTPS://h:1/x?y",
        "http://[::1]:2/",
        "run http://",
        "x",
    ] {
        let file = format!("[[rule]]\nredirect = \"{server}\"");
        assert!(Rules::parse(&file, Path::new(".")).is_ok(), "{server}");
    }
    let broken = Rules::parse("[[rule]]\n\nname = ", Path::new(".")).unwrap_err();
    assert_eq!((broken.line, broken.rule), (3, None));
    assert!(Rules::parse("", Path::new(".")).unwrap().is_empty());
}

#[test]
fn what_fails_is_told_and_the_message_goes_on() {
    let rules = "[[rule]]\nchange = '.name + 1'\n[[rule]]\nfilter = 'jq:last(range(1e12))'\ndrop = true\n[[rule]]\nname = \"z\"\ndelay = \"1s\"";
    let rules = Rules::parse(rules, Path::new(".")).unwrap();
    let message = Message::parse(r#"{"id":1,"method":"a","params":{"name":"x"}}"#);
    let facts = facts(&message, Direction::ClientToServer, 1);
    let verdict = rules.judge(&facts).unwrap();
    assert!(verdict.message.is_none() && matches!(verdict.outcome, RuleOutcome::Pass));
    let effects: Vec<_> = verdict.applied.iter().map(|rule| &rule.effect).collect();
    assert!(matches!(effects[0], RuleEffect::Failed(_)), "{effects:?}");
    assert_eq!(effects[1..], [&RuleEffect::TooSlow, &DELAYED]);
    let told: Vec<_> = verdict.applied.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("rules_applied", told.join("\n"));
    assert_eq!(verdict.applied[2].rule.by(), "rule:z");
    assert_eq!(verdict.applied[0].rule.by(), "rule:1");
}

#[test]
fn a_rule_that_is_too_slow_does_nothing_and_is_counted() {
    let rules = "[[rule]]\nfilter = 'jq:last(range(1e12))'\ndrop = true\n[[rule]]\nchange = '[repeat(1)]'\n[[rule]]\nname = \"z\"\ndelay = \"1s\"";
    let rules = Rules::parse(rules, Path::new(".")).unwrap();
    let message = Message::parse(r#"{"id":1,"method":"a","params":{"name":"x"}}"#);
    let facts = facts(&message, Direction::ClientToServer, 1);
    let applied = || -> Vec<(usize, RuleEffect)> {
        let verdict = rules.judge(&facts).unwrap();
        assert!(verdict.message.is_none() && matches!(verdict.outcome, RuleOutcome::Pass));
        let applied = verdict.applied.into_iter();
        applied
            .map(|rule| (rule.rule.number, rule.effect))
            .collect()
    };
    let too_slow = || RuleEffect::TooSlow;
    assert_eq!(applied(), [(1, too_slow()), (2, too_slow()), (3, DELAYED)]);
    // Both are switched off now.
    for _ in 0..3 {
        assert_eq!(applied(), [(3, DELAYED)]);
    }
    let counts: Vec<u64> = rules.list().iter().map(Rule::too_slow).collect();
    assert_eq!(counts, [4, 4, 0]);
}

#[test]
fn rules_for_other_servers_are_left_out() {
    let text = "[[rule]]\nserver = \"git*\"\ndrop = true\n[[rule]]\nserver = [\"a\", \"b\"]\ndrop = true\n[[rule]]\ndrop = true";
    let rules = Rules::parse(text, Path::new(".")).unwrap();
    let left = |server: &str| -> Vec<usize> {
        let rules = rules.for_server(server);
        rules.list().iter().map(|rule| rule.name.number).collect()
    };
    assert_eq!(left("github"), [1, 3]);
    assert_eq!(left("b"), [2, 3]);
    assert_eq!(left(""), [3]);
}

#[test]
fn odd_messages_do_no_harm() {
    let text = "[[rule]]\nchange = '.a = 1'\n[[rule]]\nmethod = \"*\"\nanswer = {}\n[[rule]]\nmethod = \"x\"\nerror = { code = 0x10, message = \"\" }";
    let rules = Rules::parse(text, Path::new(".")).unwrap();
    for raw in [
        "",
        "{",
        "[]",
        "[{\"id\":1,\"method\":\"x\",\"params\":{}}]",
        "null",
        "{\"method\":1,\"id\":2,\"params\":3}",
        "{\"id\":null,\"method\":\"x\"}",
    ] {
        let message = Message::parse(raw.to_owned());
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            rules.judge(&facts(&message, direction, 1));
        }
    }
}

#[test]
fn a_pipe_or_an_endless_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let huge = folder.path().join("huge");
    std::fs::File::create(&huge)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    for path in [&*pipe, Path::new("/dev/zero"), folder.path(), &huge] {
        assert!(
            Rules::read(path)
                .unwrap_err()
                .starts_with(&path.display().to_string())
        );
        let text = format!("[[rule]]\nanswer-file = \"{}\"", path.display());
        let error = Rules::parse(&text, folder.path()).unwrap_err();
        assert_eq!(error.line, 2, "{error}");
    }
}
