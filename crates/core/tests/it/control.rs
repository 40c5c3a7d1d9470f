//! The control protocol without a socket: what a desk answers, and what notices say.

mod scopes;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_proxy_control::{Fault, METHODS, Notice};
use mcp_proxy_core::control::{
    HostCallbacks, MAX_VIEWERS, OverwritePolicy, ProxyControl, RunServer, RunSummary,
    ServerManagement, Viewer,
};
use mcp_proxy_core::intercept::InterceptMode;
use mcp_proxy_core::{Dial, LinkEnd, PipelineOutput, ProxyRun};
use mcp_proxy_session::{
    CredentialRedaction, RecordLocation, RecordOptions, Recorder, Redaction, RedactionRules,
    SessionRecord, testing,
};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, ExchangeId, Frame, LineEnd, Message, Origin, Side, Transport,
    TransportEnvelope,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::runtimes::by_runtime;
use crate::transcript::{carried, peer, proxy_run};

/// What an answer or a notice says about modes and holds.
fn holding(present: &Value) -> Value {
    let mut present = present.clone();
    if let Some(members) = present.as_object_mut() {
        members.retain(|name, _| matches!(name.as_str(), "mode" | "held" | "overrides"));
    }
    present
}

/// The record of a run that keeps none.
fn temporary(limit: u64, redaction: Option<Redaction>) -> Recorder {
    let masks = CredentialRedaction::none();
    Recorder::temporary(limit, masks, redaction, &testing::header()).unwrap()
}

/// A run and who controls it.
struct ControlledRun {
    run: Arc<ProxyRun>,
    control: Arc<ProxyControl>,
    connection: Arc<mcp_proxy_core::Connection>,
}

impl ControlledRun {
    fn recorded(folder: &Path) -> ControlledRun {
        let place = RecordLocation::File(folder.join("s.jsonl"));
        let recorder =
            Recorder::create(place, RecordOptions::default(), &testing::header()).unwrap();
        let path = recorder.path().to_owned();
        ControlledRun::of(proxy_run(Some(recorder)), Some(&path))
    }

    /// Without a record but for a temporary one.
    fn unrecorded(limit: u64) -> ControlledRun {
        let run = proxy_run(None);
        run.keep_temporary_record(temporary(limit, None));
        ControlledRun::of(run, None)
    }

    /// Without a record, before a server that the test plays.
    fn hiding(rules: &RedactionRules, dial: Dial) -> ControlledRun {
        let redaction = Redaction::new(rules).unwrap();
        let run = proxy_run(None);
        run.keep_temporary_record(temporary(1 << 20, redaction.clone()));
        ControlledRun::with(run, None, redaction, dial)
    }

    fn of(run: Arc<ProxyRun>, record: Option<&Path>) -> ControlledRun {
        ControlledRun::with(run, record, None, gone("it is gone"))
    }

    fn with(
        run: Arc<ProxyRun>,
        record: Option<&Path>,
        redaction: Option<Redaction>,
        dial: Dial,
    ) -> ControlledRun {
        let server = RunServer {
            peer: Transport::Stdio.into(),
            target: "x".into(),
            dial,
            is_for_clients_only: false,
        };
        ControlledRun::in_front_of(run, record, redaction, vec![server])
    }

    /// In front of these servers.
    fn in_front_of(
        run: Arc<ProxyRun>,
        record: Option<&Path>,
        redaction: Option<Redaction>,
        servers: Vec<RunServer>,
    ) -> ControlledRun {
        ControlledRun::managed(run, record, redaction, (servers, None))
    }

    /// In front of these servers, which may change while it runs.
    fn managed(
        run: Arc<ProxyRun>,
        record: Option<&Path>,
        redaction: Option<Redaction>,
        (servers, management): (Vec<RunServer>, Option<Arc<dyn ServerManagement>>),
    ) -> ControlledRun {
        let facts = RunSummary {
            redaction,
            version: "1.2.3",
            session: "s".into(),
            target: "x".into(),
            client: Transport::Stdio,
            server: Transport::Stdio,
            token_file: None,
            config_files: Vec::new(),
            record: record.map(Path::to_owned),
            started: SystemTime::UNIX_EPOCH,
            pid: 7,
        };
        let export = Arc::new(
            |record: &Path, format: &str, output: &Path, _: OverwritePolicy| {
                assert!(SessionRecord::open(record).is_ok());
                Ok(format!("{format} {}", output.display()).len() as u64)
            },
        );
        let save = Arc::new(|record: &Path, _: &Path| {
            assert!(SessionRecord::open(record).is_ok());
            Ok(7)
        });
        let connection = run.connect(Transport::Stdio, Transport::Stdio);
        ControlledRun {
            control: ProxyControl::new(
                Arc::clone(&run),
                facts,
                HostCallbacks {
                    export,
                    save,
                    servers,
                    management,
                    relay: None,
                },
            ),
            run,
            connection,
        }
    }

