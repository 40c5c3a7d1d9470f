//! One message again: on a conversation that is being carried, what is whose; on one of its own, what is said.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_core::intercept::InterceptAction;
use mcp_proxy_core::replay::{
    ReplayError, ReplayReceipt, SingleReplay, replay_on_client_session, replay_on_new_session,
};
use mcp_proxy_core::rules::Rules;
use mcp_proxy_core::{
    ClientStreams, Connection, Dial, InterceptMode, Link, NewConnection, ProxyRun,
};
use mcp_proxy_wire::{Direction, Message, Side, Transport};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::runtimes::by_runtime;
use crate::transcript::{TestPeer, carried, peer, proxy_run};

const CALL: &str = r#"{"id":1,"method":"call","params":{"_meta":{"progressToken":1}}}"#;

struct ReplayTalk {
    run: Arc<ProxyRun>,
    connection: Arc<Connection>,
    client: TestPeer,
    server: TestPeer,
}

impl ReplayTalk {
    /// The client has asked something, as message 1.
    async fn begin() -> ReplayTalk {
        let run = proxy_run(None);
        let connection = run.connect(Transport::Stdio, Transport::Stdio);
        ReplayTalk::on(run, connection).await
    }

    async fn on(run: Arc<ProxyRun>, connection: Arc<Connection>) -> ReplayTalk {
        let (client, server) = carried(&connection);
        let mut talk = ReplayTalk {
            run,
            connection,
            client,
            server,
        };
        talk.client.say(CALL);
        talk.server.hears("S<", CALL).await;
        talk
    }

    fn replay(&self, limit: Duration) -> JoinHandle<Result<ReplayReceipt, ReplayError>> {
        let (run, connection) = (Arc::clone(&self.run), self.connection.id);
        tokio::spawn(async move {
            let once = SingleReplay {
                handshake: Vec::new(),
                message: Message::parse(CALL),
                parent: None,
                order: None,
                timeout: limit,
            };
            replay_on_client_session(&run, (connection, None), &once).await
        })
    }

    /// The id under which the server hears a replay.
    async fn heard_id(&mut self) -> Value {
        let heard: Value = serde_json::from_slice(&self.server.next().await.unwrap()).unwrap();
        assert_eq!(heard["params"]["_meta"]["progressToken"], heard["id"]);
        assert_eq!(heard["method"], "call");
        heard["id"].clone()
    }
}

on_both_runtimes!(the_client_gets_its_own_and_nothing_else);
async fn the_client_gets_its_own_and_nothing_else() {
    let mut talk = ReplayTalk::begin().await;
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
    talk.server.say(&progress.to_string());
    // Whose this is nobody can tell.
    let log = r#"{"method":"notifications/message"}"#;
    talk.server.say(log);
    talk.server
        .say(&json!({"id": id, "result": {}}).to_string());
    let replayed = replay.await.unwrap().unwrap();
    assert_eq!(
        (replayed.connection, replayed.request, replayed.answer),
        (1, 2, Some(5))
    );
    let answer = r#"{"id":1,"result":{}}"#;
    talk.server.say(answer);
    talk.client.hears("C<", log).await;
    talk.client.hears("C<", answer).await;
}

