//! Two pumps, one for each direction, until one side ends.
//!
//! The core decides (pipeline, correlation, steps); this loop does the waiting. Every wait has a deadline. When
//! a side ends, the peers that still wait for an answer are told why.

mod pump;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Direction, ErrorCode, Side};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::link::{Link, LinkEnd, LinkFailure};
use crate::replay::InjectionQueue;
use pump::{Pump, PumpEnd, SettleSignal, SharedWriter, drop_holds_without_client};

/// Deadlines of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct CarryOptions {
    /// A peer that takes nothing for this long is given up.
    pub stall: Duration,
    /// After the client's end: how long the server may take to answer what is open.
    pub drain_open: Duration,
    /// After the client's end with nothing open: how long the server may take to end by itself.
    pub drain_idle: Duration,
    /// After the server's end: how long the client's next request is awaited, to answer it with the reason.
    pub last_request: Duration,
    /// Stray lines before the first message that show that the command is not an MCP server.
    pub stray_lines: u64,
    /// A server that has printed stray lines and no message is not an MCP server either, if a request waits this long.
    pub stray_wait: Duration,
}

impl Default for CarryOptions {
    fn default() -> Self {
        CarryOptions {
            stall: Duration::from_secs(120),
            drain_open: Duration::from_secs(30),
            drain_idle: Duration::from_secs(2),
            last_request: Duration::from_secs(5),
            stray_lines: 1_000,
            stray_wait: Duration::from_secs(10),
        }
    }
}

/// How a conversation ended.
#[derive(Clone, Debug)]
pub enum CarryEnd {
    /// The client closed it: the ordinary way.
    Client,
    /// The server closed it in the ordinary way.
    Server,
    /// It was stopped from outside (a signal, a session's end).
    Stopped,
    /// A side failed.
    Failed(LinkFailure),
}

impl CarryEnd {
    /// In words, for the record.
    pub fn text(&self) -> &str {
        match self {
            CarryEnd::Client => "the client closed the connection",
            CarryEnd::Server => "the server closed the connection",
            CarryEnd::Stopped => "stopped",
            CarryEnd::Failed(failure) => &failure.text,
        }
    }
}

/// Carries frames both ways until a side ends or `stop` resolves.
pub async fn carry(
    connection: &Arc<Connection>,
    client: Link,
    server: Link,
    options: CarryOptions,
    stop: impl Future<Output = ()>,
) -> CarryEnd {
    connection.set_carried();
    let to_client = Mutex::new(client.writer);
    let to_server = Mutex::new(server.writer);
    let mut up = Pump::new(
        connection,
        Some(InjectionQueue::open(connection)),
        Direction::ClientToServer,
        client.reader,
        options,
    );
    let mut down = Pump::new(
        connection,
        None,
        Direction::ServerToClient,
        server.reader,
        options,
    );
    let mut stop = std::pin::pin!(stop);

    let settle = Arc::clone(&down.settle);
    let mut up_run = Box::pin(up.run(&to_server, &to_client));
    let mut down_run = Box::pin(down.run(&to_client, &to_server));
    let first = tokio::select! {
        end = &mut up_run => Some((Side::Client, end)),
        end = &mut down_run => Some((Side::Server, end)),
        () = &mut stop => None,
    };
    // The pump that continues is the one that ran: dropped in the middle of a write, it would lose the rest of it.
    drop(up_run);
    up.close_injections();
    let end = match first {
        None => {
            drop(down_run);
            CarryEnd::Stopped
        }
        Some((Side::Client, PumpEnd::Read(LinkEnd::Closed))) => {
            let writers = (&to_server, &to_client);
            let settling = until_settled(connection, down_run, &settle, writers, options);
            let settled = tokio::select! {
                ended = settling => Some(ended),
                () = &mut stop => None,
            };
            match settled {
                None => CarryEnd::Stopped,
                Some(ended) => tokio::select! {
                    end = drain(ended, &mut down, &to_client, &to_server, options) => end,
                    () = &mut stop => CarryEnd::Stopped,
                },
            }
        }
        // Neither peer is at fault, and nothing is to be waited for.
        Some((_, PumpEnd::Written(LinkEnd::Failed(failure))))
            if failure.code == ErrorCode::RECORD_FAILED =>
        {
            drop(down_run);
            let mut answers = down.take_unsent_answers(&failure);
            answers.extend(up.fail_open(&failure));
            up.write_answers(answers, &to_client, Side::Client).await;
            CarryEnd::Failed(failure)
        }
        // The server took no more: let it say why before judging.
        Some((Side::Client, PumpEnd::Written(written))) => {
            let said = timeout(Duration::from_secs(1), down_run).await;
            let reason = match said {
                Ok(PumpEnd::Read(end)) => end,
                _ => written,
            };
            end_after_server(reason, &mut up, &to_client, &mut stop, options).await
        }
        Some((Side::Server, PumpEnd::Read(end))) => {
            drop(down_run);
            let end = down.explain(end);
            end_after_server(end, &mut up, &to_client, &mut stop, options).await
        }
        // No pump is asked to settle before the client has ended.
        Some((_, PumpEnd::Settled)) | Some((Side::Server, PumpEnd::Written(LinkEnd::Closed))) => {
            drop(down_run);
            CarryEnd::Client
        }
        Some((Side::Client, PumpEnd::Read(LinkEnd::Failed(failure))))
        | Some((Side::Server, PumpEnd::Written(LinkEnd::Failed(failure)))) => {
            drop(down_run);
            CarryEnd::Failed(failure)
        }
    };
    to_server.lock().await.close().await;
    to_client.lock().await.close().await;
    drop((up, down, to_server));
    if let Some(finish) = server.finish {
        finish.await;
    }
    end
}

