//! The ten servers, and how each contender is started in front of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::canned;
use crate::contender::{ContenderKind, free_port, wait_for_port};
use crate::floor::split_url;
use crate::load::{self, LoadPlan, LoadTarget, Measurement, PacedTransfers};
use crate::processes::{BenchProcess, ProcessRegister};

/// How many servers a hub has.
pub const SERVERS: usize = 10;
/// Room for every session of a case.
const MOST_SESSIONS: &str = "1100";

/// Which tools each server has.
#[derive(Clone, Copy)]
pub enum ServerTools {
    /// So many, with definitions as long as those of real servers.
    Long(usize),
    /// Ten with short definitions, among them those whose results are large.
    Short,
}

/// Binaries, and where the files of contenders go.
pub struct HubSetup {
    register: Arc<ProcessRegister>,
    own: PathBuf,
    proxy: PathBuf,
    peer: Option<PathBuf>,
    folder: TempDir,
}

/// A hub with all tools listed; its files go when it goes.
pub struct RunningHub {
    // Dropped in this order: the process, then its folder.
    running: BenchProcess,
    pub target: LoadTarget,
    /// From the start of the process until a client had all tools.
    pub start_ms: f64,
    _files: TempDir,
}

impl RunningHub {
    /// The last lines of its stderr, for a message.
    pub fn last_words(&self) -> String {
        self.running.last_words()
    }
}

