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
    let elsewhere = ["--server", "elsewhere-2", "--json"];
    let elsewhere = place.print(&[&check[..], &elsewhere].concat());
    let dropped = elsewhere.lines().any(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let rules = line["rules"].as_array().unwrap().iter();
        let mut numbers = rules.map(|rule| rule["rule"].as_u64());
        line["outcome"] == "drop" && numbers.any(|number| number == Some(3))
    });
    assert!(dropped, "{elsewhere}");
}

#[test]
fn mistakes_and_failures_are_exit_code_1() {
    let place = place();
    std::fs::write(place.path("broken.toml"), "[[rule]]\ndelay = \"soon\"\n").unwrap();
    let mut told = place.fail(&["rules", "check", "broken.toml"], 1);
    assert!(told.contains("broken.toml: line 2: rule 1: "), "{told}");
    for (rule, named) in [
        ("redirect = \"http://\"", "`http://`"),
        ("method = \"\"\ndrop = true", "method"),
    ] {
        std::fs::write(place.path("broken.toml"), format!("[[rule]]\n{rule}\n")).unwrap();
        let text = place.fail(&["rules", "check", "broken.toml"], 1);
        assert!(text.contains(named), "{text}");
        told.push_str(&text);
    }
    insta::assert_snapshot!("rules-broken", told);
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
    let told = ran.stdout.lines().find(|line| line.contains("rule 1 "));
    insta::assert_snapshot!("rules-failing", told.unwrap().trim());
}
