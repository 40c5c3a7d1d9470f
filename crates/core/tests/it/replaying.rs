//! One message again: on a conversation that is being carried, what is whose; on one of its own, what is said.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_proxy_core::replay::{Once, ReplayError, Replayed, fresh, live};
use mcp_proxy_core::{Connection, Dial, Link, Pipeline};
use mcp_proxy_wire::{Direction, Message, Transport};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::transcript::{Peer, carried, peer, pipeline};

const CALL: &str = r#"{"id":1,"method":"call","params":{"_meta":{"progressToken":1}}}"#;

struct Talk {
    pipeline: Arc<Pipeline>,
    connection: Arc<Connection>,
    client: Peer,
    server: Peer,
}

impl Talk {
    /// The client has asked something, as message 1.
    async fn begin() -> Talk {
        let pipeline = pipeline(None);
        let connection = pipeline.connect(Transport::Stdio, Transport::Stdio);
        let (client, server) = carried(&connection);
        let mut talk = Talk {
            pipeline,
            connection,
            client,
            server,
        };
        talk.client.say(CALL);
        talk.server.hears("S<", CALL).await;
        talk
    }

    fn replay(&self, limit: Duration) -> JoinHandle<Result<Replayed, ReplayError>> {
        let (pipeline, connection) = (Arc::clone(&self.pipeline), self.connection.id);
        tokio::spawn(async move {
            let message = Message::parse(CALL);
            live(&pipeline, connection, &message, limit).await
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

#[tokio::test(start_paused = true)]
async fn the_client_gets_its_own_and_nothing_else() {
    let mut talk = Talk::begin().await;
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

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_is_not_the_clients() {
    let mut talk = Talk::begin().await;
    let replay = talk.replay(Duration::from_secs(1));
    let id = talk.heard_id().await;
    let error = replay.await.unwrap().unwrap_err();
    assert!(matches!(error, ReplayError::Late(_)), "{error}");
    let cancel = format!(r#"~"notifications/cancelled","params":{{"requestId":{id}"#);
    talk.server.hears("S<", &cancel).await;
    let open = talk.connection.open(Direction::ClientToServer);
    assert_eq!(open.len(), 1, "that of the client");
    talk.server
        .say(&json!({"id": id, "result": {}}).to_string());
    let answer = r#"{"id":1,"result":{}}"#;
    talk.server.say(answer);
    talk.client.hears("C<", answer).await;
}

#[tokio::test(start_paused = true)]
async fn when_the_server_goes_both_are_told() {
    let mut talk = Talk::begin().await;
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

/// A replay before a server that the test plays.
fn visit(opening: &[&'static str], server: Link) -> JoinHandle<Result<Replayed, ReplayError>> {
    let server = Mutex::new(Some(server));
    let dial: Dial = Arc::new(move |_| {
        let link = server.lock().unwrap().take().unwrap();
        Box::pin(std::future::ready(Ok(link)))
    });
    let once = Once {
        opening: opening.iter().map(|line| Message::parse(*line)).collect(),
        message: Message::parse(CALL),
        timeout: Duration::from_secs(9),
    };
    tokio::spawn(async move {
        let asked = fresh(&pipeline(None), Transport::Stdio, &dial, once, ()).await;
        asked.map(|asked| asked.replayed)
    })
}

#[tokio::test(start_paused = true)]
async fn a_fresh_session_is_opened_and_the_server_gets_no_client_to_ask() {
    let (mut server, link) = peer();
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

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_ends_or_says_nothing_is_told() {
    let (mut server, link) = peer();
    let replay = visit(&[r#"{"id":"x","method":"initialize"}"#], link);
    server.hears("S<", r#"~initialize"#).await;
    server.say(r#"{"id":1,"error":{"code":-1,"message":"not you"}}"#);
    let error = replay.await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "the server refused the handshake: not you");
    let (mut server, link) = peer();
    let replay = visit(&[], link);
    server.hears("S<", CALL).await;
    server.fail("it broke");
    assert_eq!(replay.await.unwrap().unwrap_err().to_string(), "it broke");
    let (_server, link) = peer();
    let error = visit(&[], link).await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "no answer within 9s");
}
