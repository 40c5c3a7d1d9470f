//! How to sign in to a server: `"auth"` under our own key, or what other clients have in its place. Without either, everything
//! is discovered.

use std::num::NonZeroU16;

use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::reader::ConfigReader;
use super::secret::{SecretText, ServerUrl};
use super::tree::Tree;
use super::values::nonempty;

/// How to sign in to a server. `Debug` does not show the secret.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct AuthOptions {
    /// The id of a client that was registered by hand, or the URL of a client id metadata document.
    #[serde(deserialize_with = "nonempty")]
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<SecretText>,
    /// Scopes to ask for in addition to those that the server names.
    #[serde(deserialize_with = "scopes")]
    pub scopes: Vec<String>,
    /// Who signs in.
    pub grant: AuthGrant,
    /// The authorization server, if the server names several or none.
    pub authorization_server: Option<ServerUrl>,
    /// Hosts that may have a private address although the server has a public one.
    pub hosts: Vec<String>,
    /// The port of the redirect URL that was registered by hand.
    pub redirect_port: Option<NonZeroU16>,
}

/// Who signs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthGrant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// A machine, by the client's id and secret.
    ClientCredentials,
}

/// What Claude Code, OpenCode and Gemini CLI (`oauth`) and Cursor (`auth`) say about a client that was registered by hand.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OtherClientAuth {
    #[serde(alias = "CLIENT_ID", deserialize_with = "nonempty")]
    client_id: Option<String>,
    #[serde(alias = "CLIENT_SECRET")]
    client_secret: Option<SecretText>,
    #[serde(alias = "scope", deserialize_with = "scopes")]
    scopes: Vec<String>,
    callback_port: Option<NonZeroU16>,
}

impl AuthOptions {
    /// What is missing, if the options do not fit together.
    pub(super) fn problem(&self) -> Option<&'static str> {
        if self.client_secret.is_some() && self.client_id.is_none() {
            return Some("has a `client-secret` without its `client-id`");
        }
        let is_machine = self.grant == AuthGrant::ClientCredentials;
        (is_machine && self.client_secret.is_none())
            .then_some("`\"grant\": \"client_credentials\"` needs `client-id` and `client-secret`")
    }

    /// Reads what another client has in place of `auth`. What it does not understand is theirs.
    pub(super) fn of_other_client(
        reader: ConfigReader<'_>,
        tree: &Tree,
        path: &str,
    ) -> Result<Option<AuthOptions>, ConfigError> {
        if ["clientId", "CLIENT_ID"]
            .iter()
            .all(|id| tree.get(id).is_none())
        {
            return Ok(None);
        }
        let auth: OtherClientAuth = reader.read(tree, path)?;
        Ok(Some(AuthOptions {
            client_id: auth.client_id,
            client_secret: auth.client_secret,
            scopes: auth.scopes,
            redirect_port: auth.callback_port,
            ..AuthOptions::default()
        }))
    }
}

/// A list, or one string with blanks between them, as OAuth writes them.
fn scopes<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a string or a list of strings")]
    enum Form {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Form::deserialize(value)? {
        Form::One(text) => vec![text],
        Form::Many(texts) => texts,
    };
    let scopes = texts.iter().flat_map(|text| text.split_whitespace());
    Ok(scopes.map(str::to_owned).collect())
}
