//! A message that a rule sends to another server: on a session of its own there, and its answer comes back to the client
//! as if the proxy had made it.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{ErrorCode, Field, Kind, Message, error_response};

use super::MessagePipeline;
use crate::connection::Connection;
use crate::intercept::{ActiveHold, HoldOutcome};
use crate::peer::Peer;
use crate::replay::{
    ReplayError, ReplayedAnswer, SingleReplay, replay_on_new_session, standard_handshake,
};
use crate::rules::{DelayPermit, REDIRECT_TIME};

impl MessagePipeline {
    /// Sends it there in a task. What was asked for is answered in any case.
    pub(super) fn redirect(
        &self,
        entry: ActiveHold,
        message: Message,
        server: String,
        delay: Duration,
    ) {
        let connection = Arc::clone(&self.connection);
        entry.release_queue.expect();
        let Some(place) = connection.run.rules().take_delay_permit(message.len()) else {
            entry.give_back(refused(&entry, "too many messages wait already"));
            return;
        };
        tokio::spawn(async move {
            let waited = entry.unless_abandoned(tokio::time::sleep(delay));
            if waited.await.is_none() {
                return;
            }
            if entry.is_given_up() {
                entry.give_back(entry.resolve_abandoned());
                return;
            }
            entry.note_released();
            // A client that goes does not leave half a session behind: it ends by itself.
            let call = entry.number();
            let asking = tokio::spawn(ask_server(connection, message, call, server, place));
            let Some(asked) = entry.unless_abandoned(asking).await else {
                return;
            };
            let released = match asked.unwrap_or_else(|_| Err("it was stopped".to_owned())) {
                Ok(ReplayedAnswer {
                    answer: Some(answer),
                    ..
                }) => entry.resolve_with_answer(with_client_id(&entry, answer)),
                Ok(_) => entry.resolve_dropped("a rule"),
                Err(why) => refused(&entry, &why),
            };
            entry.give_back(released);
        });
    }
}

async fn ask_server(
    connection: Arc<Connection>,
    message: Message,
    call: u64,
    server: String,
    place: DelayPermit,
) -> Result<ReplayedAnswer, String> {
    let (transport, dial) = connection.run.rules().server(&server)?;
    let mut opening = connection.handshake_for(&message);
    if opening.is_empty() {
        opening = standard_handshake(&message);
    }
    let once = SingleReplay {
        handshake: opening,
        message,
        parent: Some(call),
        order: None,
        timeout: REDIRECT_TIME,
    };
    let server = Peer::new(transport).named(&server);
    let asked = replay_on_new_session(&connection.run, server, &dial, once, place).await;
    asked.map_err(|error: ReplayError| error.to_string())
}

/// The answer carries an id of ours.
fn with_client_id(entry: &ActiveHold, answer: Message) -> Message {
    let id = entry.message.id_token().unwrap_or(b"null").to_vec();
    let place = answer.span(Field::Id);
    let changed = place.and_then(|place| answer.splice(&[(place, &id[..])]).ok());
    changed.unwrap_or(answer)
}

fn refused(entry: &ActiveHold, why: &str) -> HoldOutcome {
    if entry.message.kind() != Kind::Request {
        entry
            .connection
            .note(&format!("a message was not redirected: {why}"));
        return entry.resolve_dropped("a rule");
    }
    let id = entry.message.id();
    let text = format!("a rule of the proxy sends this to another server: {why}");
    let code = ErrorCode::SERVER_UNAVAILABLE;
    entry.resolve_with_answer(error_response(id.as_ref(), code, &text, None))
}
