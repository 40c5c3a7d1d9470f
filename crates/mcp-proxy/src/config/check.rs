//! From flags to meaning. Every refusal names the flag, what is wrong with it, and what to write instead.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Uri;
use mcp_proxy_core::{DEFAULT_MEMORY_BUDGET, HoldOptions, HoldPolicy, HoldTimeout, InterceptMode};
use mcp_proxy_hub::config::is_ordinary;
use mcp_proxy_session::{CredentialRedaction, Filter, RecordLocation, RecordOptions, Redaction};
use mcp_proxy_transport::http::{Admission, LegacyClients, Token};
use mcp_proxy_transport::process::{Environment, GuardProgram, ServerCommand, Supervisor};
use mcp_proxy_transport::stdio::stdin_is_a_channel;
use mcp_proxy_transport::tls::ServerCertificate;
use mcp_proxy_wire::Transport;

use super::headers::headers;
use super::{
    ClientEndpoint, Config, MockTarget, RecordConfig, RunLimits, SignInStore, Target, session_file,
};
use crate::cli::ProxyArgs;
use crate::cli::mock::{MockArgs, UnmatchedArg};
use crate::cli::proxy::{
    ClientKind, DEFAULT_HOST, DEFAULT_PORT, EnvMode, OnHoldTimeout, ServerKind,
};
use crate::cli::serve::MAX_REQUESTS;
use crate::cli::suggestion;

impl Config {
    /// Checks the flags.
    pub fn new(args: &ProxyArgs) -> Result<Config> {
        Config::with_target(args, target(args)?)
    }

    /// Checks the flags of `mock`. It is recorded only when a file is named: the last record is mostly the one played.
    pub fn mock(args: &MockArgs, mut played: MockTarget) -> Result<Config> {
        let proxy = &args.proxy;
        played.fallback = match (args.unmatched, proxy.names_server()) {
            (UnmatchedArg::Error, false) => None,
            (UnmatchedArg::Forward, true) => Some(Box::new(target(proxy)?)),
            (UnmatchedArg::Error, true) => {
                bail!("a server is given that would never be asked; say --unmatched forward")
            }
            (UnmatchedArg::Forward, false) => {
                bail!("--unmatched forward needs a server: a URL, or a command after --")
            }
        };
        let mut config = Config::with_target(proxy, Target::Recording(played))?;
        if proxy.session_file.is_none() {
            config.record = None;
        }
        Ok(config)
    }

    pub(super) fn with_target(args: &ProxyArgs, target: Target) -> Result<Config> {
        let breakpoints = args.breakpoints.iter().map(|filter| breakpoint(filter));
        let breakpoints = breakpoints.collect::<Result<_>>()?;
        let listen = listen(args)?;
        let redaction = args.redact.compile()?;
        let masks = masks(args, &target);
        Ok(Config {
            supervisor: supervisor()?,
            record: record(args, redaction.clone(), masks.clone())?,
            redaction,
            limits: RunLimits {
                message: usize::try_from(args.max_message).unwrap_or(usize::MAX),
                memory: args.memory_budget.map_or(DEFAULT_MEMORY_BUDGET, |bytes| {
                    usize::try_from(bytes).unwrap_or(usize::MAX)
                }),
                sessions: args.max_sessions.max(1),
                requests: MAX_REQUESTS,
                idle: Duration::from_secs(args.idle_timeout.max(1) * 60),
                stall: Duration::from_secs(args.stall_timeout.max(1)),
            },
            pass_noise: args.pass_noise,
            reconnect: !args.no_reconnect,
            hold: hold(args),
            breakpoints,
            rules: args.rules.clone(),
            quiet: args.quiet,
            escapes_stderr: false,
            control: !args.no_control,
            tui: (!args.headless).then_some(args.tui),
            masks,
            target,
            listen,
            tools: Arc::default(),
            sign_ins: SignInStore::default(),
            replay_of: None,
        })
    }
}

/// One for the whole run: it keeps the pipes of all servers together within what a user may have.
pub fn supervisor() -> Result<Supervisor> {
    let guard = GuardProgram::current().context("cannot find our own binary")?;
    Ok(Supervisor::new(guard))
}

/// Shorter values of flags may be ordinary words.
const SHORT_VALUE: usize = 6;
/// Clients that count from the last progress wait for a minute.
const HOLD_PROGRESS: Duration = Duration::from_secs(10);
/// Within a short time for decisions too, a client is told a few times.
const TOLD_AT_LEAST: u32 = 5;

