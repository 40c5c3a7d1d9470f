//! What a config may say about signing in to a server.

use std::path::PathBuf;

use url::Url;

use crate::{ProxyFinder, Secret};

/// How tokens are obtained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person signs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client id and secret are enough. For machines.
    ClientCredentials,
}

/// The settings of one server. Without any, everything is discovered.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// The id of a client that was registered by hand, or the https URL of a client id metadata document.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
    /// Scopes to ask for in addition to those that the server names.
    pub scopes: Vec<String>,
    /// How tokens are obtained.
    pub grant: Grant,
    /// The issuer to use if the server names several, or none. It may have a private address.
    pub authorization_server: Option<Url>,
    /// Hosts that may have a private address although the server is public.
    pub hosts: Vec<String>,
    /// The port of the redirect URL, for clients that were registered by hand with a fixed one.
    pub redirect_port: Option<u16>,
    /// A PEM file with more certificate authorities to trust.
    pub ca_file: Option<PathBuf>,
    /// The HTTP proxies of the environment.
    pub proxies: ProxyFinder,
}