    fn viewer(&self) -> Viewer {
        self.control.attach(Some(77)).unwrap()
    }

    /// A message passes.
    fn pass(&self, raw: &str) {
        let frame = Frame::new(
            ExchangeId(1),
            Origin::Client,
            TransportEnvelope::Line(LineEnd::Lf),
            Body::Message(Message::parse(raw.to_owned())),
        );
        let mut pipeline = self.connection.message_pipeline(Direction::ClientToServer);
        let now = self.run.now();
        pipeline
            .pass(&mut vec![frame], now, &mut PipelineOutput::default())
            .unwrap();
    }
}

/// Nothing new is said, however long one waits.
async fn assert_silent(viewer: &mut Viewer) {
    let long = by_runtime(Duration::from_secs(9), Duration::from_millis(200));
    let said = timeout(long, viewer.notifications.next()).await;
    assert!(said.is_err(), "{said:?}");
}

/// A server that cannot be reached.
fn gone(why: &'static str) -> Dial {
    Arc::new(move |_| {
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_UNAVAILABLE, why);
        Box::pin(std::future::ready(Err(end)))
    })
}

async fn say(viewer: &Viewer, line: &str) -> Value {
    let answer = viewer
        .requests
        .answer(line.to_owned().into())
        .await
        .unwrap();
    serde_json::from_slice(&answer).unwrap()
}

async fn ask(viewer: &Viewer, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = say(viewer, &request.to_string()).await;
    assert_eq!(answer["id"], 1, "{answer}");
    answer
}

async fn sequences(viewer: &Viewer, params: Value) -> (Vec<u64>, Value) {
    let answer = ask(viewer, "get", params).await;
    let rows = answer["result"]["rows"].as_array().unwrap();
    let numbers = rows.iter().map(|row| row["sequence"].as_u64().unwrap());
    (numbers.collect(), answer["result"]["next"].clone())
}

on_both_runtimes!(every_method_is_in_the_list_and_refuses_what_it_does_not_know);
async fn every_method_is_in_the_list_and_refuses_what_it_does_not_know() {
    let run = ControlledRun::unrecorded(1 << 20);
    let viewer = run.viewer();
    for info in METHODS {
        assert_eq!(info.method.info().name, info.name);
        let answer = ask(&viewer, info.name, json!({"nonsense": 1})).await;
        assert_eq!(answer["error"]["code"], -32602, "{}: {answer}", info.name);
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("nonsense"),
            "{answer}"
        );
    }
    assert!(
        timeout(
            Duration::from_millis(1),
            run.control.wait_for_shutdown_request()
        )
        .await
        .is_err()
    );
}

