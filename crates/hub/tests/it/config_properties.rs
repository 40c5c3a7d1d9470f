//! No text makes the parser panic, and none makes it reveal a secret.

use mcp_proxy_hub::config::{ServerConfig, parse_config};
use proptest::prelude::*;

use crate::config::{ALL_OPTIONS, environment, file, try_read};
use crate::config_clients::{CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VS_CODE, WINDSURF};

const SECRETS: &str = r#"{
  "mcp-proxy": {"listen-host": "hunter2", "profiles": {"p": {"servers": ["hunter2"], "expose": "all"}}},
  "mcpServers": {
    "a": {"command": "x", "args": ["hunter2"], "env": {"A": "hunter2"}, "timeout": 5000},
    "b": {"url": "https://hunter2:hunter2@localhost/?k=hunter2", "headers": {"K": "Bearer hunter2"},
          "mcp-proxy": {"fix-arguments": {"t": {"a": "hunter2"}}, "start": "lazy", "idle-stop": "5m"}}
  }
}"#;

/// What takes the place of a value.
const OTHERS: &[&str] = &[
    "null",
    "5",
    "-1e999",
    "[]",
    "{}",
    "true",
    "\"hunter2\"",
    "[[{}]]",
    "\"${hunter\"",
];

fn check(text: &str) {
    let read = try_read(text);
    if let Ok(config) = &read {
        config.secrets();
        config.unknown_profile_servers();
        for warning in &config.warnings {
            let _ = warning.to_string();
        }
        assert!(mcp_proxy_hub::config::changes(config, config).is_empty());
    }
    if let Err(error) = &read {
        let _ = error.to_string();
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        check(&text);
        let _ = ServerConfig::from_flag(&text);
        let entry = serde_json::to_string(&text).unwrap();
        check(&format!(r#"{{"mcpServers": {{"a": {{"command": {entry}, "url": {entry}}}}}}}"#));
        check(&format!(r#"{{"mcpServers": {{{entry}: {{"url": {entry}, "mcp-proxy": {{"idle-stop": {entry}, "roots": [{entry}]}}}}}}}}"#));
    }

    #[test]
    fn no_damage_panics(
        which in 0..6_usize,
        at in any::<prop::sample::Index>(),
        removed in 0..20_usize,
        added in "[{}\\[\\]\":,/*\\\\$a0\u{e9}]{0,3}",
    ) {
        let text = [CLAUDE_DESKTOP, CLAUDE_CODE, CURSOR, VS_CODE, WINDSURF, ALL_OPTIONS][which];
        let letters: Vec<char> = text.chars().collect();
        let at = at.index(letters.len());
        let end = (at + removed).min(letters.len());
        let damaged: String = letters[..at].iter().copied().chain(added.chars()).chain(letters[end..].iter().copied()).collect();
        check(&damaged);
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for open in [
        "[",
        "{\"a\":",
        "{\"mcpServers\":{\"a\":{\"mcp-proxy\":{\"fix-arguments\":{\"t\":{\"a\":[",
    ] {
        check(&open.repeat(100_000));
    }
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    check(&format!(
        r#"{{"mcpServers": {{"a": {{"command": "x", "mcp-proxy": {{"fix-arguments": {{"t": {{"a": {deep}}}}}}}}}}}}}"#
    ));
}

#[test]
fn secrets_are_in_no_error_and_no_debug_output() {
    let shown = |text: &str| match parse_config(&[file("f", text)], &environment) {
        Ok(config) => {
            // Names of servers in a profile and the address to listen on are meant to be seen.
            let problems = config
                .servers
                .iter()
                .filter_map(|server| server.state.as_ref().err());
            let problems: Vec<String> = problems.map(ToString::to_string).collect();
            format!("{:?} {:?} {problems:?}", config.servers, config.warnings)
        }
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown(SECRETS).contains("hunter2"));
    assert!(!format!("{:?}", file("f", SECRETS)).contains("hunter2"));
    // Cut off anywhere, and with every string replaced by something else.
    for end in 0..SECRETS.len() {
        let cut = &SECRETS[..end];
        assert!(!shown(cut).contains("hunter2"), "{cut}");
    }
    for (at, _) in SECRETS.match_indices(": ") {
        let value = &SECRETS[at + 2..];
        let Some(end) = value.find([',', '}', ']', '\n']) else {
            continue;
        };
        // A program is not a secret.
        let is_program = SECRETS[..at].ends_with("\"command\"");
        let others = OTHERS.iter();
        for other in others.filter(|other| !is_program || **other != "\"hunter2\"") {
            let text = format!("{}{other}{}", &SECRETS[..at + 2], &value[end..]);
            assert!(
                !shown(&text).contains("hunter2"),
                "{text}\n{}",
                shown(&text)
            );
        }
    }
}
