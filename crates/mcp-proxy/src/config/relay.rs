//! What the flags of `relay` mean.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context as _, Result, bail};
use http::Uri;
use mcp_proxy_relay::{
    PolicyList, RelayAccess, RelayDriver, RelayPolicy, RelayRates, RelaySettings,
};
use mcp_proxy_session::redact::RedactionPreset;
use mcp_proxy_token::{PairingCodes, RevocationList, SigningKey, TokenVerifier};
use mcp_proxy_transport::http::{Admission, BrowserExtensions, LegacyClients, LocalPages};
use mcp_proxy_wire::Transport;

use super::check::tls_files;
use super::relay_policy::with_policy_file;
use super::{ClientEndpoint, Config, RelayFile, Target, is_loopback};
use crate::cli::proxy::{ClientKind, DEFAULT_HOST};
use crate::cli::relay::{RELAY_PORT, RelayArgs};

/// Clients and extensions in place of a server.
#[derive(Clone)]
pub struct RelayTarget {
    /// Limits, times and policy.
    pub settings: RelaySettings,
    /// What tokens are checked with.
    pub keys: Arc<RelayKeys>,
    /// Makes tokens for browsers, if the relay has a secret.
    pub pairing: Option<Arc<PairingConfig>>,
    /// `--audit-log`
    pub audit_log: Option<PathBuf>,
    /// `--threads`
    pub threads: Option<std::num::NonZeroUsize>,
    /// Set once it runs.
    pub driver: Arc<OnceLock<Arc<RelayDriver>>>,
}

/// What tokens are checked with.
#[derive(Clone)]
pub enum RelayKeys {
    /// `--direct`: nobody shows a token.
    Direct,
    /// Tokens are checked.
    Tokens {
        /// With what.
        keys: KeySource,
        /// Where revoked tokens are listed.
        revoked_file: PathBuf,
    },
}

/// What it takes to give a browser a token for a code.
#[derive(Debug)]
pub struct PairingConfig {
    /// Signs tokens.
    pub key: SigningKey,
    /// Where revoked tokens are listed.
    pub revoked_file: PathBuf,
    /// The codes that are open.
    pub codes: Mutex<PairingCodes>,
    /// How browsers reach the relay.
    pub tls: TlsPlace,
}

/// Where TLS ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPlace {
    /// Nowhere: it is not used.
    Nowhere,
    /// Here.
    Here,
    /// In a reverse proxy.
    InFront,
}

/// Where the keys that tokens are checked with come from.
#[derive(Clone)]
pub enum KeySource {
    /// A file, which was read.
    File(Arc<TokenVerifier>),
    /// `--jwks` with a URL.
    Url {
        /// Where the key set is.
        url: Uri,
        /// `--ca-file`
        ca_file: Option<PathBuf>,
    },
}

impl Config {
    /// Checks the flags of `relay` and reads its keys.
    pub fn relay(args: &RelayArgs) -> Result<Config> {
        let target = RelayTarget {
            settings: match &args.protocol.policy {
                Some(path) => with_policy_file(args.protocol.apply(settings(args)?), path)?,
                None => args.protocol.apply(settings(args)?),
            },
            keys: Arc::new(keys(args)?),
            pairing: pairing(args)?.map(Arc::new),
            audit_log: args.audit_log.clone(),
            threads: args.threads,
            driver: Arc::default(),
        };
        let listen = endpoint(args)?;
        let mut proxy = args.proxy.clone();
        proxy.listen = Some(ClientKind::Http);
        proxy.listen_host = None;
        if target.settings.access == RelayAccess::Tokens {
            let own_presets = &mut proxy.redact.own_presets;
            own_presets.push(RedactionPreset::RelayTokens);
        }
        let mut config = Config::with_target(&proxy, Target::Relay(target))?;
        config.listen = listen;
        Ok(config)
    }
}

fn settings(args: &RelayArgs) -> Result<RelaySettings> {
    let lists = [
        (PolicyList::Methods, &args.allow_method, &args.deny_method),
        (PolicyList::Cdp, &args.allow_cdp, &args.deny_cdp),
        (PolicyList::Urls, &args.allow_url, &args.deny_url),
    ];
    let mut policy = RelayPolicy::standard();
    for (list, allowed, denied) in lists {
        let given = |names: &'_ Vec<String>| (!names.is_empty()).then(|| names.clone());
        policy = policy
            .with(list, given(allowed).as_deref(), given(denied).as_deref())
            .map_err(|error| anyhow::anyhow!("the pattern {error}"))?;
    }
    Ok(RelaySettings {
        access: match args.direct {
            true => RelayAccess::Direct,
            false => RelayAccess::Tokens,
        },
        command_timeout: args.command_timeout,
        resume_window: args.resume_window,
        max_connections: args.max_connections.get(),
        rates: RelayRates {
            per_user: args.user_rate.get(),
            per_connection: args.connection_rate.get(),
            ..RelayRates::default()
        },
        policy: Arc::new(policy),
        is_audited: args.audit_log.is_some(),
        ..RelaySettings::default()
    })
}

fn keys(args: &RelayArgs) -> Result<RelayKeys> {
    if args.direct {
        return Ok(RelayKeys::Direct);
    }
    let revoked_file = RelayFile::Revoked.path(args.revoked_file.as_deref())?;
    // A file that cannot be read would let revoked tokens in, and so would a name that was mistyped.
    let cannot_read = || format!("--revoked-file: cannot read {}", revoked_file.display());
    if let Some(path) = &args.revoked_file {
        check_folder(path).with_context(cannot_read)?;
    }
    RevocationList::open(&revoked_file).with_context(cannot_read)?;
    Ok(RelayKeys::Tokens {
        keys: key_source(args)?,
        revoked_file,
    })
}

