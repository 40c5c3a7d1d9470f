//! Many servers: those of a config file, and the hub that is running.

use serde_json::json;

use super::{complaint, json_of, printed};
use crate::control::test_home::TestHome;
use crate::serve::test_hub::{TestHub, demo, time};

fn names(text: &str) -> Vec<String> {
    let listed = json_of(text);
    let names = listed.as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_servers_of_a_config_file_are_behind_a_hub_in_this_process() {
    let home = TestHome::new();
    let config = json!({"mcpServers": {"demo": demo(), "time": time(),
        "broken": {"command": "/does/not/exist"}}});
    let file = home.path("mcp.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let source = ["--config", file.to_str().unwrap()];
    let output = home.run(&[&["tools", "list", "--json"], &source[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let listed = names(&printed(&output));
    assert!(listed.contains(&"demo_echo".to_owned()), "{listed:?}");
    assert!(complaint(&output).contains("broken"), "{output:?}");
    let own = home.run(&[&["tools", "list", "--json", "--raw"], &source[..]].concat());
    assert_eq!(names(&printed(&own)), ["proxy"]);
    let called = home.run(&[&["call", "demo_echo", "message=hi"], &source[..]].concat());
    assert_eq!(printed(&called), "hi\n");
    let failed = home.run(&[&["call", "demo_roll_dice", "count=100"], &source[..]].concat());
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let read = home.run(&[&["prompt", "demo_haiku", "topic=rain"], &source[..]].concat());
    assert_eq!(read.status.code(), Some(0), "{read:?}");
}

#[test]
fn only_broken_servers_cannot_be_used() {
    let home = TestHome::new();
    let config = json!({"mcpServers": {"broken": {"command": "/does/not/exist"}}});
    let file = home.path("mcp.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let output = home.run(&["tools", "list", "--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn the_running_hub_is_found_with_its_token() {
    let home = TestHome::new();
    let token = home.path("token");
    std::fs::write(&token, "s3cret-token\n").unwrap();
    let config = home.path("config.json");
    std::fs::write(&config, json!({"mcpServers": {"demo": demo()}}).to_string()).unwrap();
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--config",
        config.to_str().unwrap(),
        "--auth-token-file",
        token.to_str().unwrap(),
    ];
    let _hub = crate::programs::ListeningProgram::start_with(&words, &home.env());
    let output = home.run(&["tools", "list", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(names(&printed(&output)).contains(&"demo_echo".to_owned()));
    let called = home.run(&["call", "demo_add", "a=1", "b=2"]);
    assert_eq!(json_of(&printed(&called))["sum"], 3.0);
    // The file is named, and what is in it is not.
    let hello = home.ctl(&["hello"]);
    assert_eq!(hello["token_file"], token.to_str().unwrap());
    assert!(!hello.to_string().contains("s3cret-token"));
    std::fs::write(&token, "another\n").unwrap();
    let refused = home.run(&["tools"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

#[test]
fn the_running_hub_shows_what_is_behind_it() {
    let hub = TestHub::start(&json!({"mcpServers": {"demo": demo()}}), &[]);
    hub.until("ready", |hub| hub.is_ready("demo"));
    insta::assert_snapshot!("hub-tools", printed(&hub.home.run(&["tools"])));
    let own = hub.home.run(&["tools", "list", "--raw", "--json"]);
    assert_eq!(names(&printed(&own)), ["proxy"]);
    insta::assert_snapshot!(
        "hub-info",
        printed(&hub.home.run(&["tools", "info", "demo_add"]))
    );
}

#[test]
fn d17_of_several_running_hubs_one_must_be_chosen() {
    let config = json!({"mcpServers": {"demo": demo()}});
    let first = TestHub::start(&config, &[]);
    first.until("ready", |hub| hub.is_ready("demo"));
    let home = &first.home;
    let only = home.run(&["tools", "-v"]);
    assert_eq!(only.status.code(), Some(0), "{only:?}");
    let ids = |home: &TestHome| -> Vec<String> {
        let listed = printed(&home.run(&["ls", "--json"]));
        let lines = listed.lines().map(json_of);
        lines
            .map(|hub| hub["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first_id = ids(home).remove(0);
    assert!(complaint(&only).contains(&first_id), "{only:?}");
    let words = [
        "serve",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--server",
    ];
    let server = format!(
        "other={} demo-server stdio",
        crate::control::test_home::PROXY
    );
    let _second = crate::programs::ListeningProgram::start_with(
        &[&words[..], &[&server]].concat(),
        &home.env(),
    );
    // D17: the commands of the operator do not pick one of them either.
    for words in [
        &["tools"][..],
        &["call", "demo_echo", "message=x"],
        &["shell"],
        &["status"],
        &["ctl", "servers.list"],
        &["ctl", "servers.reload"],
    ] {
        let refused = home.run(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {refused:?}");
        let text = complaint(&refused);
        assert!(text.contains("--hub"), "{text}");
        for id in ids(home) {
            assert!(text.contains(&id), "{text}");
        }
    }
    for words in [
        &["status", "--hub", &first_id][..],
        &["ctl", "--hub", &first_id, "servers.list"],
    ] {
        let chosen = home.run(words);
        assert_eq!(chosen.status.code(), Some(0), "{words:?}: {chosen:?}");
        assert!(printed(&chosen).contains("demo"), "{chosen:?}");
    }
    let listed = printed(&home.run(&["ls"]));
    assert_eq!(listed.matches("http://127.0.0.1:").count(), 2, "{listed}");
    let chosen = home.run(&["call", "demo_echo", "message=x", "--hub", &first_id]);
    assert_eq!(printed(&chosen), "x\n", "{chosen:?}");
    let shown = home.run(&["tools", "info", "demo_echo", "--hub", &first_id]);
    assert!(
        printed(&shown).contains(&format!("--hub {first_id}")),
        "{shown:?}"
    );
    for (id, code) in [("zzz", 2), ("", 2)] {
        let unknown = home.run(&["tools", "--hub", id]);
        assert_eq!(unknown.status.code(), Some(code), "{unknown:?}");
    }
}

#[test]
fn a_server_that_hangs_holds_a_command_up_for_ten_seconds_at_most() {
    let hangs = json!({"command": "sleep", "args": ["1000"]});
    let servers = json!({"mcpServers": {"demo": demo(), "hangs": hangs}});
    let home = TestHome::new();
    let file = home.path("mcp.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let called = home.run(&["call", "demo_add", "a=1", "b=2", "--config", file]);
    assert_eq!(called.status.code(), Some(0), "{called:?}");
    let complaint = complaint(&called);
    assert!(complaint.contains("hangs"), "{complaint}");
    assert!(complaint.contains("10 s"), "{complaint}");
}

#[test]
fn a_tool_of_a_server_that_is_down_is_asked_for_and_fails_with_its_reason() {
    let down = json!({"command": "false"});
    let servers = json!({"mcpServers": {"demo": demo(), "down": down}});
    for exposure in ["proxy", "dispatch"] {
        let hub = TestHub::start(&servers, &["--expose", exposure]);
        hub.until("ready", |hub| hub.is_ready("demo"));
        let called = hub.home.run(&["call", "down_look", "a=1"]);
        assert_eq!(called.status.code(), Some(1), "{exposure}: {called:?}");
        assert!(complaint(&called).contains("down"), "{exposure}");
    }
}

#[test]
fn d14_a_server_that_is_turned_off_is_reported_with_v_only() {
    let mut off = demo();
    off["disabled"] = json!(true);
    let servers = json!({"mcpServers": {"demo": demo(), "off": off}});
    for exposure in ["proxy", "dispatch"] {
        let hub = TestHub::start(&servers, &["--expose", exposure]);
        hub.until("ready", |hub| hub.is_ready("demo"));
        let call = ["call", "demo_add", "a=1", "b=2"];
        let quiet = hub.home.run(&call);
        assert_eq!(complaint(&quiet), "", "{exposure}");
        let verbose = hub.home.run(&[&call[..], &["-v"]].concat());
        assert!(
            complaint(&verbose).contains("off"),
            "{exposure}: {verbose:?}"
        );
    }
    let home = TestHome::new();
    let file = home.path("mcp.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let called = home.run(&[
        "call",
        "demo_add",
        "a=1",
        "b=2",
        "--config",
        file.to_str().unwrap(),
    ]);
    assert_eq!(complaint(&called), "");
}

#[test]
fn a_call_reports_only_its_own_server_unless_v_is_given() {
    let servers = json!({"mcpServers": {
        "demo": {"type": "stdio", "command": crate::control::test_home::PROXY, "args": ["demo-server", "stdio"], "oddKey": 1},
        "broken": {"command": "/nonexistent", "otherKey": 1},
    }});
    let home = TestHome::new();
    let file = home.path("mcp.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let call = ["call", "demo_add", "a=1", "b=2"];
    let config = ["--config", file.to_str().unwrap()];
    let quiet = complaint(&home.run(&[&call[..], &config].concat()));
    assert!(
        quiet.contains("oddKey") && !quiet.contains("broken"),
        "{quiet}"
    );
    let verbose = complaint(&home.run(&[&call[..], &["-v"], &config].concat()));
    assert!(
        verbose.contains("otherKey") && verbose.contains("server broken"),
        "{verbose}"
    );
    let unknown = complaint(&home.run(&[&["call", "nothing_like_it"][..], &config].concat()));
    assert!(unknown.contains("server broken"), "{unknown}");
    let list = complaint(&home.run(&[&["tools"][..], &config].concat()));
    assert!(list.contains("server broken"), "{list}");
}

#[test]
fn d7_a_name_without_its_prefix_is_found_if_only_one_server_has_it() {
    for exposure in ["proxy", "dispatch"] {
        let servers = json!({"mcpServers": {"demo": demo(), "time": time()}});
        let hub = TestHub::start(&servers, &["--expose", exposure]);
        hub.until("ready", |hub| hub.is_ready("demo") && hub.is_ready("time"));
        for name in ["add", "demo_add"] {
            let called = hub.home.run(&["call", name, "a=1", "b=2"]);
            assert_eq!(
                json_of(&printed(&called))["sum"],
                3.0,
                "{exposure}: {called:?}"
            );
            let info = hub.home.run(&["tools", "info", name, "--json"]);
            assert_eq!(info.status.code(), Some(0), "{exposure}: {info:?}");
        }
        let prompt = hub.home.run(&["prompt", "haiku", "topic=rain"]);
        assert_eq!(prompt.status.code(), Some(0), "{exposure}: {prompt:?}");
        let unknown = hub.home.run(&["call", "dd"]);
        assert_eq!(unknown.status.code(), Some(2), "{exposure}: {unknown:?}");
    }
    let server = format!(
        "demo={} demo-server stdio",
        crate::control::test_home::PROXY
    );
    let called = TestHome::new().run(&["call", "add", "a=1", "b=2", "--server", &server]);
    assert_eq!(json_of(&printed(&called))["sum"], 3.0, "{called:?}");
}

#[test]
fn d7_a_name_that_several_servers_have_is_answered_with_all_of_them() {
    for exposure in ["proxy", "dispatch"] {
        let servers = json!({"mcpServers": {"one": demo(), "two": demo()}});
        let hub = TestHub::start(&servers, &["--expose", exposure]);
        hub.until("ready", |hub| hub.is_ready("one") && hub.is_ready("two"));
        let refused = hub.home.run(&["call", "add", "a=1", "b=2"]);
        assert_eq!(refused.status.code(), Some(2), "{exposure}: {refused:?}");
        let text = complaint(&refused);
        assert!(
            text.contains("one_add") && text.contains("two_add"),
            "{exposure}: {text}"
        );
    }
}

#[test]
fn d15_bash_offers_running_proxies_and_the_tools_of_the_hub() {
    let hub = TestHub::start(&json!({"mcpServers": {"demo": demo()}}), &[]);
    hub.until("ready", |hub| hub.is_ready("demo"));
    let listed = printed(&hub.home.run(&["ls", "--json"]));
    let id = json_of(&listed)["id"].as_str().unwrap().to_owned();
    let offered = |words: &[&str]| crate::completions::offered_in(words, &hub.home.env());
    for words in [
        &["mcp-proxy", "call", "--hub", ""][..],
        &["mcp-proxy", "attach", ""],
        &["mcp-proxy", "status", ""],
        &["mcp-proxy", "ctl", ""],
    ] {
        assert_eq!(offered(words), [id.as_str()], "{words:?}");
    }
    for words in [
        &["mcp-proxy", "call", "demo_ro"][..],
        &["mcp-proxy", "tools", "info", "demo_ro"],
    ] {
        assert_eq!(offered(words), ["demo_roll_dice"], "{words:?}");
    }
}