impl HubSetup {
    pub fn new(
        register: &Arc<ProcessRegister>,
        proxy: &Path,
        peer: Option<&Path>,
    ) -> Result<HubSetup> {
        let binary = |path: &Path| {
            path.canonicalize()
                .with_context(|| format!("no program at {}", path.display()))
        };
        let folder = TempDir::new().context("cannot make a folder for records")?;
        register.remember_folder(folder.path().to_owned());
        Ok(HubSetup {
            register: Arc::clone(register),
            own: std::env::current_exe().context("this binary has a path")?,
            proxy: binary(proxy)?,
            peer: peer.map(binary).transpose()?,
            folder,
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn has(&self, who: ContenderKind) -> bool {
        who != ContenderKind::Crate || self.peer.is_some()
    }

    /// Starts one in front of servers with these `tools` each, and waits until a client has all of them.
    pub fn start(&self, who: ContenderKind, tools: ServerTools) -> Result<RunningHub> {
        let files = TempDir::new_in(&self.folder)?;
        let port = match who {
            ContenderKind::Crate => Some(free_port()?),
            _ => None,
        };
        let mut command = match (who, port) {
            (ContenderKind::Direct, _) => self.server("http", 0, tools),
            (ContenderKind::Crate, Some(port)) => self.peer_command(tools, files.path(), port)?,
            _ => self.hub_command(who, tools, files.path())?,
        };
        // A state directory of its own: no list of an earlier run may help.
        command
            .env("XDG_STATE_HOME", files.path())
            .env("XDG_RUNTIME_DIR", files.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let start = Instant::now();
        let mut running = BenchProcess::start(&self.register, command)?;
        let mut target = match port {
            Some(port) => LoadTarget {
                path: "/".to_owned(),
                ..wait_for_port(&mut running, port)?
            },
            None => {
                let (address, path) = split_url(&running.listening_on()?)?;
                LoadTarget {
                    address,
                    path,
                    process: Some(running.child.id()),
                }
            }
        };
        let all = match who {
            ContenderKind::Direct => tools.count(),
            _ => SERVERS * tools.count(),
        };
        load::list_once(&target, all)
            .with_context(|| format!("its tools cannot be read{}", running.last_words()))?;
        let start_ms = start.elapsed().as_secs_f64() * 1000.0;
        if who == ContenderKind::Direct {
            target.process = None;
        }
        Ok(RunningHub {
            running,
            target,
            start_ms,
            _files: files,
        })
    }

    /// How long each server takes by itself until it has listed its tools over stdio: the slowest of the ten, in ms.
    pub fn start_servers_alone(&self, tools: ServerTools) -> Result<f64> {
        let mut slowest = 0.0_f64;
        for index in 0..SERVERS {
            let mut command = self.server("stdio", index, tools);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let start = Instant::now();
            let mut running = BenchProcess::start(&self.register, command)?;
            load::list_once_stdio(&mut running)?;
            slowest = slowest.max(start.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(slowest)
    }

    /// Calls of a server by itself over stdio, as a hub's servers are called.
    pub fn measure_server(&self, load: &LoadPlan) -> Result<Measurement> {
        let mut command = self.server("stdio", 0, ServerTools::Short);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = BenchProcess::start(&self.register, command)?;
        load::measure_transfer(&mut running, load)
            .with_context(|| format!("measurement failed{}", running.last_words()))
    }

    /// A server by itself that is asked for a large result once in each `period`.
    pub fn start_transfers(&self, load: &LoadPlan, period: Duration) -> Result<PacedTransfers> {
        let mut command = self.server("stdio", 0, ServerTools::Short);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        PacedTransfers::start(BenchProcess::start(&self.register, command)?, load, period)
    }

    fn server(&self, transport: &str, index: usize, tools: ServerTools) -> Command {
        let mut command = Command::new(&self.own);
        command.args(server_words(transport, index, tools));
        command
    }

    fn hub_command(&self, who: ContenderKind, tools: ServerTools, files: &Path) -> Result<Command> {
        let (program, word) = match who {
            ContenderKind::Floor => (&self.own, "floor-hub"),
            ContenderKind::Proxy
            | ContenderKind::Recording
            | ContenderKind::Audited
            | ContenderKind::ProxyTool
            | ContenderKind::Dispatcher => (&self.proxy, "serve"),
            _ => bail!("{} has one server", who.name()),
        };
        let own = self.own.to_str().context("our path is UTF-8")?;
        let mut command = Command::new(program);
        command.arg(word);
        for index in 0..SERVERS {
            let words = server_words("stdio", index, tools).join(" ");
            command.args(["--server", &format!("{}={own} {words}", server_name(index))]);
        }
        let expose = match who {
            ContenderKind::ProxyTool => "all,proxy",
            ContenderKind::Dispatcher => "all,dispatch",
            _ => "all",
        };
        command.args(["--expose", expose, "--max-sessions", MOST_SESSIONS]);
        command.args(["--listen", "http", "--listen-port", "0"]);
        if who == ContenderKind::Recording {
            command
                .arg("--session-file")
                .arg(files.join("record.jsonl"));
        } else {
            command.args(["--no-record", "--no-control"]);
        }
        if who != ContenderKind::Audited {
            command.arg("-q");
        }
        Ok(command)
    }

    fn peer_command(&self, tools: ServerTools, files: &Path, port: u16) -> Result<Command> {
        let program = self.peer.as_deref().context("--peer is not given")?;
        let mut text = format!(
            "[proxy]\nname = \"bench\"\nseparator = \"_\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n"
        );
        for index in 0..SERVERS {
            write!(
                text,
                "\n[[backends]]\nname = \"{}\"\ntransport = \"stdio\"\ncommand = {:?}\nargs = {:?}\n",
                server_name(index),
                self.own,
                server_words("stdio", index, tools)
            )?;
        }
        let config = files.join("proxy.toml");
        std::fs::write(&config, text)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(config).env("RUST_LOG", "error");
        Ok(command)
    }
}

impl ServerTools {
    fn count(self) -> usize {
        match self {
            ServerTools::Long(count) => count,
            ServerTools::Short => canned::SHORT_TOOLS,
        }
    }
}

/// Bytes of the definitions of all servers, in millions.
pub fn definition_megabytes(tools: usize) -> f64 {
    let bytes: usize = (0..SERVERS)
        .map(|index| canned::definition_bytes(&tool_prefix(index), tools))
        .sum();
    bytes as f64 / 1e6
}

pub(super) fn server_name(index: usize) -> String {
    format!("s{index}")
}

/// Tools of different servers have different names.
pub(super) fn tool_prefix(index: usize) -> String {
    format!("t{index}-")
}

fn server_words(transport: &str, index: usize, tools: ServerTools) -> Vec<String> {
    let mut words = vec!["canned-server".to_owned(), transport.to_owned()];
    if let ServerTools::Long(count) = tools {
        words.extend(["--tools".to_owned(), count.to_string()]);
        words.extend(["--prefix".to_owned(), tool_prefix(index)]);
    }
    words
}
