//! A message more on a conversation that is being carried: what is whose.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::replay::{ReplayError, Replayed, live};
use mcp_proxy_core::{Connection, Pipeline};
use mcp_proxy_wire::{Direction, Message, Transport};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::transcript::{Peer, carried, pipeline};

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
