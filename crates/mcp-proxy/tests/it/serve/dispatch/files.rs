//! Which files can be read, how long results are kept, and how many.

use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{TestHub, handle, refusal, start, text};
use crate::control::test_home::until;

/// What nobody may see.
const SECRET: &str = r#"{"message":"secret"}"#;

impl TestHub {
    fn refused_result(&self, session: &str, file: &str) -> Value {
        self.dispatch_in(
            session,
            &json!({"action": "readresult", "resultFile": file}),
        )
    }

    fn refused_arguments(&self, session: &str, file: &str) -> Value {
        let call = json!({"action": "call", "tool": "echo", "argumentsFile": file});
        self.dispatch_in(session, &call)
    }
}

/// A folder with everything that must not be a way out of it.
fn hostile_folder(root: &Path, outside: &Path) {
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("good.json"), r#"{"message":"from a root"}"#).unwrap();
    std::fs::write(outside, SECRET).unwrap();
    symlink(outside, root.join("link.json")).unwrap();
    symlink(outside.parent().unwrap(), root.join("linked")).unwrap();
    // One that stays inside: links are not followed at all.
    symlink(root.join("good.json"), root.join("inside.json")).unwrap();
    symlink("/dev/zero", root.join("device")).unwrap();
    let made = Command::new("mkfifo").arg(root.join("pipe")).status();
    assert!(made.unwrap().success());
}

/// The only stored file, where it is on disk.
fn stored_file(hub: &TestHub) -> String {
    let mut folder = hub.home.path("state/mcp-proxy/spill");
    for _ in 0..2 {
        let mut entries = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        folder = entries
            .find(|path| path.extension().is_none_or(|ending| ending != "lock"))
            .unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn what_may_not_be_read_is_refused_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("root"), folder.path().join("out.json"));
    hostile_folder(&root, &outside);
    let root = root.to_str().unwrap();
    let hub = start(&["--spill-root", root]);
    let other = hub
        .program
        .session_with(&[("authorization", "Bearer other")]);
    let of_other = hub.spill_in(&other, "another client's");
    let stored = stored_file(&hub);

    let below = |name: &str| format!("{root}/{name}");
    let files = [
        outside.to_str().unwrap().to_owned(),
        "/etc/passwd".to_owned(),
        "/dev/zero".to_owned(),
        "/proc/self/environ".to_owned(),
        "file:///etc/passwd".to_owned(),
        "good.json".to_owned(),
        root.to_owned(),
        below("missing.json"),
        below("sub"),
        below("../out.json"),
        below("sub/../../out.json"),
        below("sub/../good.json"),
        below("link.json"),
        below("linked/out.json"),
        below("inside.json"),
        below("device"),
        below("pipe"),
        below("good.json\0"),
        stored,
        of_other,
        "spill:00000000000000000000000000.json".to_owned(),
        "spill:../good.json".to_owned(),
        format!("spill:{root}/good.json"),
        "spill:".to_owned(),
    ];
    let results = files
        .iter()
        .map(|file| hub.refused_result(&hub.session, file));
    let arguments = files
        .iter()
        .map(|file| hub.refused_arguments(&hub.session, file));
    let refusals: HashSet<_> = results
        .chain(arguments)
        .map(|result| refusal(&result))
        .collect();
    let codes: Vec<&str> = refusals.iter().map(|(code, _)| &**code).collect();
    assert_eq!(codes, ["file-refused"], "{refusals:?}");

    let errors = files.iter().filter(|file| file.starts_with("spill:"));
    let errors: HashSet<String> = errors
        .map(|uri| hub.answer("resources/read", &json!({"uri": uri})))
        .map(|answer| {
            let error = &answer["error"];
            assert_eq!(error["code"], -32602, "{answer}");
            error["message"].to_string()
        })
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    for path in [below("good.json"), format!("file://{root}/good.json")] {
        let answer = hub.answer("resources/read", &json!({"uri": path}));
        assert!(answer.get("error").is_some(), "{answer}");
    }
}

