//! A message that a rule sends to another server: on a session of its own there, and its answer comes back to the client
//! as if the proxy had made it.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{ErrorCode, Field, Kind, Message, error_response};

use super::Lane;
use crate::connection::Connection;
use crate::intercept::{Entry, Released};
use crate::peer::Peer;
use crate::replay::{Asked, Once, ReplayError, fresh, standard};
use crate::rules::{DelayPlace, REDIRECT_TIME};

impl Lane {
    /// Sends it there in a task. What was asked for is answered in any case.
    pub(super) fn redirect(&self, entry: Entry, message: Message, server: String, delay: Duration) {
        let connection = Arc::clone(&self.connection);
        entry.mailbox.expect();
        let Some(place) = connection.pipeline.rules().place(message.len()) else {
            entry.give_back(refused(&entry, "too many messages wait already"));
            return;
        };
        tokio::spawn(async move {
            let waited = entry.unless_abandoned(tokio::time::sleep(delay));
            if waited.await.is_none() {
                return;
            }
            if entry.is_given_up() {
                entry.give_back(entry.left());
                return;
            }
            // A client that goes does not leave half a session behind: it ends by itself.
            let call = entry.number();
            let asking = tokio::spawn(ask(connection, message, call, server, place));
            let Some(asked) = entry.unless_abandoned(asking).await else {
                return;
            };
            let released = match asked.unwrap_or_else(|_| Err("it was stopped".to_owned())) {
                Ok(Asked {
                    answer: Some(answer),
                    ..
                }) => entry.answered(under_its_id(&entry, answer)),
                Ok(_) => entry.withheld("a rule"),
                Err(why) => refused(&entry, &why),
            };
            entry.give_back(released);
        });
    }
}

async fn ask(
    connection: Arc<Connection>,
    message: Message,
    call: u64,
    server: String,
    place: DelayPlace,
) -> Result<Asked, String> {
    let (transport, dial) = connection.pipeline.rules().server(&server)?;
    let mut opening = connection.opening(&message);
    if opening.is_empty() {
        opening = standard(&message);
    }
    let once = Once {
        opening,
        message,
        parent: Some(call),
        timeout: REDIRECT_TIME,
    };
    let server = Peer::new(transport).named(&server);
    let asked = fresh(&connection.pipeline, server, &dial, once, place).await;
    asked.map_err(|error: ReplayError| error.to_string())
}

/// The answer carries an id of ours.
fn under_its_id(entry: &Entry, answer: Message) -> Message {
    let id = entry.message.id_token().unwrap_or(b"null").to_vec();
    let place = answer.span(Field::Id);
    let changed = place.and_then(|place| answer.splice(&[(place, &id[..])]).ok());
    changed.unwrap_or(answer)
}

fn refused(entry: &Entry, why: &str) -> Released {
    if entry.message.kind() != Kind::Request {
        entry
            .connection
            .note(&format!("a message was not redirected: {why}"));
        return entry.withheld("a rule");
    }
    let id = entry.message.id();
    let text = format!("a rule of the proxy sends this to another server: {why}");
    let code = ErrorCode::SERVER_UNAVAILABLE;
    entry.answered(error_response(id.as_ref(), code, &text, None))
}