fn hold(args: &ProxyArgs) -> HoldOptions {
    let progress = match args.hold_timeout {
        HoldTimeout::After(time) => HOLD_PROGRESS.min(time / TOLD_AT_LEAST),
        HoldTimeout::Never => HOLD_PROGRESS,
    };
    HoldOptions {
        mode: match args.intercept {
            true => InterceptMode::Intercept,
            false => InterceptMode::Passthrough,
        },
        timeout: args.hold_timeout,
        policy: match args.on_hold_timeout {
            OnHoldTimeout::Forward => HoldPolicy::Forward,
            OnHoldTimeout::Drop => HoldPolicy::Drop,
            OnHoldTimeout::Error => HoldPolicy::Error,
        },
        waits_for_viewer: args.require_viewer,
        progress: args.hold_progress.then_some(progress),
    }
}

fn target(args: &ProxyArgs) -> Result<Target> {
    let words = command_words(args)?;
    let url = args.url.as_ref().or(args.target_url.as_ref());
    match (words, url, args.transport) {
        (Some(words), _, None | Some(ServerKind::Stdio)) => command(args, words),
        (Some(_), _, Some(_)) => {
            bail!("--transport sse and streamable-http need a URL; a command speaks stdio")
        }
        (None, Some(_), Some(ServerKind::Stdio)) => {
            bail!(
                "--transport stdio needs a command: --target-command \"…\" or -- COMMAND; a URL speaks HTTP"
            )
        }
        (None, Some(url), kind) => remote(args, url, kind),
        (None, None, _) => bail!(
            "which server? Give a URL (mcp-proxy http://localhost:3000/mcp) or a command (mcp-proxy -- python server.py)"
        ),
    }
}

fn command_words(args: &ProxyArgs) -> Result<Option<Vec<OsString>>> {
    let Some(text) = &args.target_command else {
        return Ok((!args.command.is_empty()).then(|| args.command.clone()));
    };
    let words = shlex::split(text).with_context(|| {
        format!("--target-command: `{text}` cannot be split into words; is a quote left open?")
    })?;
    if words.is_empty() {
        bail!("--target-command is empty");
    }
    Ok(Some(words.into_iter().map(OsString::from).collect()))
}

fn command(args: &ProxyArgs, words: Vec<OsString>) -> Result<Target> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let env = args
        .env
        .iter()
        .map(|pair| variable(pair))
        .collect::<Result<_>>()?;
    Ok(Target::Command(ServerCommand {
        program,
        args: words.collect(),
        environment: match args.env_mode {
            Some(EnvMode::Minimal) => Environment::Minimal,
            Some(EnvMode::Inherit) | None => Environment::Inherit,
        },
        env,
        cwd: args.cwd.clone(),
    }))
}

impl Target {
    /// Another server than the one of the flags, by its URL or its command, split like shell words. It gets none of
    /// their headers and variables: those are for the one they were given for. Of our own environment it gets as much.
    pub fn other(&self, text: &str) -> Result<Target> {
        // A command may have a URL among its words.
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| !scheme.contains(char::is_whitespace)) {
            return Ok(Target::Url {
                url: server_url(text)?,
                kind: None,
                headers: Vec::new(),
                ca_file: None,
                auth: None,
            });
        }
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let words = words.with_context(|| format!("`{text}` is neither a URL nor a command"))?;
        let mut words = words.into_iter().map(OsString::from);
        Ok(Target::Command(ServerCommand {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            environment: self.environment(),
            env: Vec::new(),
            cwd: None,
        }))
    }
}

fn breakpoint(text: &str) -> Result<Filter> {
    let filter = Filter::parse(text).with_context(|| format!("--break {text}"))?;
    if filter.is_empty() {
        bail!("--break {text:?}: an empty filter is for every message; write --intercept for that");
    }
    Ok(filter)
}

fn variable(pair: &str) -> Result<(OsString, OsString)> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => bail!("--env: write NAME=value"),
    }
}

fn remote(args: &ProxyArgs, text: &str, kind: Option<ServerKind>) -> Result<Target> {
    let url = server_url(text)?;
    Ok(Target::Url {
        url,
        kind: match kind {
            Some(ServerKind::Sse) => Some(Transport::Sse),
            Some(_) => Some(Transport::StreamableHttp),
            None => None,
        },
        headers: headers(&args.header)?,
        ca_file: args.ca_file.clone(),
        auth: None,
    })
}

fn server_url(text: &str) -> Result<Uri> {
    let parsed: Option<Uri> = text
        .parse()
        .ok()
        .filter(|url: &Uri| url.scheme().is_some() && url.host().is_some_and(|it| !it.is_empty()));
    let url = parsed.with_context(|| match suggestion::with_scheme(text) {
        Some(url) => format!("`{text}` has no scheme; use: {url}"),
        None => format!("`{text}` is not a URL (http://… or https://…); a command goes after `--`: mcp-proxy -- {text}"),
    })?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        bail!("`{text}`: only http:// and https:// servers can be reached");
    }
    if url.path().is_empty() {
        with_root_path(url)
    } else {
        Ok(url)
    }
}

