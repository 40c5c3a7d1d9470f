//! `rules check`: the file alone, and against a record.

use super::*;

const RULES: &str = r#"
[[rule]]
name = "no-etc"
tool = "read_file"
filter = '.params.arguments | length > 0'
error = { code = -32000, message = "not allowed" }

[[rule]]
method = ["tools/call", "tools/list"]
direction = "server_to_client"
change = '.message? = "denied"'

[[rule]]
name = "other server"
server = "elsewhere*"
drop = true
"#;

#[test]
fn the_file_alone() {
    let place = place();
    std::fs::write(place.path("rules.toml"), RULES).unwrap();
    insta::assert_snapshot!("rules", place.print(&["rules", "check", "rules.toml"]));
    let lines = place.print(&["rules", "check", "rules.toml", "--json"]);
    assert_eq!(lines.lines().count(), 3);
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["rule"].as_u64(), first["line"].as_u64()),
        (Some(1), Some(2))
    );
}

#[test]
fn against_a_record() {
    let place = place();
    std::fs::write(place.path("rules.toml"), RULES).unwrap();
    let check = ["rules", "check", "rules.toml", "session.jsonl"];
    insta::assert_snapshot!("rules-session", place.print(&check));
    insta::assert_snapshot!(
        "rules-json",
        place.print(&[&check[..], &["--json"]].concat())
    );
    let all = place.print(&[&check[..], &["--all", "--json"]].concat());
    assert_eq!(all.lines().count(), 16);
    for line in all.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    let elsewhere = place.print(&[&check[..], &["--server", "elsewhere-2"]].concat());
    assert!(
        elsewhere.contains("rule 3 (other server) drops it"),
        "{elsewhere}"
    );
}

#[test]
fn mistakes_and_failures_are_exit_code_1() {
    let place = place();
    std::fs::write(place.path("broken.toml"), "[[rule]]\ndelay = \"soon\"\n").unwrap();
    let text = place.fail(&["rules", "check", "broken.toml"], 1);
    assert_eq!(
        text.trim_end(),
        "mcp-proxy: broken.toml: line 2: rule 1: \"soon\" is no delay: write 250ms, 2s or 1m"
    );
    for (rule, why) in [
        (
            "redirect = \"http://\"",
            "`http://`: this is no URL with a host",
        ),
        (
            "method = \"\"\ndrop = true",
            "method: an empty name fits nothing",
        ),
    ] {
        std::fs::write(place.path("broken.toml"), format!("[[rule]]\n{rule}\n")).unwrap();
        let text = place.fail(&["rules", "check", "broken.toml"], 1);
        assert!(text.contains(why), "{text}");
    }
    place.fail(&["rules", "check", "missing.toml"], 1);
    place.fail(&["rules", "check", "broken.toml", "--all"], 2);
    place.fail(&["rules"], 2);
    std::fs::write(
        place.path("failing.toml"),
        "[[rule]]\nchange = '.x = error(\"no\")'\n",
    )
    .unwrap();
    let ran = place.run(&["rules", "check", "failing.toml", "session.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("rule 1 fails: no"), "{}", ran.stdout);
}
