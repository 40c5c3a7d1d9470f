//! Who is measured, and how each is started for a shape: no proxy, nginx, the bare copy, mcp-proxy and its namesakes.
//!
//! Every measurement starts its contender anew: memory is then that of one load, a record is removed when its
//! process ends, and nobody idles beside another's measurement.

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

pub use viewer::Habit;
use viewer::Viewer;

use crate::canned::{Era, Size};
use crate::floor::split_url;
use crate::load::Target;
use crate::processes::{Register, Running};

/// The kinds of the client's and of the server's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    HttpToHttp,
    HttpToStdio,
    StdioToHttp,
    StdioToStdio,
}

impl Shape {
    pub const ALL: [Shape; 4] = [
        Shape::HttpToHttp,
        Shape::HttpToStdio,
        Shape::StdioToHttp,
        Shape::StdioToStdio,
    ];

    pub fn client_is_http(self) -> bool {
        matches!(self, Shape::HttpToHttp | Shape::HttpToStdio)
    }

    pub fn server_is_http(self) -> bool {
        matches!(self, Shape::HttpToHttp | Shape::StdioToHttp)
    }

    pub fn name(self) -> &'static str {
        match self {
            Shape::HttpToHttp => "HTTP→HTTP",
            Shape::HttpToStdio => "HTTP→stdio",
            Shape::StdioToHttp => "stdio→HTTP",
            Shape::StdioToStdio => "stdio→stdio",
        }
    }
}

/// Who stands between, or nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    Direct,
    Nginx,
    Floor,
    Proxy,
    /// mcp-proxy with its record on.
    Recording,
    /// The same with a viewer attached.
    Viewed(Habit),
    /// mcp-proxy with its record on and 1,000 rules for other messages.
    Ruled,
    /// mcp-proxy with 2026-07-28 requests, in a case of 2025 ones.
    Modern,
    /// The bare copy with such requests: what they cost client, server and pipes alone.
    FloorModern,
    Npm,
    Pypi,
}

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Who::Direct => "direct",
            Who::Nginx => "nginx",
            Who::Floor => "bare copy",
            Who::Proxy => "mcp-proxy",
            Who::Recording => "mcp-proxy, record on",
            Who::Viewed(Habit::Reads) => "mcp-proxy, viewer reading",
            Who::Viewed(Habit::Stops) => "mcp-proxy, viewer stopped",
            Who::Ruled => "mcp-proxy, 1,000 rules",
            Who::Modern => "mcp-proxy, 2026-07-28",
            Who::FloorModern => "bare copy, 2026-07-28",
            Who::Npm => "npm mcp-proxy",
            Who::Pypi => "PyPI mcp-proxy",
        }
    }

    /// Whether it writes a record.
    pub fn records(self) -> bool {
        matches!(self, Who::Recording | Who::Viewed(_) | Who::Ruled)
    }

    /// The era of its requests in a case of `era`.
    pub fn era(self, era: Era) -> Era {
        if matches!(self, Who::Modern | Who::FloorModern) {
            Era::Modern
        } else {
            era
        }
    }
}

/// What is installed and where things go.
pub struct Setup {
    pub register: Arc<Register>,
    /// This binary: it is the server and the bare copy too.
    pub own: PathBuf,
    pub proxy: PathBuf,
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
    _viewer: Option<Viewer>,
    pub running: Option<Running>,
    pub target: Option<Target>,
    _files: Option<TempDir>,
}

impl Setup {
    /// Whether this one is installed and offers the shape and era.
    pub fn has(&self, who: Who, shape: Shape, era: Era) -> bool {
        match who {
            Who::Direct | Who::Floor | Who::Proxy => true,
            Who::Modern | Who::FloorModern => true,
            Who::Recording | Who::Viewed(_) | Who::Ruled => true,
            Who::Nginx => self.nginx.is_some() && shape == Shape::HttpToHttp,
            Who::Npm => self.npm.is_some() && shape == Shape::HttpToStdio,
            Who::Pypi => {
                // It refuses requests without a session.
                let offered = matches!(shape, Shape::HttpToStdio | Shape::StdioToHttp);
                self.pypi.is_some() && offered && era == Era::Legacy
            }
        }
    }

    pub fn start(&self, who: Who, shape: Shape, size: Size) -> Result<Contender> {
        let files = match who {
            _ if who.records() && size != Size::Small => Some(TempDir::new_in(&self.memory)?),
            _ if who.records() => Some(TempDir::new_in(&self.folder)?),
            Who::Nginx => Some(TempDir::new_in(&self.folder)?),
            _ => None,
        };
        if who == Who::Direct && shape.client_is_http() {
            let target = Target {
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
        let port = matches!(who, Who::Nginx | Who::Npm | Who::Pypi)
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
        let mut running = Running::start(&self.register, command)?;
        let target = match (shape.client_is_http(), port) {
            (false, _) => None,
            (true, Some(port)) => Some(wait_for_port(&mut running, port)?),
            (true, None) => {
                let (address, path) = split_url(&running.listening_on()?)?;
                Some(Target {
                    address,
                    path,
                    process: Some(running.child.id()),
                })
            }
        };
        let viewer = match (who, &files) {
            (Who::Viewed(habit), Some(folder)) => {
                Some(Viewer::attach(&mut running, folder.path(), habit)?)
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
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for_port(running: &mut Running, port: u16) -> Result<Target> {
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
    Ok(Target {
        address,
        path: "/mcp".into(),
        process: Some(running.child.id()),
    })
}