fn with_root_path(url: Uri) -> Result<Uri> {
    let mut parts = url.into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    Ok(Uri::from_parts(parts)?)
}

fn listen(args: &ProxyArgs) -> Result<ClientEndpoint> {
    let kind = args.listen.unwrap_or_else(|| default_listen(args));
    let kind = match kind {
        ClientKind::Stdio => return Ok(ClientEndpoint::Stdio),
        ClientKind::Http => Transport::StreamableHttp,
        ClientKind::Sse => Transport::Sse,
    };
    let token = match &args.auth_token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("--auth-token-file: cannot read {}", path.display()))?;
            Some(
                Token::new(&text)
                    .with_context(|| format!("--auth-token-file: {} is empty", path.display()))?,
            )
        }
        None => None,
    };
    let token_file = args.auth_token_file.as_deref();
    let token_file = token_file.map(std::path::absolute).transpose()?;
    let tls = tls_files(args)?;
    let host = args.listen_host.as_deref().unwrap_or(DEFAULT_HOST);
    if !is_loopback(host) {
        if tls.is_none() && !args.behind_tls_proxy {
            bail!(
                "--listen-host {host}: others can reach this address; give --tls-cert and --tls-key, or \
                 --behind-tls-proxy if TLS is terminated in front of this proxy"
            );
        }
        if token.is_none() {
            bail!(
                "--listen-host {host}: others can reach this address; give --auth-token-file with a token that clients \
                 must send"
            );
        }
    }
    Ok(ClientEndpoint::Port {
        kind,
        host: host.to_owned(),
        port: args.listen_port.unwrap_or(DEFAULT_PORT),
        admission: Admission {
            token,
            hosts: args.allow_host.clone(),
            origins: args.allow_origin.clone(),
            ..Admission::default()
        },
        token_file,
        tls,
        legacy: match args.stateless {
            true => LegacyClients::Stateless,
            false => LegacyClients::Sessions,
        },
    })
}

/// The certificate and the key of a listener, if they can be used.
pub(super) fn tls_files(args: &ProxyArgs) -> Result<Option<(PathBuf, PathBuf)>> {
    let Some((cert, key)) = args.tls_cert.clone().zip(args.tls_key.clone()) else {
        return Ok(None);
    };
    for (flag, path) in [("--tls-cert", &cert), ("--tls-key", &key)] {
        std::fs::File::open(path)
            .with_context(|| format!("{flag}: cannot read {}", path.display()))?;
    }
    ServerCertificate::open(&cert, &key).context("--tls-cert, --tls-key")?;
    Ok(Some((cert, key)))
}

fn default_listen(args: &ProxyArgs) -> ClientKind {
    match args.transport {
        Some(ServerKind::Stdio) => ClientKind::Stdio,
        Some(ServerKind::Sse) => ClientKind::Sse,
        Some(ServerKind::StreamableHttp) => ClientKind::Http,
        None if stdin_is_a_channel() => ClientKind::Stdio,
        None => ClientKind::Http,
    }
}

/// Whether only this machine's own programs reach an address.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn record(
    args: &ProxyArgs,
    redaction: Option<Redaction>,
    credentials: CredentialRedaction,
) -> Result<Option<RecordConfig>> {
    if args.no_record {
        return Ok(None);
    }
    let format = args.output_format.as_deref();
    let (place, export) = match &args.session_file {
        Some(path) => session_file::place(path, format)?,
        None => (RecordLocation::Default, format.map(str::to_owned)),
    };
    Ok(Some(RecordConfig {
        place,
        options: RecordOptions {
            durability: args.durability.parse().map_err(anyhow::Error::msg)?,
            on_error: args.on_record_error.parse().map_err(anyhow::Error::msg)?,
            credentials,
            redaction,
            max_size: Some(args.max_record_size),
        },
        export,
    }))
}

/// The values of `--header` and `--env`, without short ones that everybody has: masking those would hide ordinary text.
fn secrets(args: &ProxyArgs, target: &Target) -> Vec<String> {
    let headers = target
        .headers()
        .iter()
        .filter_map(|(_, value)| value.to_str().ok());
    let given = args.header.iter().filter_map(|line| line.split_once(':'));
    let variables = args.env.iter().filter_map(|pair| pair.split_once('='));
    let given = given.chain(variables).map(|(_, value)| value.trim());
    headers
        .chain(given)
        .filter(|secret| secret.len() >= SHORT_VALUE || !is_ordinary(secret))
        .map(str::to_owned)
        .collect()
}

fn masks(args: &ProxyArgs, target: &Target) -> CredentialRedaction {
    if args.keep_secrets {
        return CredentialRedaction::none();
    }
    let masks = CredentialRedaction::new(secrets(args, target));
    if let Target::Command(command) = target
        && command.environment != Environment::Minimal
    {
        masks.add(super::hub::credentials_of_our_environment());
    }
    masks
}
