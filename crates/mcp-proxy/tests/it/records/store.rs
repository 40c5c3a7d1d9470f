//! `sessions`, `prune`, and records by name.

use super::sample::*;

/// Two finished records and a live one, which the sample keeps open.
fn stored(place: &TestStore) -> SampleRecord {
    for number in [1, 2] {
        let mut sample = place.stored(number);
        sample.client(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"number/{number}\"}}"
        ));
        sample
            .recorder
            .end(
                start() + std::time::Duration::from_secs(3600 * number + 75),
                "done",
            )
            .unwrap();
    }
    let mut live = place.stored(3);
    live.client(r#"{"method":"number/3"}"#);
    live.flush();
    live
}

/// Sizes depend on the index, which is nobody's business here.
fn without_sizes(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<_> = line.split_whitespace().collect();
        let is_unit = |word: &&str| matches!(word.trim_end_matches([',', ')', '.']), "B" | "KiB");
        if let Some(unit) = words.iter().position(is_unit) {
            words.splice(unit - 1..=unit, ["SIZE"]);
        }
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_empty_store_says_what_to_do() {
    let place = TestStore::new();
    insta::assert_snapshot!("sessions-none", place.print(&["sessions"]));
    assert_eq!(place.print(&["sessions", "--json"]), "");
    insta::assert_snapshot!("prune-none", place.print(&["prune", "--all"]));
}

#[test]
fn newest_first_with_live_ones() {
    let place = TestStore::new();
    let _live = stored(&place);
    insta::assert_snapshot!("sessions", without_sizes(&place.print(&["sessions"])));
    let lines: Vec<serde_json::Value> = place
        .print(&["sessions", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["live"], &lines[0]["ended_at"]),
        (&true.into(), &serde_json::Value::Null)
    );
    assert_eq!(lines[2]["started_at"], "2026-11-15T19:00:00.000000Z");
    assert_eq!(lines[2]["messages"], 1);
}

#[test]
fn records_by_name() {
    let place = TestStore::new();
    let _live = stored(&place);
    assert!(place.print(&["inspect", "LAST"]).contains("number/3"));
    assert!(place.print(&["inspect", "LAST"]).contains("--follow"));
    assert!(place.print(&["inspect", "019A8881"]).contains("number/1"));
    assert!(
        place
            .print(&["export", "019a8882-0000-7000-8000-00005e550002"])
            .contains("number/2")
    );
    insta::assert_snapshot!(
        "names-wrong",
        [
            place.fail(&["inspect", "019a888"], 1),
            place.fail(&["inspect", "abc"], 1),
        ]
        .concat()
    );
}

#[test]
fn prune_never_takes_a_live_one() {
    let place = TestStore::new();
    let live = stored(&place);
    let dry = place.run(&["prune", "--all", "--dry-run"]);
    insta::assert_snapshot!(
        "prune-dry",
        without_sizes(&format!("{}---\n{}", dry.stdout, dry.stderr))
    );
    let asked = place.run(&["prune", "--all"]);
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("-y "), "{}", asked.stderr);
    assert_eq!(place.print(&["sessions", "--json"]).lines().count(), 3);
    // D18: by the id that the list shows, or by the beginning of the whole one.
    assert!(place.print(&["sessions"]).contains("\n5e550001  "));
    place.print(&["prune", "5e550001", "-y"]);
    assert_eq!(place.print(&["sessions", "--json"]).lines().count(), 2);
    assert!(!place.print(&["sessions"]).contains("5e550001"));
    // Nothing may stay, but the one that is being written does.
    let rest = place.run(&["prune", "--keep-under", "0", "-y"]);
    assert!(rest.stderr.contains("5e550003"), "{}", rest.stderr);
    assert!(live.path().exists());
    assert_eq!(place.print(&["sessions", "--json"]).lines().count(), 1);
    let entries = std::fs::read_dir(place.store()).unwrap().count();
    assert!(entries <= 2, "only the live record and its index are left");
}

#[test]
fn prune_leaves_all_files_of_a_running_session() {
    let place = TestStore::new();
    let options = mcp_proxy_session::RecordOptions {
        max_size: Some(1_500),
        ..mcp_proxy_session::testing::options()
    };
    let header = mcp_proxy_session::testing::header();
    let mut live = SampleRecord::with(options.clone(), &header);
    let folder = mcp_proxy_session::RecordLocation::Folder(place.store());
    live.recorder = mcp_proxy_session::Recorder::create(folder, options, &header).unwrap();
    for id in 1..=10 {
        live.call(id, "tool", "{}");
        live.flush();
    }
    assert!(live.recorder.paths().len() > 2);
    let pruned = place.run(&["prune", "--all", "-y"]);
    let id = &header.id[28..];
    let stays = format!("mcp-proxy: {id} ");
    assert_eq!(pruned.stderr.matches(&stays).count(), 1);
    assert!(!pruned.stdout.contains(id), "{}", pruned.stdout);
    assert!(live.recorder.paths().iter().all(|path| path.exists()));
}
