//! The server that a person names to `login` and `logout`: by its URL, or by its name in a config file.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use http::header::AUTHORIZATION;
use mcp_proxy_auth::{AuthSettings, ServerSignIn};
use mcp_proxy_hub::config::{HubConfig, ServerConfig, ServerTarget};
use mcp_proxy_session::{CredentialRedaction, REDACTED_CREDENTIAL};
use mcp_proxy_transport::control::running_proxies;
use url::Url;

use super::behind_proxy::server_behind;
use crate::cli::sign_in::SignInServerArgs;
use crate::config::{
    SignInStore, auth_settings, default_config_file, environment_proxies, read_config_files, url_of,
};
use crate::printer;
use crate::run::control::{greet, is_hub};
use crate::run::runtime;

/// What a person types to sign in. It works wherever it is typed, and names no file of this machine.
pub fn login_command(masks: &CredentialRedaction, server: &str, name: Option<&str>) -> String {
    let word = match name {
        // A key in the path is a secret. The running hub knows what the name means.
        Some(name) if masks.url(server) != server => name,
        _ => server,
    };
    let quoted = shlex::try_quote(word).unwrap_or_else(|_| word.into());
    format!("mcp-proxy login {quoted}")
}

/// The server that a person named.
pub struct NamedServer {
    pub sign_in: ServerSignIn,
    /// Its entry in the config has an `Authorization` header, which is sent instead of a sign-in.
    pub has_credentials: bool,
}

/// Finds the server that is meant.
pub fn find(args: &SignInServerArgs) -> Result<NamedServer> {
    let known = known_servers(&args.config)?;
    let server = match args.server.contains("://") {
        true => by_url(&args.server, known)?,
        false => by_name(&args.server, known)?,
    };
    let settings = AuthSettings {
        ca_file: args.ca_file.clone(),
        proxies: environment_proxies(),
        ..server.settings
    };
    let store = SignInStore::default().open()?;
    Ok(NamedServer {
        sign_in: ServerSignIn::new(store, server.url, settings)?,
        has_credentials: server.has_credentials,
    })
}

/// A server of a config file or of a running hub.
struct KnownServer {
    name: String,
    /// Or why nobody can sign in to it.
    found: Result<FoundServer, String>,
}

struct FoundServer {
    url: Url,
    settings: AuthSettings,
    has_credentials: bool,
}

fn by_url(text: &str, known: Vec<KnownServer>) -> Result<FoundServer> {
    let url = Url::parse(text).with_context(|| format!("`{text}` is not a URL"))?;
    let url = match runtime()?.block_on(server_behind(&url)) {
        Some(server) => {
            let shown = shown_url(&server);
            printer::say(&format!("mcp-proxy: {text} is a proxy in front of {shown}"));
            server
        }
        None => url,
    };
    let mut found = known.into_iter().filter_map(|server| server.found.ok());
    let same = found.find(|found| without_query(&found.url) == without_query(&url));
    Ok(FoundServer {
        url,
        settings: same.map(|server| server.settings).unwrap_or_default(),
        // Other commands that use this URL may have none.
        has_credentials: false,
    })
}

fn by_name(name: &str, known: Vec<KnownServer>) -> Result<FoundServer> {
    let mut names: Vec<String> = known.iter().map(|server| server.name.clone()).collect();
    let mut servers: Vec<FoundServer> = Vec::new();
    let mut problem = None;
    for server in known.into_iter().filter(|server| server.name == name) {
        match server.found {
            Ok(found) => {
                let is_same =
                    |other: &FoundServer| without_query(&other.url) == without_query(&found.url);
                if !servers.iter().any(is_same) {
                    servers.push(found);
                }
            }
            Err(why) => problem = Some(why),
        }
    }
    match (servers.len(), problem) {
        (1, _) => Ok(servers.remove(0)),
        (0, Some(why)) => bail!("{name}: {why}"),
        (0, None) => {
            names.sort();
            names.dedup();
            let known = match names.is_empty() {
                true => "no config file and no running hub has any".to_owned(),
                false => format!("there are {}", names.join(", ")),
            };
            bail!(
                "there is no server `{name}`: {known}; give its URL, or its file with --config FILE"
            )
        }
        (_, _) => {
            let urls: Vec<String> = servers
                .iter()
                .map(|server| shown_url(&server.url))
                .collect();
            bail!(
                "several servers are called `{name}`; give the URL of one: {}",
                urls.join(", ")
            )
        }
    }
}

/// A URL without what may be a secret.
fn shown_url(url: &Url) -> String {
    let masks = CredentialRedaction::default();
    masks.url(without_query(url).as_str()).into_owned()
}

fn without_query(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    url
}

/// The servers of these files; without files, those of running hubs and of the default config file.
fn known_servers(files: &[PathBuf]) -> Result<Vec<KnownServer>> {
    if !files.is_empty() {
        return Ok(servers_of(&read_config_files(files)?));
    }
    let mut known = runtime()?.block_on(servers_of_hubs());
    if let Some(file) = default_config_file()
        && let Ok(config) = read_config_files(&[file])
    {
        known.extend(servers_of(&config));
    }
    Ok(known)
}

async fn servers_of_hubs() -> Vec<KnownServer> {
    let mut known = Vec::new();
    for hub in running_proxies().iter().filter(|running| is_hub(running)) {
        let Ok(hello) = greet(hub).await else {
            continue;
        };
        // A file that was broken meanwhile says nothing; the hub still has its servers.
        if let Ok(config) = read_config_files(&hello.config_files) {
            known.extend(servers_of(&config));
        }
        for server in hello.servers {
            if known.iter().all(|known| known.name != server.name) {
                known.extend(server_of_hub(server.name, &server.target));
            }
        }
    }
    known
}

/// What a hub tells of a server whose config file cannot be read any more.
fn server_of_hub(name: String, target: &str) -> Option<KnownServer> {
    let url = Url::parse(target).ok()?;
    let found = match target.contains(REDACTED_CREDENTIAL) {
        true => Err(
            "its URL has a secret, which its hub does not tell; name its file with --config FILE"
                .to_owned(),
        ),
        false => Ok(FoundServer {
            url,
            settings: AuthSettings::default(),
            has_credentials: false,
        }),
    };
    Some(KnownServer { name, found })
}

fn servers_of(config: &HubConfig) -> Vec<KnownServer> {
    let servers = config.servers.iter();
    let known = servers.map(|server| KnownServer {
        name: server.name.as_str().to_owned(),
        found: server_of(server),
    });
    known.collect()
}

fn server_of(server: &ServerConfig) -> Result<FoundServer, String> {
    let spec = server.state.as_ref().map_err(ToString::to_string)?;
    let ServerTarget::Url { url, headers, .. } = &spec.target else {
        return Err("it has no URL, so there is nothing to sign in to".to_owned());
    };
    let settings = spec.options.auth.as_ref().map(auth_settings).transpose();
    Ok(FoundServer {
        url: url_of(url.uri()).map_err(|error| error.to_string())?,
        settings: settings
            .map_err(|error| error.to_string())?
            .unwrap_or_default(),
        has_credentials: headers.iter().any(|(name, _)| *name == AUTHORIZATION),
    })
}
