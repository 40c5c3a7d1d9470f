//! HTTP to several stdio servers: all lists are read once and joined, and a call goes where its name's prefix says.

use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::spawn_local;

use super::http_to_stdio::empty;
use super::process::{AnswerEnvelope, FloorProcess, IdMode};
use crate::canned::{self, ANSWER_START, BenchEra, LEGACY_VERSION};

/// The command line of `mcp-proxy serve`, as far as the benchmark uses it.
#[derive(Args)]
pub struct FloorHubArgs {
    /// A server, `NAME=COMMAND`, its words separated by spaces
    #[arg(long, required = true)]
    server: Vec<String>,
    /// Accepted as the hub's flag; every tool is listed
    #[arg(long)]
    expose: Option<String>,
    /// Accepted as the hub's flag; HTTP in any case
    #[arg(long)]
    listen: Option<String>,
    /// Accepted as the hub's flag; a free port is taken in any case
    #[arg(long)]
    listen_port: Option<u16>,
    /// Accepted and ignored
    #[arg(long)]
    max_sessions: Option<usize>,
    /// Accepted and true
    #[arg(long)]
    no_record: bool,
    /// Accepted and true
    #[arg(long)]
    no_control: bool,
    /// Accepted and ignored
    #[arg(long)]
    session_file: Option<std::path::PathBuf>,
    /// Accepted and true
    #[arg(short)]
    quiet: bool,
}

/// A server's name and the words of its command.
type NamedCommand = (String, Vec<String>);

struct FloorHub {
    servers: HashMap<String, Rc<FloorProcess>>,
    /// The answer to `initialize`, and that to `tools/list`, behind their ids.
    opened: Bytes,
    tools: Bytes,
    sessions: Cell<u64>,
}

#[derive(Deserialize)]
struct FloorCall<'a> {
    #[serde(borrow)]
    params: CalledTool<'a>,
}

#[derive(Deserialize)]
struct CalledTool<'a> {
    name: &'a str,
}

#[derive(Deserialize)]
struct ListAnswer<'a> {
    #[serde(borrow)]
    result: ListedTools<'a>,
}

#[derive(Deserialize)]
struct ListedTools<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl FloorHubArgs {
    pub fn servers(&self) -> Result<Vec<NamedCommand>> {
        let server = |text: &String| {
            let (name, command) = text
                .split_once('=')
                .with_context(|| format!("{text} is not NAME=COMMAND"))?;
            let words = command.split_whitespace().map(str::to_owned).collect();
            Ok((name.to_owned(), words))
        };
        self.server.iter().map(server).collect()
    }
}

pub async fn serve(commands: Vec<NamedCommand>) -> Result<()> {
    let listener = super::listen().await?;
    let hub = Rc::new(FloorHub::start(commands).await?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let hub = Rc::clone(&hub);
        spawn_local(async move {
            let service = service_fn(|request| hub.respond(request));
            http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok()
        });
    }
}

impl FloorHub {
    /// Starts all servers at once, then reads their lists one by one.
    async fn start(commands: Vec<NamedCommand>) -> Result<FloorHub> {
        let mut started = Vec::new();
        for (name, command) in commands {
            let process = FloorProcess::start(&command, IdMode::Exchange)?;
            started.push((name, process));
        }
        let mut tools = Vec::new();
        for (name, process) in &started {
            ask(process, &canned::opening(BenchEra::Legacy)).await?;
            process.send(canned::initialized().as_bytes(), None).await;
            let answer = ask(process, &canned::list(None)).await?;
            let list: ListAnswer<'_> = serde_json::from_slice(&answer)?;
            let own = list.result.tools.iter();
            tools.extend(own.map(|tool| prefixed(tool.get(), name)));
        }
        let tools = format!(r#","result":{{"tools":[{}]}}}}"#, tools.join(","));
        let opened = format!(
            r#","result":{{"protocolVersion":"{LEGACY_VERSION}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"copy","version":"1"}}}}}}"#
        );
        Ok(FloorHub {
            servers: started.into_iter().collect(),
            opened: opened.into(),
            tools: tools.into(),
            sessions: Cell::new(0),
        })
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let answer = self.carry(request).await;
        Ok(answer.unwrap_or_else(|_| empty(StatusCode::BAD_GATEWAY)))
    }

    async fn carry(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        if request.method() == Method::DELETE {
            return Ok(empty(StatusCode::OK));
        }
        let body = request.into_body().collect().await?.to_bytes();
        let envelope: AnswerEnvelope<'_> = serde_json::from_slice(&body)?;
        let (Some(id), Some(method)) = (envelope.id, envelope.method) else {
            return Ok(empty(StatusCode::ACCEPTED));
        };
        let own = |rest: &Bytes| [ANSWER_START, id.get().as_bytes(), rest].concat().into();
        let answer = match method {
            "initialize" => own(&self.opened),
            "tools/list" => own(&self.tools),
            _ => self.call(&body).await?,
        };
        let mut response = Response::new(Full::new(answer));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if method == "initialize" {
            self.sessions.set(self.sessions.get() + 1);
            let session = format!("copy-{:016x}", self.sessions.get());
            headers.insert("mcp-session-id", HeaderValue::from_str(&session)?);
        }
        Ok(response)
    }

    async fn call(&self, body: &Bytes) -> Result<Bytes> {
        let call: FloorCall<'_> = serde_json::from_slice(body)?;
        let name = call.params.name;
        let (server, _) = name.split_once('_').context("a name has a prefix")?;
        let process = self.servers.get(server).context("no such server")?;
        let at = name.as_ptr() as usize - body.as_ptr() as usize;
        let message = [&body[..at], &body[at + server.len() + 1..]].concat();
        let envelope: AnswerEnvelope<'_> = serde_json::from_slice(&message)?;
        let answer = process.send(&message, envelope.id).await;
        answer.context("the server has ended")
    }
}

async fn ask(process: &FloorProcess, message: &str) -> Result<Bytes> {
    let envelope: AnswerEnvelope<'_> = serde_json::from_str(message)?;
    let answer = process.send(message.as_bytes(), envelope.id).await;
    answer.context("a server has ended")
}

/// The definition under its public name; the canned server writes the name first.
fn prefixed(tool: &str, server: &str) -> String {
    tool.replacen(r#""name":""#, &format!(r#""name":"{server}_"#), 1)
}
