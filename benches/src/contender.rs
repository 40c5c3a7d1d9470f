//! Who is measured, and how each is started for a shape: no proxy, nginx, the bare copy, mcp-proxy and its namesakes.
//!
//! Every measurement starts its contender anew: memory is then that of one load, a record is removed when its
//! process ends, and nobody idles during another's measurement.

mod command;
pub mod nginx;
mod viewer;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tempfile::TempDir;

use viewer::BenchViewer;
pub use viewer::ViewerHabit;

use crate::canned::{AnswerSize, BenchEra};
use crate::floor::split_url;
use crate::load::{LoadTarget, ResultPart};
use crate::processes::{BenchProcess, ProcessRegister};

/// The kinds of the client's and of the server's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransportPair {
    HttpToHttp,
    HttpToStdio,
    StdioToHttp,
    StdioToStdio,
}

impl TransportPair {
    pub const ALL: [TransportPair; 4] = [
        TransportPair::HttpToHttp,
        TransportPair::HttpToStdio,
        TransportPair::StdioToHttp,
        TransportPair::StdioToStdio,
    ];

    pub fn client_is_http(self) -> bool {
        matches!(self, TransportPair::HttpToHttp | TransportPair::HttpToStdio)
    }

    pub fn server_is_http(self) -> bool {
        matches!(self, TransportPair::HttpToHttp | TransportPair::StdioToHttp)
    }

    pub fn name(self) -> &'static str {
        match self {
            TransportPair::HttpToHttp => "HTTP→HTTP",
            TransportPair::HttpToStdio => "HTTP→stdio",
            TransportPair::StdioToHttp => "stdio→HTTP",
            TransportPair::StdioToStdio => "stdio→stdio",
        }
    }
}

/// Who stands between, or nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContenderKind {
    Direct,
    Nginx,
    Floor,
    Proxy,
    /// mcp-proxy with its record on.
    Recording,
    /// The same with a viewer attached.
    Viewed(ViewerHabit),
    /// mcp-proxy with its record on and 1,000 rules for other messages.
    Ruled,
    /// mcp-proxy with 2026-07-28 requests, in a case of 2025 ones.
    Modern,
    /// The bare copy with such requests: what they cost client, server and pipes alone.
    FloorModern,
    /// The build that `--before` names.
    Before,
    /// The same with its record on.
    BeforeRecording,
    Npm,
    Pypi,
    /// `serve` with a line on stderr for each call, as it is without `-q`.
    Audited,
    /// `serve`, called through its tool `proxy`.
    ProxyTool,
    /// `serve`, called through its tool `proxy-dispatch`.
    Dispatcher,
    /// The same, with the results kept in files.
    Spilling,
    /// A server that sends its large results to a client that only reads them.
    ServerAlone,
    /// `serve`, called while another session's results are kept in files.
    DuringSpills,
    /// `serve`, called while a server next to it sends large results to a client that only reads them.
    DuringTransfers,
    /// `serve`, asked for a part of a result in a file.
    Reading(ResultPart),
    /// `relay` with two threads instead of one.
    TwoThreads,
    /// The crate of the same name on crates.io, which puts many servers behind one endpoint too.
    Crate,
}

impl ContenderKind {
    pub fn name(self) -> &'static str {
        match self {
            ContenderKind::Direct => "direct",
            ContenderKind::Nginx => "nginx",
            ContenderKind::Floor => "bare copy",
            ContenderKind::Proxy => "mcp-proxy",
            ContenderKind::Recording => "mcp-proxy, record on",
            ContenderKind::Viewed(ViewerHabit::Reads) => "mcp-proxy, viewer reading",
            ContenderKind::Viewed(ViewerHabit::Stops) => "mcp-proxy, viewer stopped",
            ContenderKind::Ruled => "mcp-proxy, 1,000 rules",
            ContenderKind::Modern => "mcp-proxy, 2026-07-28",
            ContenderKind::FloorModern => "bare copy, 2026-07-28",
            ContenderKind::Before => "mcp-proxy before",
            ContenderKind::BeforeRecording => "mcp-proxy before, record on",
            ContenderKind::Npm => "npm mcp-proxy",
            ContenderKind::Pypi => "PyPI mcp-proxy",
            ContenderKind::Audited => "mcp-proxy, audit lines on",
            ContenderKind::ProxyTool => "mcp-proxy, proxy tool",
            ContenderKind::Dispatcher => "mcp-proxy, dispatcher",
            ContenderKind::Spilling => "mcp-proxy, result to a file",
            ContenderKind::ServerAlone => "server alone",
            ContenderKind::DuringSpills => "mcp-proxy, during spills",
            ContenderKind::DuringTransfers => "mcp-proxy, next to transfers",
            ContenderKind::Reading(ResultPart::Slice) => "mcp-proxy, slice",
            ContenderKind::Reading(ResultPart::ScarceMatches) => "mcp-proxy, grep, few matches",
            ContenderKind::Reading(ResultPart::NoMatches) => "mcp-proxy, grep, no match",
            ContenderKind::TwoThreads => "mcp-proxy, two threads",
            ContenderKind::Crate => "crates.io mcp-proxy",
        }
    }

    /// Whether it writes a record.
    pub fn records(self) -> bool {
        matches!(
            self,
            ContenderKind::Recording
                | ContenderKind::BeforeRecording
                | ContenderKind::Viewed(_)
                | ContenderKind::Ruled
        )
    }

    /// The contender of `--before` to compare this one with.
    pub fn before(self) -> Option<ContenderKind> {
        match self {
            ContenderKind::Proxy => Some(ContenderKind::Before),
            ContenderKind::Recording => Some(ContenderKind::BeforeRecording),
            _ => None,
        }
    }

    /// The era of its requests in a case of `era`.
    pub fn era(self, era: BenchEra) -> BenchEra {
        if matches!(self, ContenderKind::Modern | ContenderKind::FloorModern) {
            BenchEra::Modern
        } else {
            era
        }
    }
}