on_both_runtimes!(an_answer_that_comes_too_late_is_not_the_clients);
async fn an_answer_that_comes_too_late_is_not_the_clients() {
    let mut talk = ReplayTalk::begin().await;
    let replay = talk.replay(Duration::from_secs(1));
    let id = talk.heard_id().await;
    let error = replay.await.unwrap().unwrap_err();
    assert!(matches!(error, ReplayError::Late(_)), "{error}");
    let cancel = format!(r#"~"notifications/cancelled","params":{{"requestId":{id}"#);
    talk.server.hears("S<", &cancel).await;
    let open = talk.connection.open_requests(Direction::ClientToServer);
    assert_eq!(open.len(), 1, "that of the client");
    talk.server
        .say(&json!({"id": id, "result": {}}).to_string());
    let answer = r#"{"id":1,"result":{}}"#;
    talk.server.say(answer);
    talk.client.hears("C<", answer).await;
}

on_both_runtimes!(when_the_server_goes_both_are_told);
async fn when_the_server_goes_both_are_told() {
    let mut talk = ReplayTalk::begin().await;
    let replay = talk.replay(Duration::from_secs(9));
    talk.heard_id().await;
    talk.server.fail("it broke");
    let error = replay.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "it broke");
    talk.client.hears("C<", r#"~"id":1,"error""#).await;
    assert_eq!(talk.client.next().await, None, "and no more");
    // The conversation is over.
    let error = talk.replay(Duration::from_secs(9)).await.unwrap();
    let error = error.unwrap_err();
    assert!(matches!(error, ReplayError::NotLive(_)), "{error}");
}

on_both_runtimes!(what_comes_after_the_answer_or_twice_is_not_the_clients_either);
async fn what_comes_after_the_answer_or_twice_is_not_the_clients_either() {
    let mut talk = ReplayTalk::begin().await;
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    let answer = json!({"id": id, "result": {}}).to_string();
    talk.server.say(&answer);
    replay.await.unwrap().unwrap();
    talk.server.say(&answer);
    let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
    talk.server.say(&progress.to_string());
    // The same id, spelled in another way.
    talk.server
        .say(&answer.replace("mcp-proxy", "mcp\\u002dproxy"));
    let own = r#"{"method":"notifications/progress","params":{"progressToken":1}}"#;
    talk.server.say(own);
    talk.client.hears("C<", own).await;
}

on_both_runtimes!(an_answer_in_a_batch_is_taken_out_of_it);
async fn an_answer_in_a_batch_is_taken_out_of_it() {
    let mut talk = ReplayTalk::begin().await;
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    let (progress, own) = (
        json!({"method": "notifications/progress", "params": {"progressToken": id}}),
        r#"{"id":1,  "result":{}}"#,
    );
    let answer = json!({"id": id, "result": {}});
    talk.server.say(&format!("[{progress}, {own} ,{answer}]"));
    let replayed = replay.await.unwrap().unwrap();
    assert_eq!(replayed.answer, Some(3), "the batch");
    talk.client.hears("C<", &format!("[{own}]")).await;
    // Nothing of this one is left.
    talk.server.say(&format!("[{progress}]"));
    let other = r#"[{"method":"notifications/message"}]"#;
    talk.server.say(other);
    talk.client.hears("C<", other).await;
}

on_both_runtimes!(an_answer_that_a_viewer_drops_ends_the_replay);
async fn an_answer_that_a_viewer_drops_ends_the_replay() {
    let mut talk = ReplayTalk::begin().await;
    let intercept = Arc::clone(talk.run.intercept());
    intercept.set_mode(InterceptMode::Intercept, "test");
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    let mut changes = intercept.watch();
    talk.server
        .say(&json!({"id": id, "result": {}}).to_string());
    while intercept.state().held.is_empty() {
        changes.changed().await.unwrap();
    }
    let hold = intercept.state().held[0].hold;
    let drop = InterceptAction::Drop;
    intercept.resolve(hold, drop, "user (docs)").unwrap();
    let error = replay.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, ReplayError::Unanswered(why) if why.contains("#3") && why.contains("user (docs)")),
        "{error:?}"
    );
}

on_both_runtimes!(an_answer_that_a_rule_drops_ends_the_replay);
async fn an_answer_that_a_rule_drops_ends_the_replay() {
    let mut talk = ReplayTalk::begin().await;
    let rules = "[[rule]]\nname = \"quiet\"\ndirection = \"server_to_client\"\ndrop = true\n";
    let rules = Rules::parse(rules, std::path::Path::new(".")).unwrap();
    talk.run.rules().set(rules);
    for answer in ["{answer}", "[{answer}]"] {
        let replay = talk.replay(Duration::from_secs(9));
        let id = talk.heard_id().await;
        let said = json!({"id": id, "result": {}}).to_string();
        talk.server.say(&answer.replace("{answer}", &said));
        let error = replay.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, ReplayError::Unanswered(why) if why.contains("rule:quiet")),
            "{error:?}"
        );
    }
}