/// The file need not exist yet. Its folder must.
fn check_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match folder {
        Some(folder) if !folder.is_dir() => bail!("the folder {} does not exist", folder.display()),
        _ => Ok(()),
    }
}

fn key_source(args: &RelayArgs) -> Result<KeySource> {
    let named = args.jwks.as_deref().and_then(Path::to_str);
    let Some(url) = named.and_then(jwks_url).transpose()? else {
        if args.proxy.ca_file.is_some() {
            bail!("--ca-file is for the server of a --jwks URL");
        }
        return Ok(KeySource::File(Arc::new(verifier(args)?)));
    };
    Ok(KeySource::Url {
        url,
        ca_file: args.proxy.ca_file.clone(),
    })
}

/// Only the holder of the secret can issue tokens.
fn pairing(args: &RelayArgs) -> Result<Option<PairingConfig>> {
    if args.direct || args.jwks.is_some() || args.jwt_public_key.is_some() {
        return Ok(None);
    }
    let secret = RelayFile::Secret.path(args.jwt_secret_file.as_deref())?;
    Ok(Some(PairingConfig {
        key: SigningKey::from_file(&secret)?,
        revoked_file: RelayFile::Revoked.path(args.revoked_file.as_deref())?,
        codes: Mutex::default(),
        tls: match &args.proxy.tls_cert {
            Some(_) => TlsPlace::Here,
            None if args.proxy.behind_tls_proxy => TlsPlace::InFront,
            None => TlsPlace::Nowhere,
        },
    }))
}

/// The URL of a key set, if it is not a file. Over plain HTTP everybody on the way could put in a key of their own.
fn jwks_url(text: &str) -> Option<Result<Uri>> {
    let (scheme, _) = text.split_once("://")?;
    let url: Result<Uri> = text.parse().context("--jwks: this is not a URL");
    Some(url.and_then(|url| {
        let host = url.host().unwrap_or_default();
        match scheme.to_ascii_lowercase().as_str() {
            _ if host.is_empty() => bail!("--jwks: the URL names no host"),
            "https" => Ok(url),
            "http" if is_loopback(host) => Ok(url),
            "http" => bail!("--jwks: keys are fetched over https; http is for this machine only"),
            _ => bail!("--jwks: {scheme}:// is not supported; give a file or an https:// URL"),
        }
    }))
}

fn verifier(args: &RelayArgs) -> Result<TokenVerifier> {
    if let Some(path) = &args.jwt_public_key {
        return TokenVerifier::from_public_key_file(path).context("--jwt-public-key");
    }
    if let Some(path) = &args.jwks {
        let keys = std::fs::read(path)
            .with_context(|| format!("--jwks: cannot read {}", path.display()))?;
        return TokenVerifier::from_jwks(&keys)
            .with_context(|| format!("--jwks: {}", path.display()));
    }
    if let Some(path) = &args.jwt_secret_file {
        return TokenVerifier::from_secret_file(path).context("--jwt-secret-file");
    }
    let path = RelayFile::Secret.path(None)?;
    if !path.exists() {
        bail!(
            "no key to check tokens with: run `mcp-proxy relay init` once, or give --jwt-secret-file, --jwt-public-key or --jwks"
        );
    }
    TokenVerifier::from_secret_file(&path).context("the secret of `relay init`")
}

fn endpoint(args: &RelayArgs) -> Result<ClientEndpoint> {
    let proxy = &args.proxy;
    let host = proxy.listen_host.as_deref().unwrap_or(DEFAULT_HOST);
    let tls = tls_files(proxy)?;
    if args.direct {
        check_direct(args, host)?;
    }
    if !is_loopback(host) && tls.is_none() && !proxy.behind_tls_proxy {
        bail!(
            "--listen-host {host}: others can reach this address; give --tls-cert and --tls-key, or \
             --behind-tls-proxy if TLS is terminated in front of this relay"
        );
    }
    let pinned = args.extension_id.iter();
    let pinned = pinned.map(|extension| extension.origin.clone());
    Ok(ClientEndpoint::Port {
        kind: Transport::WebSocket,
        host: host.to_owned(),
        port: proxy.listen_port.unwrap_or(RELAY_PORT),
        admission: Admission {
            token: None,
            hosts: proxy.allow_host.clone(),
            origins: proxy.allow_origin.iter().cloned().chain(pinned).collect(),
            extensions: match args.extension_id.is_empty() {
                true => BrowserExtensions::Any,
                false => BrowserExtensions::Named,
            },
            // Without tokens a page of this machine would need nothing at all.
            local_pages: match args.direct {
                true => LocalPages::Refused,
                false => LocalPages::Admitted,
            },
        },
        token_file: None,
        tls,
        legacy: LegacyClients::Sessions,
    })
}

/// Without tokens, everything that would let somebody else in is refused.
fn check_direct(args: &RelayArgs, host: &str) -> Result<()> {
    let proxy = &args.proxy;
    if !is_loopback(host) {
        bail!(
            "--listen-host {host}: others can reach this address; --direct is for this machine only"
        );
    }
    let given = [
        (proxy.behind_tls_proxy, "--behind-tls-proxy"),
        (!proxy.allow_host.is_empty(), "--allow-host"),
        (!proxy.allow_origin.is_empty(), "--allow-origin"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, flag)) => {
            bail!("{flag} would let others in, and --direct asks nobody for a token")
        }
        None => Ok(()),
    }
}