/// What is installed and where things go.
pub struct BenchSetup {
    pub register: Arc<ProcessRegister>,
    /// This binary: it is the server and the bare copy too.
    pub own: PathBuf,
    pub proxy: PathBuf,
    pub before: Option<PathBuf>,
    pub nginx: Option<PathBuf>,
    pub npm: Option<PathBuf>,
    pub pypi: Option<PathBuf>,
    pub server: SocketAddr,
    /// On disk: nginx's files, records of small messages.
    pub folder: TempDir,
    /// In memory: records of large messages.
    pub memory: TempDir,
}

/// A started contender; its files go when it goes.
pub struct Contender {
    // Dropped in this order: the viewer first, then the process, then its folder.
    _viewer: Option<BenchViewer>,
    pub running: Option<BenchProcess>,
    pub target: Option<LoadTarget>,
    _files: Option<TempDir>,
}

impl BenchSetup {
    /// Whether this one is installed and offers the shape and era.
    pub fn has(&self, who: ContenderKind, shape: TransportPair, era: BenchEra) -> bool {
        match who {
            ContenderKind::Direct | ContenderKind::Floor | ContenderKind::Proxy => true,
            ContenderKind::Modern | ContenderKind::FloorModern => true,
            ContenderKind::Recording | ContenderKind::Viewed(_) | ContenderKind::Ruled => true,
            ContenderKind::TwoThreads => false,
            ContenderKind::Before | ContenderKind::BeforeRecording => self.before.is_some(),
            ContenderKind::Audited | ContenderKind::ProxyTool | ContenderKind::Crate => false,
            ContenderKind::Dispatcher | ContenderKind::Spilling => false,
            ContenderKind::ServerAlone
            | ContenderKind::DuringSpills
            | ContenderKind::DuringTransfers => false,
            ContenderKind::Reading(_) => false,
            ContenderKind::Nginx => self.nginx.is_some() && shape == TransportPair::HttpToHttp,
            ContenderKind::Npm => self.npm.is_some() && shape == TransportPair::HttpToStdio,
            ContenderKind::Pypi => {
                // It refuses requests without a session.
                let offered = matches!(
                    shape,
                    TransportPair::HttpToStdio | TransportPair::StdioToHttp
                );
                self.pypi.is_some() && offered && era == BenchEra::Legacy
            }
        }
    }

    pub fn start(
        &self,
        who: ContenderKind,
        shape: TransportPair,
        size: AnswerSize,
    ) -> Result<Contender> {
        let files = match who {
            _ if who.records() && size != AnswerSize::Small => Some(TempDir::new_in(&self.memory)?),
            _ if who.records() => Some(TempDir::new_in(&self.folder)?),
            ContenderKind::Nginx => Some(TempDir::new_in(&self.folder)?),
            _ => None,
        };
        if who == ContenderKind::Direct && shape.client_is_http() {
            let target = LoadTarget {
                address: self.server,
                path: "/mcp".into(),
                process: None,
            };
            return Ok(Contender {
                _viewer: None,
                running: None,
                target: Some(target),
                _files: files,
            });
        }
        let port = matches!(
            who,
            ContenderKind::Nginx | ContenderKind::Npm | ContenderKind::Pypi
        )
        .then(free_port)
        .transpose()?;
        let mut command = self.command(
            who,
            shape,
            size,
            files.as_ref().map(TempDir::path),
            port.unwrap_or(0),
        )?;
        let pipe = || {
            if shape.client_is_http() {
                Stdio::null()
            } else {
                Stdio::piped()
            }
        };
        command.stdin(pipe()).stdout(pipe());
        let mut running = BenchProcess::start(&self.register, command)?;
        let target = match (shape.client_is_http(), port) {
            (false, _) => None,
            (true, Some(port)) => Some(wait_for_port(&mut running, port)?),
            (true, None) => {
                let (address, path) = split_url(&running.listening_on()?)?;
                Some(LoadTarget {
                    address,
                    path,
                    process: Some(running.child.id()),
                })
            }
        };
        let viewer = match (who, &files) {
            (ContenderKind::Viewed(habit), Some(folder)) => {
                Some(BenchViewer::attach(&mut running, folder.path(), habit)?)
            }
            _ => None,
        };
        Ok(Contender {
            _viewer: viewer,
            running: Some(running),
            target,
            _files: files,
        })
    }
}

/// For those that cannot pick a port themselves. It may be taken in between; the start then fails and says so.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub fn wait_for_port(running: &mut BenchProcess, port: u16) -> Result<LoadTarget> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let deadline = Instant::now() + Duration::from_secs(15);
    while TcpStream::connect(address).is_err() {
        if let Some(status) = running.child.try_wait()? {
            bail!("it ended with {status}{}", running.last_words());
        }
        if Instant::now() > deadline {
            bail!("it does not listen on {address}{}", running.last_words());
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(LoadTarget {
        address,
        path: "/mcp".into(),
        process: Some(running.child.id()),
    })
}
