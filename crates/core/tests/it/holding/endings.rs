//! What was decided but not sent when a run ends: the record says so.

use std::sync::Arc;

use mcp_proxy_core::intercept::{InterceptAction, JsonCheck, MessageEdit};
use mcp_proxy_core::{CarryOptions, carry};
use mcp_proxy_session::{RecordOptions, SessionRecord};
use mcp_proxy_wire::{Side, Transport};
use tokio::sync::oneshot;

use super::INTERCEPT;
use super::limits::held;
use crate::transcript::{holding, peer, recorder};

on_both_runtimes!(what_was_decided_but_not_sent_is_undelivered);
async fn what_was_decided_but_not_sent_is_undelivered() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let path = recorder.path().to_owned();
    let run = holding(Some(recorder), INTERCEPT);
    let connection = run.connect(Transport::Stdio, Transport::Stdio);
    let (mut client, client_link) = peer(Side::Client);
    let (mut server, server_link) = peer(Side::Server);
    let (stop, stopped) = oneshot::channel::<()>();
    let carrying = tokio::spawn({
        let connection = Arc::clone(&connection);
        let stopped = async move { drop(stopped.await) };
        async move {
            carry(
                &connection,
                client_link,
                server_link,
                CarryOptions::default(),
                stopped,
            )
            .await
        }
    });
    for number in 1..=3 {
        client.say(&format!(r#"{{"id":{number},"method":"m"}}"#));
    }
    held(&connection, 3).await;
    // The first is not decided, so the others wait for it.
    let intercept = run.intercept();
    let holds = intercept.state().held;
    intercept
        .resolve(holds[1].hold, InterceptAction::Forward, "test")
        .unwrap();
    let edit = MessageEdit::new(r#"{"id":3,"method":"n"}"#, JsonCheck::Json);
    intercept
        .resolve(holds[2].hold, InterceptAction::Modify(edit), "test")
        .unwrap();
    stop.send(()).unwrap();
    carrying.await.unwrap();
    assert_eq!(server.next().await, None);
    run.end("stopped");
    let record = SessionRecord::open(&path).unwrap();
    let rows: Vec<_> = (0..3).map(|row| record.row(row).unwrap()).collect();
    let dropped: Vec<bool> = rows.iter().map(|row| row.is_dropped()).collect();
    let undelivered: Vec<bool> = rows.iter().map(|row| row.is_undelivered()).collect();
    assert_eq!(
        (dropped, undelivered),
        (vec![true, false, false], vec![false, true, true])
    );
}
