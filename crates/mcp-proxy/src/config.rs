//! What the flags of `proxy` mean, checked: no option here that "must" be set.

pub mod bounded_file;
mod check;
mod headers;
mod hub;
mod relay;
mod relay_file;
mod relay_policy;
mod session_file;
mod sign_in;

pub use check::{is_loopback, supervisor};
pub use hub::{
    HubServerKind, HubServerTarget, HubTarget, NO_PROFILE, default_config_file, read_config_files,
};
pub use relay::{KeySource, PairingConfig, RelayKeys, RelayTarget, TlsPlace};
pub use relay_file::RelayFile;
pub use sign_in::{SignInStore, auth_settings, environment_proxies, url_of};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use mcp_proxy_auth::AuthSettings;
use mcp_proxy_core::HoldOptions;
use mcp_proxy_core::mock::{MatchMode, MockRecording, RedactedAnswers};
use mcp_proxy_session::{
    CredentialRedaction, Filter, PeerInfo, RecordLocation, RecordOptions, Redaction,
};
use mcp_proxy_transport::http::{Admission, LegacyClients, ToolHeaders};
use mcp_proxy_transport::process::{Environment, ServerCommand, Supervisor};
use mcp_proxy_wire::Transport;

use crate::cli::tui::TuiArgs;

/// Where files of the user are that no flag names: `$XDG_CONFIG_HOME/mcp-proxy`, or `~/.config/mcp-proxy`.
pub fn config_folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    Some(folder.join("mcp-proxy"))
}

/// A run of `proxy`.
#[derive(Clone)]
pub struct Config {
    /// The server.
    pub target: Target,
    /// The client side.
    pub listen: ClientEndpoint,
    /// The session whose clients a replay plays. The replay is the client then, whatever `listen` says.
    pub replay_of: Option<String>,
    /// The record, or none.
    pub record: Option<RecordConfig>,
    /// Limits and deadlines.
    pub limits: RunLimits,
    /// `--pass-noise`
    pub pass_noise: bool,
    /// Whether a session that an HTTP server has lost is opened again: not with `--no-reconnect`.
    pub reconnect: bool,
    /// `--quiet`
    pub quiet: bool,
    /// On a terminal, the stderr of a single server is shown with escapes. That of several servers always is.
    pub escapes_stderr: bool,
    /// Whether viewers may come: not with `--no-control`.
    pub control: bool,
    /// How the terminal UI looks, if it may open on this terminal.
    pub tui: Option<TuiArgs>,
    /// What is hidden wherever the run is shown.
    pub masks: CredentialRedaction,
    /// `--redact-…`: what is neither stored nor shown.
    pub redaction: Option<Redaction>,
    /// How messages are held.
    pub hold: HoldOptions,
    /// `--break`
    pub breakpoints: Vec<Filter>,
    /// `--rules`: the file is read when the run begins.
    pub rules: Option<PathBuf>,
    /// What is known of the server's tools, by whatever link.
    pub tools: Arc<ToolHeaders>,
    /// The user's sign-ins, for servers that ask who they are.
    pub sign_ins: SignInStore,
    /// Starts the server processes of the run.
    pub supervisor: Supervisor,
}

/// The server.
#[derive(Clone)]
pub enum Target {
    /// A process.
    Command(ServerCommand),
    /// A URL.
    Url {
        /// Where.
        url: Uri,
        /// What it speaks; `None`: the first message finds out.
        kind: Option<Transport>,
        /// `--header`
        headers: Vec<(HeaderName, HeaderValue)>,
        /// `--ca-file`
        ca_file: Option<PathBuf>,
        /// How to sign in, if a config file says so.
        auth: Option<Box<AuthSettings>>,
    },
    /// A recording.
    Recording(MockTarget),
    /// Many servers.
    Hub(HubTarget),
    /// Browsers.
    Relay(RelayTarget),
}

/// A recording that plays the server.
#[derive(Clone)]
pub struct MockTarget {
    /// Its name, for people.
    pub shown: String,
    /// The recording.
    pub recording: Arc<MockRecording>,
    /// `--match`
    pub matching: MatchMode,
    /// `--play-redacted`
    pub redacted: RedactedAnswers,
    /// Where requests go that it cannot answer.
    pub fallback: Option<Box<Target>>,
}

/// The client side.
#[derive(Clone)]
pub enum ClientEndpoint {
    /// Our own stdin and stdout.
    Stdio,
    /// A port.
    Port {
        /// Streamable HTTP or HTTP+SSE.
        kind: Transport,
        /// Address.
        host: String,
        /// Port; 0 picks one.
        port: u16,
        /// Who may speak.
        admission: Admission,
        /// The file that its token was read from.
        token_file: Option<PathBuf>,
        /// Certificate and key.
        tls: Option<(PathBuf, PathBuf)>,
        /// `--stateless`
        legacy: LegacyClients,
    },
    /// A client of this name in our own process: the demo's script.
    InProcess(&'static str),
}

/// The record.
#[derive(Clone)]
pub struct RecordConfig {
    /// Where.
    pub place: RecordLocation,
    /// How.
    pub options: RecordOptions,
    /// The exporter that runs at the end.
    pub export: Option<String>,
}

/// Limits and deadlines.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Bytes of one message.
    pub message: usize,
    /// Bytes of all messages that wait.
    pub memory: usize,
    /// Sessions at once.
    pub sessions: usize,
    /// Requests of modern clients at once, in front of a hub.
    pub requests: usize,
    /// A session's idle time.
    pub idle: Duration,
    /// A peer's silence.
    pub stall: Duration,
}

impl Config {
    /// Who is at the clients' end.
    pub fn client(&self) -> PeerInfo {
        match (&self.replay_of, &self.listen) {
            (Some(_), _) => PeerInfo::in_process("replay"),
            (None, ClientEndpoint::InProcess(name)) => PeerInfo::in_process(name),
            (None, listen) => PeerInfo::new(listen.transport()),
        }
    }
}

impl Target {
    /// Who is at the server's end, with the transport as far as it is known.
    pub fn peer(&self) -> PeerInfo {
        match self {
            Target::Command(_) => PeerInfo::new(Transport::Stdio),
            Target::Recording(_) => PeerInfo::in_process("mock"),
            Target::Hub(_) => PeerInfo::in_process("hub"),
            Target::Relay(_) => PeerInfo::in_process("relay"),
            Target::Url { kind, .. } => PeerInfo::new(kind.unwrap_or(Transport::StreamableHttp)),
        }
    }

    /// The headers that every request to it carries.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        match self {
            Target::Url { headers, .. } => headers,
            Target::Recording(played) => match &played.fallback {
                Some(target) => target.headers(),
                None => &[],
            },
            Target::Command(_) | Target::Hub(_) | Target::Relay(_) => &[],
        }
    }

    /// The transport towards the server, as far as it is known.
    pub fn transport(&self) -> Transport {
        self.peer().transport
    }

    /// What server processes of this run get of our own environment.
    pub fn environment(&self) -> Environment {
        match self {
            Target::Command(command) => command.environment.clone(),
            Target::Recording(played) => match &played.fallback {
                Some(target) => target.environment(),
                None => Environment::default(),
            },
            Target::Url { .. } | Target::Hub(_) | Target::Relay(_) => Environment::default(),
        }
    }
}

impl ClientEndpoint {
    /// The transport towards the client.
    pub fn transport(&self) -> Transport {
        match self {
            ClientEndpoint::Stdio => Transport::Stdio,
            ClientEndpoint::Port { kind, .. } => *kind,
            ClientEndpoint::InProcess(_) => Transport::InProcess,
        }
    }
}
