//! What people read when a file is wrong, and what it does to the rest of the file.

use std::fmt::Write as _;

use mcp_proxy_hub::config::{ConfigFault, ConfigWarning, ServerProblem};

use crate::config::{read, server, try_read};

/// Files that cannot be used at all.
pub(crate) const INVALID_FILES: &[(&str, &str)] = &[
    ("empty", ""),
    ("only a comment", "// nothing"),
    ("not an object", "[]"),
    ("not closed", "{\"mcpServers\": {"),
    ("comma missing", "{\n  \"a\": 1\n  \"b\": 2\n}"),
    ("single quotes", "{'mcpServers': {}}"),
    ("key without quotes", "{mcpServers: {}}"),
    ("string not closed", "{\"mcpServers\": \"hunter2"),
    (
        "bad escape",
        r#"{"mcpServers": {"a": {"command": "C:\path\hunter2"}}}"#,
    ),
    (
        "bad unicode escape",
        r#"{"mcpServers": {"a": {"command": "\uD800hunter2"}}}"#,
    ),
    ("word", "{\"mcpServers\": hunter2}"),
    ("two values", "{} {}"),
    ("colon missing", "{\"a\" 1}"),
    ("servers are a word", r#"{"mcpServers": "x"}"#),
    (
        "same server twice",
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"a\": {\"command\": \"y\"}\n}}",
    ),
    (
        "same server in both tables",
        r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "x"}}}"#,
    ),
    (
        "same table twice",
        r#"{"mcpServers": {}, "mcpServers": {}}"#,
    ),
    (
        "unknown option",
        "{\n  \"mcp-proxy\": {\n    \"lsit-limit\": 5\n  }\n}",
    ),
    ("camelCase option", r#"{"mcp-proxy": {"listLimit": 5}}"#),
    ("snake_case option", r#"{"mcp-proxy": {"list_limit": 5}}"#),
    ("nothing like it", r#"{"mcp-proxy": {"colour": 5}}"#),
    ("wrong type", r#"{"mcp-proxy": {"threads": "two"}}"#),
    ("zero", r#"{"mcp-proxy": {"threads": 0}}"#),
    ("too many", r#"{"mcp-proxy": {"threads": 1025}}"#),
    ("fraction", r#"{"mcp-proxy": {"page-size": 1.5}}"#),
    ("port", r#"{"mcp-proxy": {"listen-port": 65536}}"#),
    (
        "word for expose",
        r#"{"mcp-proxy": {"expose": "proxy,dispach"}}"#,
    ),
    ("no word for expose", r#"{"mcp-proxy": {"expose": []}}"#),
    (
        "name of a tool",
        r#"{"mcp-proxy": {"proxy-tool-name": "my tool"}}"#,
    ),
    (
        "option twice",
        r#"{"mcp-proxy": {"threads": 1, "threads": 2}}"#,
    ),
    (
        "variable of the hub",
        r#"{"mcp-proxy": {"listen-host": "${NOT_SET}"}}"#,
    ),
    (
        "unknown key of a profile",
        r#"{"mcp-proxy": {"profiles": {"p": {"server": []}}}}"#,
    ),
    (
        "unknown key of a filter",
        r#"{"mcp-proxy": {"profiles": {"p": {"tools": {"allowed": []}}}}}"#,
    ),
    (
        "unknown option of a server",
        r#"{"mcpServers": {"a b": {"command": "x", "mcp-proxy": {"callTimeout": 5}}}}"#,
    ),
    (
        "option of a disabled server",
        r#"{"mcpServers": {"a": {"disabled": true, "mcp-proxy": {"start": 1}}}}"#,
    ),
    (
        "unknown word",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"start": "lasy"}}}}"#,
    ),
    (
        "duration",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"idle-stop": "soon"}}}}"#,
    ),
    (
        "no duration",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"call-timeout": 0}}}}"#,
    ),
    (
        "very long",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"call-timeout": "9000d"}}}}"#,
    ),
    (
        "both names of an option",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"cache-ttl": 1, "toolcachettl": 1}}}}"#,
    ),
    (
        "same new name",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"rename": {"a": "c", "b": "c"}}}}}"#,
    ),
    (
        "root of another machine",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"roots": ["file://host/share"]}}}}"#,
    ),
    (
        "null",
        r#"{"mcpServers": {"a": {"command": "x", "mcp-proxy": {"start": null}}}}"#,
    ),
];

