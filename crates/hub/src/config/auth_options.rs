//! How to sign in to a server: `"auth"` under our own key, or what other clients have in its place. Without either, everything
//! is discovered.

use super::error::ConfigError;
use super::keys::AUTH_KEYS;
use super::node::{Fields, Node};
use super::secret::{SecretText, ServerUrl};

/// How to sign in to a server. `Debug` does not show the secret.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthOptions {
    /// The id of a client that was registered by hand, or the URL of a client id metadata document.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretText>,
    /// Scopes to ask for in addition to those that the server names.
    pub scopes: Vec<String>,
    /// Who signs in.
    pub grant: AuthGrant,
    /// The authorization server, if the server names several or none.
    pub authorization_server: Option<ServerUrl>,
    /// Hosts that may have a private address although the server has a public one.
    pub hosts: Vec<String>,
    /// The port of the redirect URL that was registered by hand.
    pub redirect_port: Option<u16>,
}

/// Who signs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthGrant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// A machine, by the client's id and secret.
    ClientCredentials,
}

const GRANT_WORDS: &[(&str, AuthGrant)] = &[
    ("authorization_code", AuthGrant::AuthorizationCode),
    ("client_credentials", AuthGrant::ClientCredentials),
];

impl AuthOptions {
    /// Reads `auth` under our own key.
    pub(super) fn read(node: &Node<'_>) -> Result<AuthOptions, ConfigError> {
        let fields = node.fields(AUTH_KEYS)?;
        let auth = AuthOptions {
            client_id: fields.read("client-id", Node::nonempty_text)?,
            client_secret: read_secret(&fields)?,
            scopes: fields.read("scopes", read_scopes)?.unwrap_or_default(),
            grant: fields
                .read("grant", |node| node.choice(GRANT_WORDS))?
                .unwrap_or_default(),
            authorization_server: fields.read("authorization-server", read_server)?,
            hosts: fields.read("hosts", Node::texts)?.unwrap_or_default(),
            redirect_port: fields.read("redirect-port", read_port)?,
        };
        if auth.client_secret.is_some() && auth.client_id.is_none() {
            return Err(node.bad("has a `client-secret` without its `client-id`"));
        }
        if auth.grant == AuthGrant::ClientCredentials && auth.client_secret.is_none() {
            return Err(node
                .bad("`\"grant\": \"client_credentials\"` needs `client-id` and `client-secret`"));
        }
        Ok(auth)
    }

    /// Reads what Claude Code, OpenCode and Gemini CLI (`oauth`) and Cursor (`auth`) say about a client that was registered by
    /// hand. What it does not understand is theirs.
    pub(super) fn of_other_client(node: &Node<'_>) -> Result<Option<AuthOptions>, ConfigError> {
        let text = |names: [&str; 2]| {
            let mut found = names.iter().filter_map(|name| node.child(name));
            found.next().map(|node| node.nonempty_text()).transpose()
        };
        let Some(client_id) = text(["clientId", "CLIENT_ID"])? else {
            return Ok(None);
        };
        let scopes = node.child("scopes").or(node.child("scope"));
        Ok(Some(AuthOptions {
            client_id: Some(client_id),
            client_secret: text(["clientSecret", "CLIENT_SECRET"])?.map(SecretText::new),
            scopes: scopes
                .map(|node| read_scopes(&node))
                .transpose()?
                .unwrap_or_default(),
            redirect_port: node
                .child("callbackPort")
                .map(|node| read_port(&node))
                .transpose()?,
            ..AuthOptions::default()
        }))
    }
}

fn read_secret(fields: &Fields<'_>) -> Result<Option<SecretText>, ConfigError> {
    let secret = fields.read("client-secret", Node::nonempty_text)?;
    Ok(secret.map(SecretText::new))
}

/// A list, or one string with blanks between them, as OAuth writes them.
fn read_scopes(node: &Node<'_>) -> Result<Vec<String>, ConfigError> {
    let texts = match node.is_list() {
        true => node.texts()?,
        false => vec![node.nonempty_text()?],
    };
    let scopes = texts.iter().flat_map(|text| text.split_whitespace());
    Ok(scopes.map(str::to_owned).collect())
}

fn read_server(node: &Node<'_>) -> Result<ServerUrl, ConfigError> {
    ServerUrl::parse(&node.text()?).map_err(|why| node.bad(why))
}

fn read_port(node: &Node<'_>) -> Result<u16, ConfigError> {
    let port: std::num::NonZeroU16 = node.integer("expected a port from 1 to 65535")?;
    Ok(port.get())
}
