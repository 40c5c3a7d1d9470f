//! One message, sent to the server again on a session of its own.
//!
//! [`ReplayConversation`] is that session: its handshake is the recorded one, its ids are ours, and everything that is said goes into
//! the record as a connection of its own. Nobody stands behind it, so messages are neither held nor changed, and what the
//! server asks is answered with an error. It is not a pump: what is said follows from what was heard.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::ReplayOrigin;
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, Field, Frame, Id, Kind, Message, Origin, StreamId, error_response,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::{Connection, NewConnection};
use crate::link::{BoxFuture, Dial, FrameReader, FrameWriter, LinkEnd, OutgoingFrame};
use crate::message_pipeline::{MessagePipeline, PipelineOutput};
use crate::peer::Peer;
use crate::proxy_run::ProxyRun;

/// What was sent without asking for an answer may still have an effect: what the server says is recorded for so long.
const AFTERMATH: Duration = Duration::from_secs(2);
/// A server that takes no end is left to its supervisor.
const CLOSING: Duration = Duration::from_secs(5);

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct SingleReplay {
    /// What opens the session: `initialize` and `notifications/initialized` as they were recorded, or nothing.
    pub handshake: Vec<Message>,
    /// The message, ids as recorded.
    pub message: Message,
    /// The record's number of the call that it is sent for, if there is one.
    pub parent: Option<u64>,
    /// Who sends which message of the record again, if somebody does.
    pub order: Option<ReplayOrder>,
    /// All of it may take this long.
    pub timeout: Duration,
}

/// A person's wish to send a recorded message again.
#[derive(Clone, Debug)]
pub struct ReplayOrder {
    /// The message.
    pub origin: ReplayOrigin,
    /// Who wants it.
    pub by: String,
}

/// A message that was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayReceipt {
    /// The connection that carried it.
    pub connection: u32,
    /// Its number in the record.
    pub request: u64,
    /// The number of its answer; `None` if it asked for none.
    pub answer: Option<u64>,
}

/// A message that was sent again, and what came back.
#[derive(Clone, Debug)]
pub struct ReplayedAnswer {
    /// Their numbers.
    pub receipt: ReplayReceipt,
    /// The answer, under our id; `None` if it asked for none.
    pub answer: Option<Message>,
}