/// Entries that disable their server only.
pub(crate) const BROKEN_ENTRIES: &[(&str, &str)] = &[
    ("not an object", "true"),
    ("nothing", "{}"),
    ("both", r#"{"command": "x", "url": "http://localhost"}"#),
    (
        "two URLs",
        r#"{"url": "http://localhost", "serverUrl": "http://localhost"}"#,
    ),
    ("command is a list", r#"{"command": ["npx", "hunter2"]}"#),
    ("empty command", r#"{"command": ""}"#),
    ("key twice", r#"{"command": "x", "command": "y"}"#),
    ("argument", r#"{"command": "x", "args": [["hunter2"]]}"#),
    (
        "args are a string",
        r#"{"command": "x", "args": "hunter2"}"#,
    ),
    (
        "variable's name",
        r#"{"command": "x", "env": {"A=B": "hunter2"}}"#,
    ),
    (
        "variable's value",
        r#"{"command": "x", "env": {"A": {"b": "hunter2"}}}"#,
    ),
    ("NUL", r#"{"command": "x", "env": {"A": "hunter2\u0000"}}"#),
    ("not a URL", r#"{"url": "hunter2 hunter2"}"#),
    ("other scheme", r#"{"url": "ws://hunter2@localhost"}"#),
    (
        "header's name",
        r#"{"url": "http://localhost", "headers": {"a b": "hunter2"}}"#,
    ),
    (
        "header's value",
        r#"{"url": "http://localhost", "headers": {"a": "hunter2\n"}}"#,
    ),
    (
        "unknown type",
        r#"{"type": "htpp", "url": "http://localhost"}"#,
    ),
    ("type of a command", r#"{"type": "sse", "command": "x"}"#),
    (
        "type of a URL",
        r#"{"type": "stdio", "url": "http://localhost"}"#,
    ),
    (
        "disabled is a word",
        r#"{"command": "x", "disabled": "yes"}"#,
    ),
    ("timeout is a word", r#"{"command": "x", "timeout": "30s"}"#),
    (
        "missing variable",
        r#"{"command": "x", "env": {"A": "hunter2${NOT_SET}"}}"#,
    ),
    (
        "missing variable in an option",
        r#"{"command": "x", "mcp-proxy": {"descriptions": {"t": "${NOT_SET}"}}}"#,
    ),
    ("input", r#"{"command": "x", "args": ["${input:key}"]}"#),
    (
        "workspace",
        r#"{"command": "x", "cwd": "${workspaceFolder}"}"#,
    ),
    (
        "file of an editor",
        r#"{"command": "x", "args": ["${file:/etc/key}"]}"#,
    ),
    (
        "shell syntax",
        r#"{"command": "x", "args": ["${A%hunter2}"]}"#,
    ),
    (
        "variable not closed",
        r#"{"command": "x", "args": ["${hunter2"]}"#,
    ),
    (
        "nested default",
        r#"{"command": "x", "args": ["${A:-${hunter2}}"]}"#,
    ),
    (
        "built-in with a command",
        r#"{"command": "x", "mcp-proxy": {"builtin": "time"}}"#,
    ),
    (
        "files that sees nothing",
        r#"{"mcp-proxy": {"builtin": "files", "roots": []}}"#,
    ),
    (
        "write without files",
        r#"{"mcp-proxy": {"builtin": "time", "write": true}}"#,
    ),
    (
        "environment of a URL",
        r#"{"url": "http://localhost", "mcp-proxy": {"inherit-env": true}}"#,
    ),
];

#[test]
fn invalid_files_are_errors_that_name_the_key() {
    let mut shown = String::new();
    for (case, text) in INVALID_FILES {
        let error = try_read(text).expect_err(case);
        assert!(!error.to_string().contains("hunter2"), "{case}: {error}");
        writeln!(shown, "{case}\n    {error}").unwrap();
    }
    insta::assert_snapshot!("config_invalid_files", shown);
}

#[test]
fn broken_entries_disable_their_server_only() {
    let mut shown = String::new();
    for (case, entry) in BROKEN_ENTRIES {
        let text = format!(
            "{{\"mcpServers\": {{\n  \"a\": {entry},\n  \"b\": {{\"command\": \"x\"}}\n}}}}"
        );
        let config = read(&text);
        let problem = server(&config, "a").state.as_ref().expect_err(case);
        assert!(
            !format!("{problem} {problem:?}").contains("hunter2"),
            "{case}: {problem}"
        );
        assert!(server(&config, "b").state.is_ok(), "{case}");
        writeln!(shown, "{case}\n    {problem}").unwrap();
    }
    insta::assert_snapshot!("config_broken_entries", shown);
}

#[test]
fn an_error_names_the_file_and_the_key() {
    let error = try_read("{\n  // é\n  /* é */ \"mcp-proxy\": {\"lsit-limit\": 5}\n}").unwrap_err();
    assert_eq!(error.file, "mcp.json");
    assert_eq!(error.key, "mcp-proxy.lsit-limit");
    let suggestion = Some("list-limit");
    assert_eq!(error.fault, ConfigFault::UnknownKey { suggestion });
}

#[test]
fn a_missing_variable_hides_no_wrong_option() {
    let own = r#""descriptions": {"t": "${NOT_SET}"}, "pin": ["${NOT_SET}"]"#;
    let entry = |more: &str| {
        format!(r#"{{"mcpServers": {{"a": {{"command": "x", "mcp-proxy": {{{own}{more}}}}}}}}}"#)
    };
    let config = read(&entry(""));
    let Err(ServerProblem::Broken(problem)) = &config.servers[0].state else {
        panic!("not broken");
    };
    assert_eq!(problem.key, "mcpServers.a.mcp-proxy.descriptions.t");
    let error = try_read(&entry(r#", "start": 5"#)).unwrap_err();
    assert_eq!(error.key, "mcpServers.a.mcp-proxy.start");
}

#[test]
fn a_server_needs_a_name() {
    for name in ["", " ", "a\\nb"] {
        let config = read(&format!(
            r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#
        ));
        let state = &config.servers[0].state;
        assert!(matches!(state, Err(ServerProblem::Broken(_))), "{name}");
    }
}

#[test]
fn warnings_say_what_was_ignored() {
    let many: String = (0..12)
        .map(|number| format!("\"k{number}\": 0, "))
        .collect();
    let mut shown = String::new();
    for text in [
        r#"{"mcpServers": {}, "mcpservers": {}, "mcpProxy": {}, "theme": "dark"}"#.to_owned(),
        r#"{"mcpServers": {"a b": {"command": "x", "autoApprove": [], "arg": []}}}"#.to_owned(),
        format!("{{{many}\"mcpServers\": {{}}}}"),
        r#"{"mcpServers": {"a": {"command": "x", "timeout": 30}}}"#.to_owned(),
    ] {
        for warning in read(&text).warnings {
            writeln!(shown, "{warning}").unwrap();
        }
    }
    insta::assert_snapshot!("config_warnings", shown);
    let config = read(r#"{"mcpProxy": {}, "mcpServers": {}}"#);
    let [ConfigWarning::UnknownKeys { keys, .. }] = config.warnings.as_slice() else {
        panic!("{:?}", config.warnings);
    };
    assert_eq!(keys[0].suggestion, Some("mcp-proxy"));
}