#[test]
fn files_below_a_root_are_like_results() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let path = folder.path().join("sub/good.json");
    std::fs::write(&path, r#"{"message":"from a root"}"#).unwrap();
    let file = path.to_str().unwrap();
    let hub = start(&["--spill-root", folder.path().to_str().unwrap()]);
    assert_eq!(text(&hub.read(file)), r#"{"message":"from a root"}"#);
    let call = json!({"action": "call", "tool": "echo", "argumentsFile": file});
    let result = hub.dispatch(&call);
    assert_eq!(text(&result), "from a root");
    assert_eq!(
        result["_meta"]["mcp-proxy/dispatch"]["arguments"],
        json!({"_fromFile": file})
    );
    std::fs::write(&path, "[1, 2]").unwrap();
    assert_eq!(refusal(&hub.dispatch(&call)).0, "invalid-arguments-file");
}

#[test]
fn a_root_may_be_relative_to_the_current_folder() {
    let hub = start(&["--spill-root", "tests/it"]);
    let here = std::env::current_dir().unwrap().join("tests/it/main.rs");
    let result = hub.read(here.to_str().unwrap());
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn a_result_can_be_read_until_its_time_is_over() {
    let hub = start(&["--spill-ttl", "1s"]);
    let file = hub.spill(r#"{"message":"short"}"#);
    assert_eq!(hub.read(&file)["isError"], false);
    until("the time is over", || hub.read(&file)["isError"] == true);
    let expired = refusal(&hub.refused_result(&hub.session, &file));
    let unknown = "spill:00000000000000000000000000.json";
    assert_eq!(expired, refusal(&hub.refused_result(&hub.session, unknown)));
    assert_eq!(
        expired,
        refusal(&hub.refused_arguments(&hub.session, &file))
    );
    let answer = hub.answer("resources/read", &json!({"uri": file}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn over_the_quota_a_client_loses_its_own_oldest_result() {
    let hub = start(&["--spill-quota", "100K", "--spill-threshold", "1K"]);
    let other = hub
        .program
        .session_with(&[("authorization", "Bearer other")]);
    let message = "x".repeat(30_000);
    let of_other = hub.spill_in(&other, &message);
    let first = hub.spill(&message);
    let second = hub.spill(&message);
    assert_eq!(hub.read(&first)["isError"], false);
    let third = hub.spill(&message);
    assert_eq!(refusal(&hub.read(&first)).0, "file-refused");
    for kept in [&second, &third] {
        assert_eq!(hub.read(kept)["isError"], false);
    }
    let call = json!({"action": "readresult", "resultFile": of_other});
    assert_eq!(hub.dispatch_in(&other, &call)["isError"], false);

    // What does not fit at all comes as if nothing had been asked, and removes nothing.
    let message = "x".repeat(200_000);
    let call = json!({"action": "call", "tool": "echo", "arguments": {"message": message}});
    let result = hub.dispatch(&call);
    assert_eq!(text(&result), message);
    let facts = &result["_meta"]["mcp-proxy/dispatch"];
    assert!(facts.get("resultFile").is_none(), "{facts}");
    assert_eq!(
        facts["argumentsOmitted"],
        message.len() + r#"{"message":""}"#.len()
    );
    assert_eq!(hub.read(&third)["isError"], false);
}

#[test]
fn parts_of_a_result() {
    let hub = start(&[]);
    let rows: Vec<Value> = (1..=100)
        .map(|number| json!({"number": number, "name": format!("Row {number}")}))
        .collect();
    let file = hub.spill(&json!({"rows": rows}).to_string());
    let part = |arguments: Value| {
        let mut call = json!({"action": "readresult", "resultFile": file});
        let members = arguments.as_object().unwrap().clone();
        call.as_object_mut().unwrap().extend(members);
        let result = hub.dispatch(&call);
        assert_eq!(result["isError"], false, "{result}");
        result
    };
    let jq = part(json!({"op": "jq", "filter": ".rows[] | select(.number > 98) | .name"}));
    assert_eq!(text(&jq), "\"Row 99\"\n\"Row 100\"");
    assert_eq!(jq["_meta"]["mcp-proxy/dispatch"]["outputCount"], 2);
    let found = part(json!({"op": "grep", "pattern": "row 4\\d\""}));
    assert_eq!(found["_meta"]["mcp-proxy/dispatch"]["matchCount"], 10);
    let stat = part(json!({}));
    let lines = stat["_meta"]["mcp-proxy/dispatch"]["lineCount"]
        .as_u64()
        .unwrap();
    let last = part(json!({"op": "tail", "lines": 1}));
    let slice = part(json!({"op": "slice", "fromLine": lines, "toLine": lines}));
    assert_eq!(text(&last), text(&slice));
    let broken =
        json!({"action": "readresult", "resultFile": file, "op": "jq", "filter": ".rows["});
    let (code, text) = refusal(&hub.dispatch(&broken));
    assert_eq!(code, "filter-failed");
    assert!(text.contains("jq"), "{text}");
}

#[test]
fn the_handle_of_a_refused_call_is_not_kept() {
    let hub = start(&[]);
    // A tool that fails is a result like any other.
    let call = json!({"action": "call", "tool": "roll_dice", "arguments": {"count": 0}, "resultToFile": true});
    let result = hub.dispatch(&call);
    assert_eq!(result["isError"], true);
    let read = hub.read(&handle(&result));
    assert!(text(&read).starts_with("cannot roll 0 dice"), "{read}");
    // A tool that does not exist has no result.
    let call = json!({"action": "call", "tool": "nope", "resultToFile": true});
    assert_eq!(refusal(&hub.dispatch(&call)).0, "not-found");
}