on_both_runtimes!(clients_that_share_a_session_hear_nothing_of_it);
async fn clients_that_share_a_session_hear_nothing_of_it() {
    let run = proxy_run(None);
    let connection = run.open(
        NewConnection::between(Transport::StreamableHttp, Transport::Stdio)
            .with_streams(ClientStreams::Shared),
    );
    let mut talk = ReplayTalk::on(run, connection).await;
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
    talk.server.say(&progress.to_string());
    talk.server
        .say(&json!({"id": id, "result": {}}).to_string());
    let replayed = replay.await.unwrap().unwrap();
    assert_eq!((replayed.request, replayed.answer), (2, Some(4)));
    let open = talk.connection.open_requests(Direction::ClientToServer);
    assert_eq!(open.len(), 1, "that of the client");
    // In a batch, which is nobody's here.
    let replay = talk.replay(Duration::from_secs(9));
    let id = talk.heard_id().await;
    talk.server
        .say(&json!([{"id": id, "result": {}}]).to_string());
    assert_eq!(replay.await.unwrap().unwrap().answer, Some(6));
    let answer = r#"{"id":1,"result":{}}"#;
    talk.server.say(answer);
    talk.client.hears("C<", answer).await;
}

/// A replay before a server that the test plays.
fn visit(opening: &[&'static str], server: Link) -> JoinHandle<Result<ReplayReceipt, ReplayError>> {
    visit_within(Duration::from_secs(9), opening, server)
}

fn visit_within(
    timeout: Duration,
    opening: &[&'static str],
    server: Link,
) -> JoinHandle<Result<ReplayReceipt, ReplayError>> {
    let server = Mutex::new(Some(server));
    let dial: Dial = Arc::new(move |_| {
        let link = server.lock().unwrap().take().unwrap();
        Box::pin(std::future::ready(Ok(link)))
    });
    let once = SingleReplay {
        handshake: opening.iter().map(|line| Message::parse(*line)).collect(),
        message: Message::parse(CALL),
        parent: None,
        order: None,
        timeout,
    };
    tokio::spawn(async move {
        let asked =
            replay_on_new_session(&proxy_run(None), Transport::Stdio.into(), &dial, once, ()).await;
        asked.map(|asked| asked.receipt)
    })
}

on_both_runtimes!(a_fresh_session_is_opened_and_the_server_gets_no_client_to_ask);
async fn a_fresh_session_is_opened_and_the_server_gets_no_client_to_ask() {
    let (mut server, link) = peer(Side::Server);
    let opening = [
        r#"{"id":"x","method":"initialize"}"#,
        r#"{"method":"notifications/initialized"}"#,
    ];
    let replay = visit(&opening, link);
    server
        .hears("S<", r#"{"id":1,"method":"initialize"}"#)
        .await;
    server.say(r#"{"id":1,"result":{}}"#);
    server.hears("S<", opening[1]).await;
    let call = r#"{"id":3,"method":"call","params":{"_meta":{"progressToken":3}}}"#;
    server.hears("S<", call).await;
    server.say(r#"{"id":"s","method":"roots/list"}"#);
    server
        .hears("S<", r#"~"id":"s","error":{"code":-32601"#)
        .await;
    server.say(r#"{"id":7,"method":"ping"}"#);
    server
        .hears("S<", r#"{"jsonrpc":"2.0","id":7,"result":{}}"#)
        .await;
    server.say(r#"{"id":3,"result":{}}"#);
    let replayed = replay.await.unwrap().unwrap();
    assert_eq!((replayed.request, replayed.answer), (4, Some(9)));
    assert_eq!(server.next().await, None, "it is closed");
}

on_both_runtimes!(a_server_that_refuses_ends_or_says_nothing_is_told);
async fn a_server_that_refuses_ends_or_says_nothing_is_told() {
    let (mut server, link) = peer(Side::Server);
    let replay = visit(&[r#"{"id":"x","method":"initialize"}"#], link);
    server.hears("S<", r#"~initialize"#).await;
    let refusal = r#"{"id":1,"error":{"code":-1,"message":"not you"}}"#;
    server.say(refusal);
    let error = replay.await.unwrap().unwrap_err();
    let ReplayError::Refused(answer) = error else {
        panic!("{error:?}");
    };
    assert_eq!(answer.raw(), refusal.as_bytes());
    let (mut server, link) = peer(Side::Server);
    let replay = visit(&[], link);
    server.hears("S<", CALL).await;
    server.fail("it broke");
    assert_eq!(replay.await.unwrap().unwrap_err().to_string(), "it broke");
    let (_server, link) = peer(Side::Server);
    let limit = by_runtime(Duration::from_secs(9), Duration::from_millis(300));
    let silent = visit_within(limit, &[], link).await.unwrap();
    assert!(matches!(silent, Err(ReplayError::Late(late)) if late == limit));
}
