//! `replay`: a message of the client, sent to the server again, as it was or edited.
//!
//! This finds the message and the handshake that it needs, checks what may be sent, and tells the outcome as the record
//! has it. The sending itself is in [`crate::replay`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_control::{
    ConnectionNumber, Fault, ReplayRequest, ReplayResult, ReplaySession, with_member,
};
use mcp_proxy_session::{
    ProxyMessage, Redaction, RedactionFacts, ReplayOrigin, SessionRecord, raw_member,
};
use mcp_proxy_wire::{Direction, ErrorCode, ExchangeId, Kind, Message, error_response};

use super::request_handler::to_json;
use super::rows;
use super::{MAX_REPLAYS, ProxyControl, RunServer, redacted_replay, servers};
use crate::replay::{
    self, Handshake, INITIALIZE, ReplayError, ReplayOrder, ReplayReceipt, SingleReplay,
    needed_handshake_messages,
};

/// How long it may take, unless told.
const TIMEOUT_MS: u64 = 30_000;
/// And at most.
const MOST_TIMEOUT_MS: u64 = 600_000;

/// Where a message is sent.
enum ReplayDestination {
    /// To this server, on a session of its own.
    Fresh(RunServer),
    /// On the session of this connection, as the client that sent the exchange would, or as its client did last.
    Live(u32, Option<ExchangeId>),
}

/// A message and what was said before it.
pub(super) struct ReplaySource {
    pub(super) message: ProxyMessage,
    /// What opened its connection, in order.
    opening: Vec<ProxyMessage>,
    /// The beginning of the run is not kept any more, so what opened the connection may be gone.
    cut: bool,
    pub(super) redaction: Option<RedactionFacts>,
}

/// Answers `replay`.
pub(super) async fn replay(
    control: &Arc<ProxyControl>,
    params: ReplayRequest,
    by: &str,
) -> Result<Vec<u8>, Fault> {
    if params.session == Some(ReplaySession::Live) && params.as_is {
        return Err(Fault::params(
            "as_is: what is not JSON-RPC is sent on a fresh session only; its answer would reach the client",
        )
        .because("fresh_only"));
    }
    let timeout = params.timeout_ms.unwrap_or(TIMEOUT_MS);
    if !(1..=MOST_TIMEOUT_MS).contains(&timeout) {
        let text = format!("timeout_ms: 1 to {MOST_TIMEOUT_MS}, not {timeout}");
        return Err(Fault::params(text));
    }
    let found = find(control, params.sequence).await?;
    let way = way(control, &params, &found.message)?;
    let message = message_to_send(control, &found, &params)?;
    let opening = match way {
        ReplayDestination::Fresh(_) => opening(control, &found, &message)?,
        ReplayDestination::Live(..) => Vec::new(),
    };
    let origin = ReplayOrigin {
        sequence: params.sequence,
        is_edited: params.raw.is_some(),
    };
    let once = SingleReplay {
        handshake: opening,
        message,
        parent: None,
        order: Some(ReplayOrder {
            origin,
            by: by.to_owned(),
        }),
        timeout: Duration::from_millis(timeout),
    };
    let place = Arc::clone(&control.replays).try_acquire_owned();
    let Ok(place) = place else {
        let text = format!("{MAX_REPLAYS} replays are under way, and that is the limit");
        return Err(Fault::new(Fault::FAILED, text).because("limit"));
    };
    control
        .run
        .record_event(&mcp_proxy_session::RecordEvent::Note {
            text: &format!("{by}: replay of #{}", params.sequence),
        });
    let own = Arc::clone(control);
    // A viewer that goes does not leave half a session behind.
    let sent = tokio::spawn(async move {
        match way {
            ReplayDestination::Fresh(server) => {
                let (peer, dial) = (server.peer.clone(), &server.dial);
                let asked = replay::replay_on_new_session(&own.run, peer, dial, once, place).await;
                asked.map(|asked| asked.receipt)
            }
            ReplayDestination::Live(connection, like) => {
                let _place = place;
                let session = (connection, like);
                replay::replay_on_client_session(&own.run, session, &once).await
            }
        }
    });
    match sent.await {
        Ok(Ok(replayed)) => outcome_json(control, replayed).await,
        Ok(Err(error)) => Err(refused(error, control.summary.redaction.as_ref())),
        Err(_) => Err(Fault::new(Fault::FAILED, "the replay was stopped")),
    }
}