/// The client has ended: the server may still answer what is open. `Err`: it took too long.
async fn until_settled(
    connection: &Arc<Connection>,
    mut down_run: Pin<Box<impl Future<Output = PumpEnd>>>,
    settle: &SettleSignal,
    (to_server, to_client): (&SharedWriter, &SharedWriter),
    options: CarryOptions,
) -> Result<PumpEnd, Duration> {
    to_server.lock().await.close().await;
    settle.request();
    // An answer that somebody holds comes later.
    let limit = options.drain_open + connection.run.longest_hold();
    let mut holds_dropped = pin!(drop_holds_without_client(connection, to_client));
    let mut is_client_there = true;
    loop {
        let ended = async {
            loop {
                tokio::select! {
                    biased;
                    end = &mut down_run => return end,
                    () = &mut holds_dropped, if is_client_there => is_client_there = false,
                }
            }
        };
        match timeout(limit, ended).await {
            Ok(end) => return Ok(end),
            // Somebody is still editing: the time of that hold stands still.
            Err(_) if connection.run.intercept().is_editing(connection) => {}
            Err(_) => return Err(limit),
        }
    }
}

/// Nothing is open any more, or it took too long: the server should end by itself.
async fn drain(
    mut ended: Result<PumpEnd, Duration>,
    down: &mut Pump,
    to_client: &SharedWriter,
    to_server: &SharedWriter,
    options: CarryOptions,
) -> CarryEnd {
    if matches!(ended, Ok(PumpEnd::Settled)) {
        // All is answered. A server whose end is not the end of its input is told once more.
        down.settle = Arc::default();
        let limit = options.drain_idle;
        to_server.lock().await.close().await;
        ended = timeout(limit, down.run(to_client, to_server))
            .await
            .map_err(|_| limit);
    }
    let end = match ended {
        Ok(PumpEnd::Read(end)) => down.explain(end),
        Ok(PumpEnd::Written(_) | PumpEnd::Settled) => return CarryEnd::Client,
        Err(limit) => {
            let seconds = limit.as_secs();
            let text = format!(
                "the server was still running {seconds} s after the client disconnected and was stopped"
            );
            LinkEnd::failed(Side::Server, ErrorCode::PEER_STALLED, text)
        }
    };
    // A client that has closed its end may still read: what it asked is answered, at least with why not. A server
    // that shuts down cleanly without an answer has nothing to say.
    let failure = failure_of(end);
    if failure.orderly {
        return CarryEnd::Client;
    }
    let answers = down.fail_open(&failure);
    if answers.is_empty() {
        return CarryEnd::Client;
    }
    down.write_answers(answers, to_client, Side::Client).await;
    CarryEnd::Failed(failure)
}

fn failure_of(end: LinkEnd) -> LinkFailure {
    match end {
        LinkEnd::Failed(failure) => failure,
        LinkEnd::Closed => LinkFailure {
            side: Side::Server,
            code: ErrorCode::SERVER_EXITED,
            text: "the server closed the connection".to_owned(),
            orderly: true,
            data: None,
        },
    }
}

/// The server has ended: answer what is open, or the next request, with the reason.
async fn end_after_server(
    end: LinkEnd,
    up: &mut Pump,
    to_client: &SharedWriter,
    stop: impl Future<Output = ()>,
    options: CarryOptions,
) -> CarryEnd {
    let failure = failure_of(end.clone());
    let outcome = match end {
        LinkEnd::Closed => CarryEnd::Server,
        LinkEnd::Failed(failure) => CarryEnd::Failed(failure),
    };
    let mut answers = up.fail_open(&failure);
    if answers.is_empty() {
        answers = tokio::select! {
            answers = timeout(options.last_request, up.refuse_next(&failure)) => answers.unwrap_or_default(),
            () = stop => return CarryEnd::Stopped,
        };
    }
    if !answers.is_empty() {
        up.write_answers(answers, to_client, Side::Client).await;
    }
    outcome
}