on_both_runtimes!(bad_lines_are_answered_and_the_next_one_works);
async fn bad_lines_are_answered_and_the_next_one_works() {
    let run = ControlledRun::unrecorded(1 << 20);
    let viewer = run.viewer();
    for (line, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("[{\"id\":1,\"method\":\"stats\"}]", -32600),
        ("7", -32600),
        (r#"{"id":1,"method":"rules.nothing"}"#, -32601),
        (r#"{"id":1,"method":"stats","params":[1]}"#, -32602),
    ] {
        let answer = say(&viewer, line).await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    // An id comes back as it was written.
    let line = br#"{"id":1.0,"method":"stats"}"#;
    let answer = viewer.requests.answer(line.to_vec().into()).await.unwrap();
    assert!(answer.starts_with(br#"{"jsonrpc":"2.0","id":1.0,"result":{"#));
    // What asks for no answer gets none.
    let line = br#"{"method":"intercept.set","params":{"mode":"intercept"}}"#;
    assert_eq!(viewer.requests.answer(line.to_vec().into()).await, None);
    assert_eq!(run.run.intercept().state().mode, InterceptMode::Intercept);
}

on_both_runtimes!(get_pages_through_a_record);
async fn get_pages_through_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let run = ControlledRun::recorded(folder.path());
    let viewer = run.viewer();
    for id in 1..=5 {
        run.pass(&format!(r#"{{"id":{id},  "method":"x"}}"#));
    }
    let (rows, next) = sequences(&viewer, json!({"limit": 2})).await;
    assert_eq!((rows, next), (vec![1, 2], json!(3)));
    let (rows, next) = sequences(&viewer, json!({"from": 3})).await;
    assert_eq!((rows, next), (vec![3, 4, 5], json!(null)));
    let (rows, _) = sequences(&viewer, json!({"from": 2, "to": 3})).await;
    assert_eq!(rows, [2, 3]);
    run.pass(r#"{"method":"y"}"#);
    let (rows, _) = sequences(&viewer, json!({"last": 2})).await;
    assert_eq!(rows, [5, 6]);
    let answer = ask(&viewer, "get", json!({"from": 1, "to": 1, "raw": true})).await;
    assert_eq!(answer["result"]["rows"][0]["raw"]["method"], "x");
    let answer = ask(&viewer, "get", json!({"limit": 1001})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

on_both_runtimes!(get_without_a_record_finds_the_newest_messages);
async fn get_without_a_record_finds_the_newest_messages() {
    let run = ControlledRun::unrecorded(4_000);
    let viewer = run.viewer();
    for id in 1..=200 {
        run.pass(&format!(r#"{{"id":{id},"method":"x"}}"#));
    }
    let answer = ask(&viewer, "get", json!({"raw": true})).await;
    let first = answer["result"]["first"].as_u64().unwrap();
    let rows = answer["result"]["rows"].as_array().unwrap();
    assert!(first > 150 && first < 199, "{first}");
    assert_eq!(rows.len() as u64, 200 - first + 1);
    assert_eq!(rows.last().unwrap()["raw"]["id"], 200);
    let stats = ask(&viewer, "stats", json!({})).await;
    assert_eq!(stats["result"]["messages"], 200);
    let run = ControlledRun::unrecorded(1 << 20);
    let viewer = run.viewer();
    for id in 1..=200 {
        run.pass(&format!(r#"{{"id":{id},"method":"x"}}"#));
    }
    let (rows, next) = sequences(&viewer, json!({"limit": 130})).await;
    assert_eq!((rows.len(), rows[129], next), (130, 130, json!(131)));
    let answer = ask(&viewer, "export", json!({"format": "json", "output": "/x"})).await;
    assert_eq!(answer["error"]["code"], Fault::NOT_KEPT);
}

on_both_runtimes!(a_replay_finds_no_server_or_no_handshake);
async fn a_replay_finds_no_server_or_no_handshake() {
    let run = ControlledRun::unrecorded(1 << 20);
    let viewer = run.viewer();
    run.pass(r#"{"id":1,"method":"x"}"#);
    let answer = ask(&viewer, "replay", json!({"sequence": 1})).await;
    assert_eq!(answer["error"]["code"], Fault::FAILED, "{answer}");
    assert_eq!(answer["error"]["message"], "it is gone");
    // How the session began is not kept any more; only a message that says its version itself needs no handshake.
    let run = ControlledRun::unrecorded(2_000);
    let viewer = run.viewer();
    for id in 1..=50 {
        run.pass(&format!(r#"{{"id":{id},"method":"x"}}"#));
    }
    let answer = ask(&viewer, "replay", json!({"sequence": 50})).await;
    assert_eq!(answer["error"]["code"], Fault::NOT_KEPT, "{answer}");
    let modern = r#"{"id":51,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    run.pass(modern);
    let answer = ask(&viewer, "replay", json!({"sequence": 51})).await;
    assert_eq!(answer["error"]["message"], "it is gone");
}

on_both_runtimes!(why_a_replay_failed_is_told_without_what_is_hidden);
async fn why_a_replay_failed_is_told_without_what_is_hidden() {
    let rules = RedactionRules {
        values: vec!["s3cret".into()],
        ..RedactionRules::default()
    };
    let run = ControlledRun::hiding(&rules, gone("exit 3; stderr: s3cret"));
    run.pass(r#"{"id":1,"method":"initialize"}"#);
    let answer = ask(&run.viewer(), "replay", json!({"sequence": 1})).await;
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("exit 3; stderr: [redacted:"), "{answer}");

    let (mut server, link) = peer(Side::Server);
    let link = Mutex::new(Some(link));
    let dial: Dial = Arc::new(move |_| {
        let link = link.lock().unwrap().take().unwrap();
        Box::pin(std::future::ready(Ok(link)))
    });
    let rules = RedactionRules {
        keys: vec!["token".into()],
        ..RedactionRules::default()
    };
    let run = ControlledRun::hiding(&rules, dial);
    run.pass(r#"{"id":1,"method":"initialize"}"#);
    run.pass(r#"{"id":2,"method":"x"}"#);
    let viewer = run.viewer();
    let told = tokio::spawn(async move { ask(&viewer, "replay", json!({"sequence": 2})).await });
    server.hears("S<", "~initialize").await;
    server.say(r#"{"id":1,"error":{"code":-1,"message":"not with token=s3cret"}}"#);
    let answer = told.await.unwrap();
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("not with token=[redacted:"), "{answer}");
    assert!(!text.contains("s3cret"), "{answer}");
}

on_both_runtimes!(rows_are_told_at_most_thirty_times_a_second);
async fn rows_are_told_at_most_thirty_times_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let run = ControlledRun::recorded(folder.path());
    let mut viewer = run.viewer();
    // Nobody has subscribed.
    assert_silent(&mut viewer).await;
    let answer = ask(&viewer, "subscribe", json!({})).await;
    assert_eq!(
        answer["result"],
        json!({"mode": "passthrough", "held": [], "breakpoints": 0, "rules": 0, "upto": 0})
    );
    let start = Instant::now();
    let mut told = Vec::new();
    while start.elapsed() < Duration::from_secs(1) {
        run.pass(r#"{"method":"x"}"#);
        let wait = timeout(Duration::from_millis(1), viewer.notifications.next());
        if let Ok(Notice::Rows { upto }) = wait.await {
            told.push(upto);
        }
    }
    // A machine with other work to do may tell less often.
    let least = by_runtime(25, 1);
    assert!((least..=31).contains(&told.len()), "{}", told.len());
    let all = run.run.messages();
    if told.last() != Some(&all) {
        assert_eq!(
            viewer.notifications.next().await,
            Notice::Rows { upto: all }
        );
    }
    // Nothing new, nothing said.
    assert_silent(&mut viewer).await;
    // A verdict on an old message is something new.
    run.connection
        .record_proxy_verdict(Some(1), "drop", "for the test");
    assert_eq!(
        viewer.notifications.next().await,
        Notice::Rows { upto: all }
    );
}

on_both_runtimes!(changes_of_the_mode_are_told_at_once_and_merged_while_nobody_asks);
async fn changes_of_the_mode_are_told_at_once_and_merged_while_nobody_asks() {
    let run = ControlledRun::unrecorded(1 << 20);
    let mut viewer = run.viewer();
    ask(&viewer, "subscribe", json!({})).await;
    let now = |notice: Notice| serde_json::from_slice::<Value>(&notice.to_json()).unwrap();
    assert_eq!(now(viewer.notifications.next().await)["method"], "holds");
    assert_eq!(now(viewer.notifications.next().await)["params"]["upto"], 0);
    let start = Instant::now();
    for mode in ["intercept", "passthrough", "intercept"] {
        ask(&viewer, "intercept.set", json!({"mode": mode})).await;
    }
    let notice = now(viewer.notifications.next().await);
    let params = &notice["params"];
    assert_eq!(holding(params), json!({"mode": "intercept", "held": []}));
    assert_eq!(
        (&params["breakpoints"], &params["rules"]),
        (&json!(0), &json!(0))
    );
    let at_once = by_runtime(Duration::ZERO, Duration::from_secs(1));
    assert!(start.elapsed() <= at_once);
    viewer.notifications.fell_behind();
    assert_eq!(viewer.notifications.next().await, Notice::Lagged);
    assert_silent(&mut viewer).await;
}

on_both_runtimes!(a_viewer_that_edits_stops_the_clock_until_it_is_gone);
async fn a_viewer_that_edits_stops_the_clock_until_it_is_gone() {
    let run = ControlledRun::unrecorded(1 << 20);
    let viewer = run.viewer();
    let other = run.viewer();
    ask(&other, "intercept.set", json!({"mode": "intercept"})).await;
    let (mut client, _server) = carried(&run.connection);
    let mut changes = run.run.intercept().watch();
    client.say(r#"{"id":1,"method":"x"}"#);
    while run.run.intercept().state().held.is_empty() {
        changes.changed().await.unwrap();
    }
    let open = ask(&viewer, "hold.edit", json!({"hold": 1, "open": true})).await;
    assert_eq!(open["result"]["clock"], "stopped", "{open}");
    assert_eq!(open["result"]["editors"], json!(["user (pid 77)"]));
    let more = ask(&other, "hold.extend", json!({"hold": 1, "seconds": 1000})).await;
    assert!(
        more["result"]["left_ms"].as_u64().unwrap() > 1_000_000,
        "{more}"
    );
    drop(viewer);
    let listed = ask(&other, "hold.list", json!({})).await;
    let row = &listed["result"]["holds"][0];
    assert_eq!(
        (&row["clock"], &row["editors"]),
        (&json!("running"), &json!([]))
    );
    for wrong in [
        json!({"hold": 1, "seconds": 0}),
        json!({"hold": 1, "seconds": 86_401}),
    ] {
        let answer = ask(&other, "hold.extend", wrong).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    ask(&other, "hold.resolve", json!({"hold": 1, "action": "drop"})).await;
    let late = ask(&other, "hold.edit", json!({"hold": 1, "open": true})).await;
    assert_eq!(late["error"]["code"], Fault::RESOLVED, "{late}");
    assert_eq!(late["error"]["data"]["sequence"], 1, "{late}");
    let present = ask(&other, "intercept.get", json!({})).await;
    assert_eq!(
        present["result"]["decided"][0]["action"], "drop",
        "{present}"
    );
}

on_both_runtimes!(new_rules_are_told_to_viewers);
async fn new_rules_are_told_to_viewers() {
    let run = ControlledRun::unrecorded(1 << 20);
    let mut viewer = run.viewer();
    ask(&viewer, "subscribe", json!({})).await;
    let rules = "[[rule]]\ndrop = true\n[[rule]]\ndrop = true\n";
    run.run
        .rules()
        .set(mcp_proxy_core::rules::Rules::parse(rules, Path::new(".")).unwrap());
    loop {
        if let Notice::Holds(present) = viewer.notifications.next().await
            && present.rules == 2
        {
            break;
        }
    }
    let hello = ask(&viewer, "hello", json!({})).await;
    assert_eq!(hello["result"]["rules"], 2);
}

on_both_runtimes!(places_are_limited_and_given_back);
async fn places_are_limited_and_given_back() {
    let run = ControlledRun::unrecorded(1 << 20);
    let viewers: Vec<_> = (0..MAX_VIEWERS).map(|_| run.viewer()).collect();
    assert!(run.control.attach(None).is_err());
    drop(viewers);
    assert!(run.control.attach(None).is_ok());
}

on_both_runtimes!(notes_exports_and_the_end);
async fn notes_exports_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let run = ControlledRun::recorded(folder.path());
    let viewer = run.viewer();
    ask(&viewer, "hello", json!({"name": "test\u{1b}"})).await;
    ask(&viewer, "note", json!({"text": "look here"})).await;
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
    let tells = |line: &str| line.contains("user (test, pid 77)") && line.contains("look here");
    assert!(text.lines().any(tells), "{text}");
    let cases = [
        (json!({"format": "json", "output": "relative"}), -32602),
        (json!({"format": "papyrus", "output": "/x"}), -32602),
    ];
    for (params, code) in cases {
        let answer = ask(&viewer, "export", params).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let params = json!({"format": "json", "output": "/x"});
    let answer = ask(&viewer, "export", params).await;
    assert_eq!(answer["result"], json!({"output": "/x", "bytes": 7}));
    ask(&viewer, "shutdown", json!({})).await;
    assert_eq!(
        run.control.wait_for_shutdown_request().await,
        "user (test, pid 77)"
    );
}
