//! One message more on a session that a client has open.
//!
//! It goes in by an [`InjectionSender`] or a [`MessageInjector`], under an id and a progress token of our own, and what comes back under them is
//! taken out before it reaches the client. Whatever else the server says because of it is the client's, unless it comes
//! on an HTTP stream of its own.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{Direction, ExchangeId, Id, Message, StreamId, json_string};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::injection_queue::{InjectionSender, MessageInjector, SendFuture};
use super::single_replay::{ReplayError, ReplayReceipt, SingleReplay, with_own_ids};
use super::waiters::AnswerResult;
use crate::connection::Connection;
use crate::proxy_run::ProxyRun;

/// A cancel, and an answer in the client's place, may take so long.
pub(crate) const DELIVERY: Duration = Duration::from_secs(30);

/// Sends a message on the session of a connection that is open, as the client would that sent what came by an exchange. There
/// is no handshake.
pub async fn replay_on_client_session(
    run: &ProxyRun,
    (connection, like): (u32, Option<ExchangeId>),
    once: &SingleReplay,
) -> Result<ReplayReceipt, ReplayError> {
    let limit = once.timeout;
    let way = InjectionPath::find(run, connection, like)?;
    let (message, id) = with_own_ids(
        &once.message,
        &json_string(&run.injection_queues().new_id()),
    )?;
    let has_streams = names_version(&message);
    let connection = Arc::clone(way.connection());
    let answer = id
        .as_ref()
        .map(|id| connection.replay_waiters().expect(id.clone()));
    let answer = answer.transpose()?;
    let (request, sending) = way.send(message).inspect_err(|_| {
        if let Some(id) = &id {
            connection.replay_waiters().forget(id);
        }
    })?;
    if let Some(order) = &once.order {
        connection.record_replay(request, order);
    }
    let replayed = ReplayReceipt {
        connection: connection.id,
        request,
        answer: None,
    };
    let (Some(id), Some(answer)) = (id, answer) else {
        let sent = timeout(limit, sending).await;
        return match sent.map_err(|_| ReplayError::Late(limit))? {
            Ok(()) => Ok(replayed),
            Err(why) => Err(ReplayError::Unanswered(why)),
        };
    };
    let told = timeout(limit, until_told(sending, answer)).await;
    if !matches!(told, Ok(Ok(_))) {
        connection.give_up(Direction::ClientToServer, StreamId::Only, &id);
    }
    match told {
        Ok(Ok(answer)) => Ok(ReplayReceipt {
            answer: Some(answer),
            ..replayed
        }),
        Ok(Err(why)) => Err(ReplayError::Unanswered(why)),
        Err(_) => {
            // A modern server that is asked over HTTP has been told already: the stream of its answer was closed.
            if !(has_streams && matches!(way, InjectionPath::Post(..))) {
                way.cancel(&id);
            }
            Err(ReplayError::Late(limit))
        }
    }
}

/// What is told about the answer; or why it cannot be sent, if nothing is.
async fn until_told(
    sending: SendFuture,
    mut answer: oneshot::Receiver<AnswerResult>,
) -> AnswerResult {
    let ended = || Err("the session ended before the answer".to_owned());
    tokio::select! {
        biased;
        told = &mut answer => return told.unwrap_or_else(|_| ended()),
        sent = sending => if let Err(why) = sent {
            return answer.try_recv().unwrap_or(Err(why));
        }
    }
    answer.await.unwrap_or_else(|_| ended())
}

/// How a message gets into a conversation.
enum InjectionPath {
    Queue(InjectionSender),
    Post(
        Arc<dyn MessageInjector>,
        Arc<Connection>,
        Option<ExchangeId>,
    ),
}

impl InjectionPath {
    fn find(
        run: &ProxyRun,
        connection: u32,
        like: Option<ExchangeId>,
    ) -> Result<InjectionPath, ReplayError> {
        let injection_queues = run.injection_queues();
        if let Some(injections) = injection_queues.get(connection) {
            return Ok(InjectionPath::Queue(injections));
        }
        let posted = injection_queues.injector().and_then(|injector| {
            let connection = injector.connection(connection)?;
            Some(InjectionPath::Post(injector, connection, like))
        });
        posted.ok_or(ReplayError::NotLive(
            "its session has ended, or carried nothing but its handshake; use a fresh one",
        ))
    }

    fn connection(&self) -> &Arc<Connection> {
        match self {
            InjectionPath::Queue(injections) => &injections.connection,
            InjectionPath::Post(_, connection, _) => connection,
        }
    }

    /// Records it; its number, and what sends it.
    fn send(&self, message: Message) -> Result<(u64, SendFuture), ReplayError> {
        match self {
            InjectionPath::Queue(injections) => {
                let request = injections.enqueue(message)?;
                Ok((request, Box::pin(std::future::ready(Ok(())))))
            }
            InjectionPath::Post(injector, connection, like) => {
                let posted = injector.inject(connection, *like, message)?;
                Ok((posted.request, posted.sending))
            }
        }
    }

    /// Nobody waits any more: the server is told, as far as it can be.
    fn cancel(&self, id: &Id) {
        let id = String::from_utf8_lossy(id.token());
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no answer in time"}}}}"#
        );
        // A session that is about to end needs no cancel.
        if let Ok((_, sending)) = self.send(Message::parse(cancel)) {
            tokio::spawn(timeout(DELIVERY, sending));
        }
    }
}
