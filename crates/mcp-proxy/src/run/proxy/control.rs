//! The control socket of a run: made at its start, gone at its end.
//!
//! Without it the run is as good as with it, only nobody can look: so a socket that cannot be made is said, and no more.

use std::path::PathBuf;
use std::sync::Arc;

use mcp_proxy_core::control::{
    CopyRecordCallback, ExportCallback, HostCallbacks, OverwritePolicy, ProxyControl, RunServer,
    RunSummary, TEMPORARY_RECORD,
};
use mcp_proxy_core::{Dial, LinkEnd, ProxyRun};
use mcp_proxy_session::export::exporter;
use mcp_proxy_session::{Recorder, copy_record, time_text};
use mcp_proxy_transport::control::{
    ControlSocket, ProxyDescriptor, SocketFiles, remove_stale_sockets, serve,
};
use mcp_proxy_wire::{ErrorCode, Side};
use tokio::task::JoinHandle;

use super::record::{self, RunDescription};
use crate::config::{ClientEndpoint, Config, Target};
use crate::printer;
use crate::run::control::short_id;
use crate::run::sessions::export::file;
use crate::run::{relay, serve};

/// A run's own control socket.
pub struct RunControl {
    /// Who answers.
    pub control: Arc<ProxyControl>,
    /// Where viewers dial.
    pub socket: PathBuf,
    id: String,
    serving: JoinHandle<()>,
    _files: SocketFiles,
}

impl Drop for RunControl {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Makes the socket and serves it. `None`: it was not wanted, or cannot be made.
pub fn open(config: &Config, run: &Arc<ProxyRun>, about: &RunDescription) -> Option<RunControl> {
    if !config.control {
        return None;
    }
    // On another thread, as with old records.
    std::thread::spawn(remove_stale_sockets);
    let header = &about.header;
    let facts = facts(config, about);
    let descriptor = ProxyDescriptor {
        id: short_id(&header.id),
        pid: facts.pid,
        session: facts.session.clone(),
        target: facts.target.clone(),
        client: facts.client.as_str().to_owned(),
        server: facts.server.as_str().to_owned(),
        record: facts.record.clone(),
        started: time_text(facts.started),
        version: facts.version.to_owned(),
    };
    let socket = match ControlSocket::create(&descriptor) {
        Ok(socket) => socket,
        Err(error) => {
            printer::say(&format!(
                "mcp-proxy: no control socket, so `attach` and `ctl` cannot reach this run: {error}"
            ));
            return None;
        }
    };
    if about.path.is_none() {
        let (masks, redaction) = (config.masks.clone(), config.redaction.clone());
        match Recorder::temporary(TEMPORARY_RECORD, masks, redaction, header) {
            Ok(recorder) => run.keep_temporary_record(recorder),
            Err(error) => printer::say(&format!(
                "mcp-proxy: viewers of this run see no messages: {}",
                error.chain()
            )),
        }
    }
    let means = HostCallbacks {
        export: export(),
        save: save(),
        servers: servers(config, &facts),
        management: match &config.target {
            Target::Hub(hub) => Some(serve::management(config, hub)),
            _ => None,
        },
        relay: match &config.target {
            Target::Relay(target) => Some(relay::management(target)),
            _ => None,
        },
    };
    let control = ProxyControl::new(Arc::clone(run), facts, means);
    let (listener, serves) = (socket.listener, Arc::clone(&control));
    Some(RunControl {
        control,
        socket: socket.files.socket().to_owned(),
        id: descriptor.id,
        serving: tokio::spawn(async move { serve(&listener, &serves).await }),
        _files: socket.files,
    })
}

/// The servers that clients are connected to: the one of the flags, or all those of a hub.
fn servers(config: &Config, facts: &RunSummary) -> Vec<RunServer> {
    match &config.target {
        Target::Hub(hub) => serve::run_servers(config, hub),
        _ => vec![RunServer {
            peer: config.target.peer().into(),
            target: facts.target.clone(),
            dial: dial(config),
            is_for_clients_only: matches!(config.target, Target::Relay(_)),
        }],
    }
}

/// How to look at a run, for the person who started it.
pub fn notice(config: &Config, own: Option<&RunControl>) -> Option<String> {
    let own = own.filter(|_| !config.quiet)?;
    Some(format!(
        "mcp-proxy: attach with: mcp-proxy attach {}",
        own.id
    ))
}

/// The server as it is shown: its command or its URL, without secrets, as the record's header has it.
pub fn shown_target(config: &Config, about: &RunDescription) -> String {
    let header = &about.header;
    header.shown_server(&config.masks, config.redaction.as_ref())
}

fn facts(config: &Config, about: &RunDescription) -> RunSummary {
    let header = &about.header;
    let target = shown_target(config, about);
    RunSummary {
        redaction: config.redaction.clone(),
        version: env!("CARGO_PKG_VERSION"),
        session: header.id.clone(),
        target,
        client: header.client.transport,
        server: header.server.transport,
        token_file: match &config.listen {
            ClientEndpoint::Port { token_file, .. } => token_file.clone(),
            ClientEndpoint::Stdio | ClientEndpoint::InProcess(_) => None,
        },
        config_files: match &config.target {
            Target::Hub(hub) => absolute(hub.source.files()),
            _ => Vec::new(),
        },
        record: about.path.clone(),
        started: header.started_at,
        pid: std::process::id(),
    }
}

fn absolute(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let files = files.into_iter();
    files
        .map(|file| std::path::absolute(&file).unwrap_or(file))
        .collect()
}

/// Opens links for single messages (replays, redirects). What it needs (certificates, for one) is made
/// at every use: most runs have none.
pub fn dial(config: &Config) -> Dial {
    let config = Config {
        reconnect: false,
        ..config.clone()
    };
    Arc::new(move |connection| match super::dial(&config) {
        Ok(dial) => dial(connection),
        Err(error) => {
            let text = format!("{error:#}");
            let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_UNAVAILABLE, text);
            Box::pin(std::future::ready(Err(end)))
        }
    })
}

fn save() -> CopyRecordCallback {
    Arc::new(|record, output| copy_record(record, output).map_err(|error| error.chain()))
}

fn export() -> ExportCallback {
    Arc::new(|path, format, output, existing| {
        let exporter = exporter(format).ok_or_else(|| format!("{format} is not known"))?;
        let existing = match existing {
            OverwritePolicy::Replace => file::ExistingFile::Replace,
            OverwritePolicy::Keep => file::ExistingFile::Keep(file::RENAME_OR_FORCE),
        };
        record::export(path, exporter, output, existing).map_err(|error| format!("{error:#}"))
    })
}
