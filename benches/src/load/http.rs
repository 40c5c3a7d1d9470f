//! The closed loop over HTTP: one kept connection, and for legacy requests one session, for each request in flight.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;

use super::connection::LoadConnection;
use super::{AnswerEnds, LoadPlan, MeasuredWindow, Measurement, within};
use crate::canned::{self, AnswerSize, BenchEra, FIRST_ID, LEGACY_VERSION, MODERN_VERSION};
use crate::usage::{self, TreeUsage};

/// Where the contender listens and which processes to count (`None`: no proxy between).
#[derive(Clone, Debug)]
pub struct LoadTarget {
    pub address: SocketAddr,
    pub path: String,
    pub process: Option<u32>,
}

/// The request that a client repeats. Its body has `FIRST_ID` where the ids go.
#[derive(Clone, Debug)]
pub struct LoadCall {
    pub tool: String,
    pub body: String,
    pub answer: ExpectedAnswer,
}

/// How the answer to a call is checked, besides its id.
#[derive(Clone, Debug)]
pub enum ExpectedAnswer {
    /// It is a result of at least this size.
    Sized(AnswerSize),
    /// It has this text in it.
    Holding(String),
}

impl LoadCall {
    /// A call of `tool` under the name that the client sees.
    pub fn of_tool(era: BenchEra, tool: &str) -> LoadCall {
        LoadCall {
            tool: tool.to_owned(),
            body: canned::call(era, tool),
            answer: ExpectedAnswer::Sized(AnswerSize::Small),
        }
    }

    /// A call of the dispatcher whose answer holds `text`.
    pub fn of_dispatcher(body: String, text: impl Into<String>) -> LoadCall {
        LoadCall {
            tool: canned::DISPATCHER.to_owned(),
            body,
            answer: ExpectedAnswer::Holding(text.into()),
        }
    }
}

/// A session on a connection of its own.
pub(super) struct LoadSession {
    pub(super) connection: LoadConnection,
    id: Option<String>,
    /// The id of its next call.
    next: u32,
}

/// A client: its session and its request, made once.
pub(super) struct HttpLoadClient {
    pub(super) session: LoadSession,
    request: Vec<u8>,
    id_at: usize,
    answer: ExpectedAnswer,
}

pub fn measure(target: &LoadTarget, load: &LoadPlan) -> Result<Measurement> {
    let call = LoadCall {
        answer: ExpectedAnswer::Sized(load.size),
        ..LoadCall::of_tool(load.era, load.size.tool())
    };
    measure_calls(target, load, &[call])
}

/// Measures clients that take turns in what they call.
pub fn measure_calls(
    target: &LoadTarget,
    load: &LoadPlan,
    calls: &[LoadCall],
) -> Result<Measurement> {
    within(load.limit(), run(target, load, calls))
}

/// Opens one legacy session and asks nothing more: the end of a start.
pub fn open_once(target: &LoadTarget) -> Result<()> {
    within(Duration::from_secs(10), async {
        LoadSession::open(target, BenchEra::Legacy).await?;
        Ok(())
    })
}

pub(super) async fn run(
    target: &LoadTarget,
    load: &LoadPlan,
    calls: &[LoadCall],
) -> Result<Measurement> {
    let read_usage = || target.process.map(usage::of_tree).unwrap_or_default();
    let idle = read_usage();
    let mut clients = Vec::new();
    for call in calls.iter().cycle().take(load.in_flight) {
        clients.push(HttpLoadClient::open(target, load.era, call).await?);
    }
    let (clients, _) = loop_for(clients, load, load.warm_up).await?;
    let before: TreeUsage = read_usage();
    let (clients, window) = loop_for(clients, load, load.time).await?;
    let after = read_usage();
    for client in clients {
        client.session.close(target).await?;
    }
    let mut sample = window.sample(load.size, &before, &after, target.process.is_some());
    sample.idle_mb = target.process.map(|_| idle.proxy.resident_megabytes);
    Ok(sample)
}

async fn loop_for(
    clients: Vec<HttpLoadClient>,
    load: &LoadPlan,
    time: Duration,
) -> Result<(Vec<HttpLoadClient>, MeasuredWindow)> {
    let each = load.most_requests / clients.len() as u64;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(client.call_until(start + time, each));
    }
    let mut clients = Vec::new();
    let mut latencies = Vec::new();
    while let Some(finished) = tasks.join_next().await {
        let (client, mut own) = finished??;
        clients.push(client);
        latencies.append(&mut own);
    }
    Ok((
        clients,
        MeasuredWindow {
            latencies,
            elapsed: start.elapsed(),
        },
    ))
}