/// Where the request wants the message to go; unless it says so, where the message went the first time.
fn way(
    control: &ProxyControl,
    params: &ReplayRequest,
    message: &ProxyMessage,
) -> Result<ReplayDestination, Fault> {
    let (connection, server) = (params.connection, params.server.as_deref());
    let is_for_clients_only = |server: RunServer| server.is_for_clients_only;
    let usual =
        match servers::server_of(control, message.connection).is_some_and(is_for_clients_only) {
            true => ReplaySession::Live,
            false => ReplaySession::Fresh,
        };
    match params.session.unwrap_or(usual) {
        ReplaySession::Fresh => {
            let named = servers::named_server(control, connection, server)?;
            let server = named.or_else(|| servers::server_of(control, message.connection));
            // Another server than the one that the message went to may do something else with it.
            let server = server.or_else(|| match &control.callbacks.servers[..] {
                [only] => Some(only.clone()),
                _ => None,
            });
            let server = server.ok_or_else(|| {
                let text = "server: name the one to send it to; this message went to none that can be asked by itself";
                Fault::params(text)
            })?;
            if server.is_for_clients_only {
                let text = "session: only a client can open a session here; send it on a live one";
                return Err(Fault::params(text).because("live_only"));
            }
            Ok(ReplayDestination::Fresh(server))
        }
        ReplaySession::Live if server.is_some() => Err(Fault::params(
            "server: a live session is that of a connection; give connection instead",
        )),
        ReplaySession::Live => match connection {
            Some(other) if other.0 != message.connection => {
                let other = servers::find_connection(control, other)?;
                // The exchange of the message means nothing on another connection.
                Ok(ReplayDestination::Live(other.id, None))
            }
            _ => {
                let like = (message.exchange != 0).then_some(ExchangeId(message.exchange));
                Ok(ReplayDestination::Live(message.connection, like))
            }
        },
    }
}

/// Why nothing came of it. What a server wrote may be in it, so what is hidden in the record is hidden here.
fn refused(error: ReplayError, hidden: Option<&Redaction>) -> Fault {
    let reason = match &error {
        ReplayError::Gone(_) => "server_gone",
        ReplayError::Refused(_) => "handshake_refused",
        ReplayError::Late(_) => "timeout",
        ReplayError::NotLive(_) => "not_live",
        ReplayError::Unanswered(_) | ReplayError::Unfit(_) => "unanswered",
    };
    let text = match (error, hidden) {
        (error @ ReplayError::Unfit(_), _) => return Fault::params(format!("raw: {error}")),
        (ReplayError::Refused(answer), Some(hidden)) => {
            ReplayError::Refused(Box::new(shown(*answer, hidden))).to_string()
        }
        // The error was recorded as a message, so rules for messages are for it.
        (ReplayError::Unanswered(text), Some(hidden)) => {
            let told = error_response(None, ErrorCode::SERVER_UNAVAILABLE, &text, None);
            replay::error_text(&shown(told, hidden))
        }
        // The last words of a process, or the first of an answer that was none.
        (ReplayError::Gone(end), Some(hidden)) => {
            let told = shown(Message::parse(end.to_string()), hidden);
            String::from_utf8_lossy(told.raw()).into_owned()
        }
        (error, _) => error.to_string(),
    };
    Fault::new(Fault::FAILED, text).because(reason)
}

fn shown(message: Message, hidden: &Redaction) -> Message {
    let redacted = hidden.message(&message);
    redacted.map_or(message, |redacted| redacted.message)
}