/// Why a message could not be sent again, or got no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReplayError {
    /// The server could not be reached, or ended.
    #[error("{0}")]
    Gone(LinkEnd),
    /// The server would not open a session: its answer.
    #[error("the server refused the handshake: {}", error_text(.0))]
    Refused(Box<Message>),
    /// The link answered in the server's place: it could not be asked.
    #[error("{0}")]
    Unanswered(String),
    /// It took too long.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// The message cannot be written on one line, or the id in it cannot be replaced.
    #[error("the message cannot be sent: {0}")]
    Unfit(&'static str),
    /// The connection that was meant takes no messages of others.
    #[error("{0}")]
    NotLive(&'static str),
}

/// Sends it on a session of its own. The session is ended in a task, so that the answer does not wait for that; `place` is
/// kept until then.
pub async fn replay_on_new_session(
    run: &Arc<ProxyRun>,
    server: Peer,
    dial: &Dial,
    once: SingleReplay,
    place: impl Send + 'static,
) -> Result<ReplayedAnswer, ReplayError> {
    let deadline = Instant::now() + once.timeout;
    let late = ReplayError::Late(once.timeout);
    let connection = run.open(NewConnection {
        parent: once.parent,
        ..NewConnection::between(Peer::in_process("replay"), server)
    });
    let opened = timeout_at(deadline, dial(Arc::clone(&connection))).await;
    let link = match opened.map_err(|_| late.clone()) {
        Ok(Ok(link)) => link,
        Ok(Err(end)) => {
            connection.close(&end.to_string());
            return Err(ReplayError::Gone(end));
        }
        Err(late) => {
            connection.close("the server was not reached in time");
            return Err(late);
        }
    };
    let mut visit = ReplayConversation {
        up: connection.record_only_pipeline(Direction::ClientToServer),
        down: connection.record_only_pipeline(Direction::ServerToClient),
        reader: link.reader,
        writer: link.writer,
        finish: link.finish,
        connection,
    };
    let outcome = timeout_at(deadline, visit.play(once)).await;
    let outcome = outcome.unwrap_or(Err(late));
    let more = matches!(&outcome, Ok(asked) if asked.answer.is_none());
    tokio::spawn(async move {
        visit
            .end(if more { AFTERMATH } else { Duration::ZERO })
            .await;
        drop(place);
    });
    outcome
}

/// A message that came, and its number.
struct ReceivedMessage {
    sequence: u64,
    message: Message,
    /// The link made it, because the server could not be asked.
    own: bool,
}

/// A session that is opened for one message.
struct ReplayConversation {
    connection: Arc<Connection>,
    up: MessagePipeline,
    down: MessagePipeline,
    reader: Box<dyn FrameReader>,
    writer: Box<dyn FrameWriter>,
    finish: Option<BoxFuture<'static, ()>>,
}

impl ReplayConversation {
    async fn play(&mut self, once: SingleReplay) -> Result<ReplayedAnswer, ReplayError> {
        for (number, message) in once.handshake.iter().enumerate() {
            let (message, id) = with_own_ids(message, &(number + 1).to_string())?;
            self.send(message).await.map_err(ReplayError::Gone)?;
            let Some(id) = id else {
                continue;
            };
            let answer = self.receive_answer(&id).await?.message;
            if answer.kind() == Kind::Error {
                return Err(ReplayError::Refused(Box::new(answer)));
            }
        }
        let number = once.handshake.len() + 1;
        let (message, id) = with_own_ids(&once.message, &number.to_string())?;
        let request = self.send_for(message, once.order.as_ref()).await;
        let request = request.map_err(ReplayError::Gone)?;
        let answer = match id {
            Some(id) => Some(self.receive_answer(&id).await?),
            None => None,
        };
        Ok(ReplayedAnswer {
            receipt: ReplayReceipt {
                connection: self.connection.id,
                request,
                answer: answer.as_ref().map(|heard| heard.sequence),
            },
            answer: answer.map(|heard| heard.message),
        })
    }

    /// Records and sends a message; returns its number.
    async fn send(&mut self, message: Message) -> Result<u64, LinkEnd> {
        self.send_for(message, None).await
    }

    async fn send_for(
        &mut self,
        message: Message,
        order: Option<&ReplayOrder>,
    ) -> Result<u64, LinkEnd> {
        let frame = Frame::message(StreamId::Only, Origin::Replay, message);
        let now = self.connection.run.now();
        let mut passed = PipelineOutput::default();
        self.up.pass(&mut vec![frame], now, &mut passed)?;
        let sequence = passed.forward.first().and_then(|out| out.frame().sequence);
        let sequence = sequence.unwrap_or_default();
        if let Some(order) = order {
            self.connection.record_replay(sequence, order);
        }
        if let Err(end) = self.writer.write(&mut passed.forward).await {
            self.connection.undelivered(&[sequence], &end.to_string());
            // Its end says more than that it takes no more.
            return Err(match timeout(AFTERMATH, self.read()).await {
                Ok((_, Some(end))) => end,
                _ => end,
            });
        }
        Ok(sequence)
    }

    /// Waits for the answer to `id`, and answers what the server asks meanwhile.
    async fn receive_answer(&mut self, id: &Id) -> Result<ReceivedMessage, ReplayError> {
        loop {
            let (all, end) = self.read().await;
            for heard in all {
                let parts = heard.message.parts();
                for message in parts.unwrap_or_else(|| vec![heard.message]) {
                    let answers = || message.id().is_some_and(|it| it.key() == id.key());
                    match message.kind() {
                        Kind::Request => {
                            let said = self.send(decline_request(&message)).await;
                            said.map_err(ReplayError::Gone)?;
                        }
                        Kind::Error if heard.own && answers() => {
                            return Err(ReplayError::Unanswered(error_text(&message)));
                        }
                        Kind::Response | Kind::Error if answers() => {
                            return Ok(ReceivedMessage { message, ..heard });
                        }
                        _ => {}
                    }
                }
            }
            if let Some(end) = end {
                return Err(ReplayError::Gone(end));
            }
        }
    }

    /// Records what comes next; with the end, if that came too.
    async fn read(&mut self) -> (Vec<ReceivedMessage>, Option<LinkEnd>) {
        let mut batch = Vec::new();
        let mut end = self.reader.read(&mut batch).await.err();
        let now = self.connection.run.now();
        let mut passed = PipelineOutput::default();
        if let Err(lost) = self.down.pass(&mut batch, now, &mut passed) {
            end = Some(lost);
        }
        let frames = passed
            .forward
            .into_iter()
            .filter_map(OutgoingFrame::into_written);
        let heard = frames.filter_map(|frame| match frame.body {
            Body::Message(message) => Some(ReceivedMessage {
                sequence: frame.sequence?,
                message,
                own: frame.origin == Origin::Proxy,
            }),
            _ => None,
        });
        (heard.collect(), end)
    }

    async fn end(mut self, aftermath: Duration) {
        drop(timeout(CLOSING, self.writer.close()).await);
        let until = Instant::now() + aftermath;
        while let Ok((_, None)) = timeout_at(until, self.read()).await {}
        drop((self.reader, self.writer));
        if let Some(finish) = self.finish {
            finish.await;
        }
        self.connection.close("the replay is over");
    }
}

/// The message under an id and a progress token of our own, on one line; and that id, if it asks for an answer.
pub(super) fn with_own_ids(
    message: &Message,
    ours: &str,
) -> Result<(Message, Option<Id>), ReplayError> {
    let asks = message.kind() == Kind::Request;
    let mut edits = Vec::new();
    if asks {
        edits.extend(message.span(Field::Id));
        edits.extend(message.span(Field::Meta("progressToken")));
        edits.sort_by_key(|span| span.start);
    }
    let edits: Vec<_> = edits.iter().map(|span| (*span, ours.as_bytes())).collect();
    let unfit = "its id cannot be replaced";
    let changed = message.splice(&edits);
    let changed = changed.map_err(|_| ReplayError::Unfit(unfit))?;
    let unfit = "it has line breaks and is not JSON";
    let line = mcp_proxy_wire::flatten(&changed).ok_or(ReplayError::Unfit(unfit))?;
    let id = asks.then(|| Id::from_token(ours.as_bytes()));
    Ok((line, id))
}

/// What an error says.
pub(crate) fn error_text(answer: &Message) -> String {
    let Some(error) = answer.error() else {
        return String::new();
    };
    let said = answer.member(error, "message");
    let said = said.and_then(|span| answer.text_at(span));
    let whole = || String::from_utf8_lossy(answer.slice(error));
    said.unwrap_or_else(whole).into_owned()
}

/// Nobody is there to be asked; but that somebody is there can be said.
pub(super) fn decline_request(request: &Message) -> Message {
    let id = request.id();
    if let (Some("ping"), Some(token)) = (request.method().as_deref(), request.id_token()) {
        let answer = [
            br#"{"jsonrpc":"2.0","id":"#,
            token,
            br#","result":{}}"#.as_slice(),
        ];
        return Message::parse(answer.concat());
    }
    let text = "this session is a replay of one message; no client is there to answer";
    error_response(id.as_ref(), ErrorCode::METHOD_NOT_FOUND, text, None)
}