impl LoadSession {
    pub(super) async fn open(target: &LoadTarget, era: BenchEra) -> Result<LoadSession> {
        let mut connection = LoadConnection::open(target.address).await?;
        let opening = head(
            target,
            era,
            None,
            "server/discover",
            None,
            canned::opening(era).as_bytes(),
        );
        let answer = connection.exchange(&opening).await?;
        ensure!(
            answer.status == 200,
            "the first request was answered {}: {}",
            answer.status,
            connection.body.shown()
        );
        let session = answer.session;
        if era == BenchEra::Legacy {
            let note = head(
                target,
                era,
                session.as_deref(),
                "",
                None,
                canned::initialized().as_bytes(),
            );
            let status = connection.exchange(&note).await?.status;
            ensure!(
                (200..300).contains(&status),
                "notifications/initialized was answered {status}"
            );
        }
        Ok(LoadSession {
            connection,
            id: session,
            next: FIRST_ID + 1,
        })
    }

    /// A legacy request of this session with its head.
    pub(super) fn request(&self, target: &LoadTarget, body: &str) -> Vec<u8> {
        head(
            target,
            BenchEra::Legacy,
            self.id.as_deref(),
            "",
            None,
            body.as_bytes(),
        )
    }

    /// Ends the session, so that a server process behind it ends too. What is answered does not matter.
    pub(super) async fn close(mut self, target: &LoadTarget) -> Result<()> {
        if let Some(session) = &self.id {
            let request = format!(
                "DELETE {} HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: {LEGACY_VERSION}\r\n\r\n",
                target.path, target.address
            );
            self.connection.exchange(request.as_bytes()).await?;
        }
        Ok(())
    }
}

impl HttpLoadClient {
    async fn open(target: &LoadTarget, era: BenchEra, call: &LoadCall) -> Result<HttpLoadClient> {
        let session = LoadSession::open(target, era).await?;
        HttpLoadClient::of_session(session, target, era, call)
    }

    /// A client that calls in a session that is open already.
    pub(super) fn of_session(
        session: LoadSession,
        target: &LoadTarget,
        era: BenchEra,
        call: &LoadCall,
    ) -> Result<HttpLoadClient> {
        let mut client = HttpLoadClient {
            session,
            request: Vec::new(),
            id_at: 0,
            answer: call.answer.clone(),
        };
        client.set_call(target, era, call)?;
        Ok(client)
    }

    /// Makes `call` the request that is repeated.
    pub(super) fn set_call(
        &mut self,
        target: &LoadTarget,
        era: BenchEra,
        call: &LoadCall,
    ) -> Result<()> {
        if matches!(call.answer, ExpectedAnswer::Holding(_)) {
            self.session.connection.body.keep_whole();
        }
        self.request = head(
            target,
            era,
            self.session.id.as_deref(),
            "tools/call",
            Some(&call.tool),
            call.body.as_bytes(),
        );
        let in_body = canned::id_offset(call.body.as_bytes()).context("a call has an id")?;
        self.id_at = self.request.len() - call.body.len() + in_body;
        self.answer = call.answer.clone();
        Ok(())
    }

    async fn call_until(mut self, end: Instant, most: u64) -> Result<(HttpLoadClient, Vec<u32>)> {
        let latencies = self.repeat(end, most).await?;
        Ok((self, latencies))
    }

    /// Calls until `end`, but not more often than `most`, and gives the latencies in nanoseconds.
    pub(super) async fn repeat(&mut self, end: Instant, most: u64) -> Result<Vec<u32>> {
        let mut latencies = Vec::with_capacity(1 << 16);
        while Instant::now() < end && (latencies.len() as u64) < most {
            latencies.push(self.call().await?);
        }
        Ok(latencies)
    }

    /// Calls once, and gives the latency in nanoseconds.
    pub(super) async fn call(&mut self) -> Result<u32> {
        let sent = Instant::now();
        let id = self.session.next;
        canned::write_id(&mut self.request, self.id_at, id);
        let answer = self.session.connection.exchange(&self.request).await?;
        let body = &self.session.connection.body;
        let right = answer.status == 200 && body.id() == Some(id) && self.answer.fits(body);
        ensure!(
            right,
            "request {id} was answered {}, expected {:?}: {}",
            answer.status,
            self.answer,
            body.shown()
        );
        self.session.next += 1;
        Ok(u32::try_from(sent.elapsed().as_nanos()).unwrap_or(u32::MAX))
    }
}

impl ExpectedAnswer {
    fn fits(&self, body: &AnswerEnds) -> bool {
        match self {
            ExpectedAnswer::Sized(size) => body.is_whole(*size),
            ExpectedAnswer::Holding(text) => body.holds(text),
        }
    }
}

fn head(
    target: &LoadTarget,
    era: BenchEra,
    session: Option<&str>,
    method: &str,
    name: Option<&str>,
    body: &[u8],
) -> Vec<u8> {
    let mut text = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        target.path,
        target.address,
        body.len()
    );
    match (era, session) {
        (BenchEra::Modern, _) => {
            text += &format!("MCP-Protocol-Version: {MODERN_VERSION}\r\nMcp-Method: {method}\r\n");
            if let Some(name) = name {
                text += &format!("Mcp-Name: {name}\r\n");
            }
        }
        (BenchEra::Legacy, Some(session)) => {
            text +=
                &format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {LEGACY_VERSION}\r\n");
        }
        (BenchEra::Legacy, None) => {}
    }
    text += "\r\n";
    let mut request = text.into_bytes();
    request.extend_from_slice(body);
    request
}