/// What is sent: the edit, or what went to the server the last time.
fn message_to_send(
    control: &ProxyControl,
    found: &ReplaySource,
    params: &ReplayRequest,
) -> Result<Message, Fault> {
    let recorded = &found.message;
    let sequence = recorded.sequence;
    if recorded.direction == Direction::ServerToClient {
        return Err(Fault::params(format!(
            "sequence: #{sequence} is a message of the server; only those of a client can be replayed"
        ))
        .because("from_server"));
    }
    let edit = match params.raw.as_deref().map(|raw| raw.get()) {
        None => None,
        Some(text) if text.starts_with('"') => {
            let text: String = serde_json::from_str(text)
                .map_err(|error| Fault::params(format!("raw: {error}")))?;
            Some(Bytes::from(text))
        }
        Some(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
    };
    let is_edited = edit.is_some();
    let message = redacted_replay::whole_message(control, found, edit)?;
    let sendable = matches!(message.kind(), Kind::Request | Kind::Notification);
    match (is_edited, sendable || params.as_is) {
        (_, true) => Ok(message),
        (true, false) => Err(Fault::params(
            "raw: this is not a JSON-RPC request or notification; as_is sends it anyway",
        )),
        (false, false) => Err(Fault::params(format!(
            "sequence: #{sequence} is not a request or notification; as_is sends it anyway"
        ))),
    }
}

/// What opens a session in the era of the message.
fn opening(
    control: &ProxyControl,
    found: &ReplaySource,
    message: &Message,
) -> Result<Vec<Message>, Fault> {
    let needed = needed_handshake_messages(message);
    if needed > 0 && found.opening.is_empty() && found.cut {
        let text = format!(
            "the handshake of connection c{} is not kept any more",
            found.message.connection
        );
        return Err(Fault::new(Fault::NOT_KEPT, text));
    }
    let opening = found.opening.iter().take(needed);
    opening
        .map(|recorded| {
            if recorded.redacted > 0 {
                if let Some(original) = redacted_replay::original(control, recorded) {
                    return Ok(Message::parse(original));
                }
                let text = format!(
                    "the handshake of its session (#{}) has redacted values, so no fresh session can be opened",
                    recorded.sequence
                );
                return Err(Fault::new(Fault::NOT_KEPT, text).because("redacted"));
            }
            bytes_of(recorded)
        })
        .collect()
}

pub(super) fn bytes_of(recorded: &ProxyMessage) -> Result<Message, Fault> {
    let bytes = recorded.raw.to_bytes();
    if bytes.is_empty() {
        let text = format!("the bytes of #{} were not kept", recorded.sequence);
        return Err(Fault::new(Fault::NOT_KEPT, text));
    }
    Ok(Message::parse(bytes))
}

async fn find(control: &Arc<ProxyControl>, sequence: u64) -> Result<ReplaySource, Fault> {
    rows::in_record(control, move |session| source_in(session, sequence)).await
}

fn source_in(session: &SessionRecord, sequence: u64) -> Result<ReplaySource, Fault> {
    let index = session.find(sequence).ok_or_else(|| unknown(sequence))?;
    let message = session.message(index).map_err(rows::failed)?;
    let mut opening = Handshake::default();
    for index in 0..session.len() {
        let Some(row) = session.row(index) else { break };
        let of_client = row.direction() == Direction::ClientToServer;
        if row.connection() != message.connection || !of_client || !row.is_from_peer() {
            continue;
        }
        let method = session.method(row);
        if begins_another(method, row.sequence(), sequence) {
            break;
        }
        opening.observe(method, || index);
    }
    let opening = opening
        .all()
        .map(|index| session.message(index).map_err(rows::failed));
    Ok(ReplaySource {
        message,
        opening: opening.collect::<Result<_, _>>()?,
        cut: session.missing_beginning().is_some(),
        redaction: session.redaction().cloned(),
    })
}

/// Whether a message opens the connection anew, after the one that is looked for.
fn begins_another(method: Option<&str>, sequence: u64, upto: u64) -> bool {
    sequence > upto && method == Some(INITIALIZE)
}

fn unknown(sequence: u64) -> Fault {
    Fault::params(format!(
        "sequence: message #{sequence} does not exist or is no longer kept"
    ))
    .because("unknown")
}

/// The outcome, as the record has it: what is hidden there is hidden here.
async fn outcome_json(
    control: &Arc<ProxyControl>,
    replayed: ReplayReceipt,
) -> Result<Vec<u8>, Fault> {
    let answer = match replayed.answer {
        Some(sequence) => Some(find_one(control, sequence).await?),
        None => None,
    };
    let latency = answer.as_ref().and_then(|answer| answer.latency);
    let facts = to_json(&ReplayResult {
        request: replayed.request,
        answer: replayed.answer,
        conn: ConnectionNumber(replayed.connection),
        latency_ms: latency.map(|latency| latency.as_micros() as f64 / 1000.0),
        raw: None,
    });
    let raw: Cow<'_, [u8]> = match &answer {
        Some(answer) => raw_member(&answer.raw).into(),
        None => b"\"raw\":null".as_slice().into(),
    };
    Ok(with_member(facts, &raw))
}

async fn find_one(control: &Arc<ProxyControl>, sequence: u64) -> Result<ProxyMessage, Fault> {
    rows::in_record(control, move |session| {
        let index = session.find(sequence).ok_or_else(|| unknown(sequence))?;
        session.message(index).map_err(rows::failed)
    })
    .await
}
