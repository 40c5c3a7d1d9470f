//! Signing in to servers: where the sign-ins are kept, and what a config file says about a server's.

use std::collections::HashSet;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result};
use http::Uri;
use mcp_proxy_auth::{
    AuthError, AuthSettings, Grant, HttpProxy, ProxyFinder, Secret, SignIns, TokenStoreChoice,
};
use mcp_proxy_hub::config::{AuthGrant, AuthOptions};
use mcp_proxy_transport::http::OutboundProxy;
use url::Url;

use crate::printer;

/// `file`: tokens are kept in a file even if there is a keychain.
const STORE_VARIABLE: &str = "MCP_PROXY_TOKEN_STORE";

/// The sign-ins of the user, opened when they are first needed. Clones share everything.
#[derive(Clone, Default)]
pub struct SignInStore {
    opened: Arc<OnceLock<Result<Arc<SignIns>, String>>>,
    told: Arc<Mutex<HashSet<String>>>,
    used: Arc<Mutex<HashSet<String>>>,
}

impl SignInStore {
    /// The sign-ins.
    pub fn open(&self) -> Result<Arc<SignIns>> {
        let open = || open().map_err(|error| format!("{error:#}"));
        self.opened
            .get_or_init(open)
            .clone()
            .map_err(anyhow::Error::msg)
    }

    /// Notes that a server was sent a token.
    pub fn note_use(&self, server: &str) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.contains(server) {
            used.insert(server.to_owned());
        }
    }

    /// The servers that were sent a token since this was last asked.
    pub fn take_used(&self) -> HashSet<String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut used)
    }

    /// Tells the user something about a sign-in, unless that was told before in this run.
    pub fn tell_once(&self, text: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.contains(&text) {
            printer::say(&format!("mcp-proxy: {text}"));
            told.insert(text);
        }
    }
}

fn open() -> Result<Arc<SignIns>> {
    let choice = match std::env::var(STORE_VARIABLE).as_deref() {
        Ok("file") => TokenStoreChoice::File,
        Ok("" | "keychain") | Err(_) => TokenStoreChoice::default(),
        Ok(other) => anyhow::bail!("{STORE_VARIABLE} is `{other}`; it can be `file` or `keychain`"),
    };
    let folder = data_folder().context("neither HOME nor XDG_DATA_HOME is set")?;
    Ok(SignIns::open(folder, choice)?)
}

/// `$XDG_DATA_HOME/mcp-proxy`, or `~/.local/share/mcp-proxy`.
fn data_folder() -> Option<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let folder = match given("XDG_DATA_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(given("HOME")?).join(".local/share"),
    };
    Some(folder.join("mcp-proxy"))
}

/// What a config file says about the sign-in to a server.
pub fn auth_settings(options: &AuthOptions) -> Result<AuthSettings> {
    let server = options.authorization_server.as_ref();
    Ok(AuthSettings {
        client_id: options.client_id.clone(),
        client_secret: options
            .client_secret
            .as_ref()
            .map(|secret| Secret::new(secret.reveal())),
        scopes: options.scopes.clone(),
        grant: match options.grant {
            AuthGrant::AuthorizationCode => Grant::AuthorizationCode,
            AuthGrant::ClientCredentials => Grant::ClientCredentials,
        },
        authorization_server: server.map(|server| url_of(server.uri())).transpose()?,
        hosts: options.hosts.clone(),
        redirect_port: options.redirect_port.map(NonZeroU16::get),
        ca_file: None,
        proxies: ProxyFinder::default(),
    })
}

/// The HTTP proxies that servers are reached through, for their authorization servers.
pub fn environment_proxies() -> ProxyFinder {
    ProxyFinder::new(|url| {
        let variable = |name: &str| std::env::var(name).ok();
        let proxy = OutboundProxy::from_environment(url, variable);
        let proxy = proxy.map_err(|error| error.to_string())?;
        Ok(proxy.map(|proxy| HttpProxy {
            url: proxy.url(),
            authorization: proxy.authorization().cloned(),
        }))
    })
}

/// The type of URL that a sign-in takes.
pub fn url_of(uri: &Uri) -> Result<Url, AuthError> {
    Url::parse(&uri.to_string()).map_err(|_| AuthError::NotHttps {
        server: uri.host().unwrap_or_default().to_owned(),
    })
}
