//! The relay and the bare echo as processes, and the users of a relay.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use mcp_proxy_token::{SigningKey, TokenRequest, create_secret, issue};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::peers::BenchUser;
use super::socket::SocketTarget;
use crate::contender::ContenderKind;
use crate::floor::split_url;
use crate::processes::{BenchProcess, ProcessRegister};

/// Far more than a load sends.
const UNLIMITED: &str = "1000000";

/// Binaries, keys, and where the files of contenders go.
pub struct RelaySetup {
    register: Arc<ProcessRegister>,
    own: PathBuf,
    proxy: PathBuf,
    folder: TempDir,
    tls: Arc<rustls::ClientConfig>,
}

/// Whether a relay listens with TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BenchTls {
    Off,
    On,
}

/// A contender that listens; its record goes when it goes.
pub struct RunningRelay {
    // Dropped in this order: the process, then its folder.
    pub process: BenchProcess,
    pub target: SocketTarget,
    _files: TempDir,
}

impl RelaySetup {
    pub fn new(register: &Arc<ProcessRegister>, proxy: &Path) -> Result<RelaySetup> {
        // Children inherit it: a crowd needs more sockets than a process usually may have.
        let limit = getrlimit(Resource::Nofile);
        let most = Rlimit {
            current: limit.maximum,
            ..limit
        };
        setrlimit(Resource::Nofile, most).context("raising the limit of open files")?;
        let folder = TempDir::new().context("cannot make a folder")?;
        register.remember_folder(folder.path().to_owned());
        create_secret(&folder.path().join("secret"))?;
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem())?;
        let key = made.signing_key.serialize_pem();
        std::fs::write(folder.path().join("key.pem"), key)?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let tls = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let proxy = proxy.canonicalize();
        Ok(RelaySetup {
            register: Arc::clone(register),
            own: std::env::current_exe().context("this binary has a path")?,
            proxy: proxy.context("cannot find the proxy to measure")?,
            folder,
            tls: Arc::new(tls),
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a contender on any port, or on a port that it had before.
    pub fn start(&self, who: ContenderKind, tls: BenchTls, port: u16) -> Result<RunningRelay> {
        let files = TempDir::new_in(&self.folder)?;
        let mut command = match who {
            ContenderKind::Floor => {
                let mut command = Command::new(&self.own);
                command.arg("floor-echo");
                command
            }
            _ => self.relay_command(who, tls, port, files.path()),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = BenchProcess::start(&self.register, command)?;
        let url = process.listening_on()?;
        let url = url.replacen("wss:", "http:", 1).replacen("ws:", "http:", 1);
        let (address, _) = split_url(&url)?;
        let tls = (tls == BenchTls::On).then(|| Arc::clone(&self.tls));
        Ok(RunningRelay {
            process,
            target: SocketTarget { address, tls },
            _files: files,
        })
    }

    fn relay_command(&self, who: ContenderKind, tls: BenchTls, port: u16, files: &Path) -> Command {
        let file = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(&self.proxy);
        command.args(["relay", "--headless", "-q", "--listen-port"]);
        command.arg(port.to_string());
        command.arg("--jwt-secret-file").arg(file("secret"));
        command.arg("--revoked-file").arg(file("revoked"));
        for flag in ["--user-rate", "--connection-rate"] {
            command.args([flag, UNLIMITED]);
        }
        match who {
            ContenderKind::TwoThreads => command.args(["--threads", "2"]),
            _ => command.args(["--threads", "1"]),
        };
        match who.records() {
            true => command
                .arg("--session-file")
                .arg(files.join("record.jsonl")),
            false => command.args(["--no-record", "--no-control"]),
        };
        if tls == BenchTls::On {
            command.arg("--tls-cert").arg(file("cert.pem"));
            command.arg("--tls-key").arg(file("key.pem"));
        }
        command
    }

    /// Users with valid tokens.
    pub fn users(&self, count: usize) -> Result<Vec<BenchUser>> {
        let key = SigningKey::from_file(&self.folder.path().join("secret"))?;
        let now = SystemTime::now();
        let user = |number: usize| {
            let name = format!("u{number}");
            let request = TokenRequest {
                user: name.clone(),
                lifetime: Duration::from_secs(3600),
                connection_url: None,
            };
            let token = issue(&key, &request, now)?.token;
            Ok(BenchUser { token, name })
        };
        (0..count).map(user).collect()
    }
}
