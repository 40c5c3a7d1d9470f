//! The server that a person names to `login` and `logout`: by its URL, or by its name in a config file.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_auth::{AuthSettings, ServerSignIn};
use mcp_proxy_hub::config::{HubConfig, ServerTarget};
use mcp_proxy_session::CredentialRedaction;
use mcp_proxy_transport::control::running_proxies;
use url::Url;

use crate::cli::sign_in::SignInServerArgs;
use crate::config::{SignInStore, auth_settings, default_config_file, read_config_files, url_of};
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

/// The server that is meant.
pub fn find(args: &SignInServerArgs) -> Result<ServerSignIn> {
    let known = known_servers(&args.config)?;
    let server = match args.server.contains("://") {
        true => by_url(&args.server, known)?,
        false => by_name(&args.server, known)?,
    };
    let settings = AuthSettings {
        ca_file: args.ca_file.clone(),
        ..server.settings
    };
    let store = SignInStore::default().open()?;
    Ok(ServerSignIn::new(store, server.url, settings)?)
}

/// A server of a config file or of a running hub.
struct KnownServer {
    name: String,
    /// Why it has no URL, if it has none.
    url: Result<Url, String>,
    settings: AuthSettings,
}

struct FoundServer {
    url: Url,
    settings: AuthSettings,
}

fn by_url(text: &str, known: Vec<KnownServer>) -> Result<FoundServer> {
    let url = Url::parse(text).with_context(|| format!("`{text}` is not a URL"))?;
    let is_same = |other: &Url| without_query(other) == without_query(&url);
    let mut same = known
        .into_iter()
        .filter(|server| server.url.as_ref().is_ok_and(is_same));
    let settings = same.next().map(|server| server.settings);
    Ok(FoundServer {
        url,
        settings: settings.unwrap_or_default(),
    })
}

fn by_name(name: &str, known: Vec<KnownServer>) -> Result<FoundServer> {
    let mut names: Vec<String> = known.iter().map(|server| server.name.clone()).collect();
    let mut found: Vec<FoundServer> = Vec::new();
    let mut problem = None;
    for server in known.into_iter().filter(|server| server.name == name) {
        match server.url {
            Ok(url)
                if found
                    .iter()
                    .all(|found| without_query(&found.url) != without_query(&url)) =>
            {
                found.push(FoundServer {
                    url,
                    settings: server.settings,
                });
            }
            Ok(_) => {}
            Err(why) => problem = Some(why),
        }
    }
    match (found.len(), problem) {
        (1, _) => Ok(found.remove(0)),
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
            let urls: Vec<&str> = found.iter().map(|server| server.url.as_str()).collect();
            bail!(
                "several servers are called `{name}`; give the URL of one: {}",
                urls.join(", ")
            )
        }
    }
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
            if let Ok(url) = Url::parse(&server.target)
                && known.iter().all(|known| known.name != server.name)
            {
                known.push(KnownServer {
                    name: server.name,
                    url: Ok(url),
                    settings: AuthSettings::default(),
                });
            }
        }
    }
    known
}

fn servers_of(config: &HubConfig) -> Vec<KnownServer> {
    let read = |server: &mcp_proxy_hub::config::ServerConfig| {
        let name = server.name.as_str().to_owned();
        let spec = match &server.state {
            Ok(spec) => spec,
            Err(problem) => {
                return KnownServer {
                    name,
                    url: Err(problem.to_string()),
                    settings: AuthSettings::default(),
                };
            }
        };
        let settings = spec.options.auth.as_ref().map(auth_settings).transpose();
        let url = match &spec.target {
            ServerTarget::Url { url, .. } => url_of(url.uri()).map_err(|error| error.to_string()),
            ServerTarget::Command { .. } | ServerTarget::Builtin(_) => {
                Err("it has no URL, so there is nothing to sign in to".to_owned())
            }
        };
        match settings {
            Ok(settings) => KnownServer {
                name,
                url,
                settings: settings.unwrap_or_default(),
            },
            Err(error) => KnownServer {
                name,
                url: Err(error.to_string()),
                settings: AuthSettings::default(),
            },
        }
    };
    config.servers.iter().map(read).collect()
}
