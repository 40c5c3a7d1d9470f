//! Values that must not be shown, and what of them has to be masked wherever else it appears.

use std::fmt;

use http::Uri;
use serde::Deserialize;

/// What stands where a secret stood.
const MASK: &str = "[masked]";

/// Shorter values hide more of a text than they protect.
const SHORTEST_SECRET: usize = 4;

/// A path segment this long that mixes letters and digits is taken for a key: some hosts put it there.
const KEY_SEGMENT: usize = 24;

/// Values that everybody has. Masking them would hide ordinary text.
const COMMON_VALUES: &[&str] = &[
    "true",
    "false",
    "none",
    "null",
    "auto",
    "default",
    "debug",
    "info",
    "warn",
    "warning",
    "error",
    "trace",
    "test",
    "local",
    "localhost",
    "127.0.0.1",
    "development",
    "staging",
    "production",
    "stdio",
    "http",
    "utf-8",
    "en_us.utf-8",
    "*/*",
    "application/json",
    "text/event-stream",
    "application/json, text/event-stream",
];

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct SecretText(String);

/// The URL of a server. `Debug` shows only its host: the rest may be a credential.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ServerUrl(Uri);

impl SecretText {
    /// Takes a text.
    pub fn new(text: impl Into<String>) -> SecretText {
        SecretText(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl ServerUrl {
    /// Checks a URL. The error says what is wrong without quoting it.
    pub fn parse(text: &str) -> Result<ServerUrl, &'static str> {
        let uri: Uri = text.trim().parse().map_err(|_| "not a URL")?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            _ => return Err("a URL must begin with http:// or https://"),
        }
        match uri.host() {
            None | Some("") => Err("the URL has no host"),
            Some(_) => Ok(ServerUrl(uri)),
        }
    }

    /// The URL itself.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// User name and password, query values, and path segments that look like keys.
    fn secrets(&self) -> Vec<&str> {
        let userinfo = self.userinfo().unwrap_or_default();
        let userinfo = userinfo.split(':').chain([userinfo]);
        let query = self.0.query().unwrap_or_default().split('&');
        let query = query.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        let segments = self.0.path().split('/').filter(|part| is_key(part));
        userinfo.chain(query).chain(segments).collect()
    }

    fn userinfo(&self) -> Option<&str> {
        let authority = self.0.authority()?.as_str();
        authority.rsplit_once('@').map(|(userinfo, _)| userinfo)
    }
}

impl TryFrom<String> for ServerUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<ServerUrl, &'static str> {
        ServerUrl::parse(&text)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host().unwrap_or_default();
        write!(f, "{}://{host}/…", self.0.scheme_str().unwrap_or_default())
    }
}

/// Collects what has to be masked.
#[derive(Default)]
pub(super) struct SecretCollector(Vec<String>);

impl SecretCollector {
    /// Adds a value, unless it is short or common.
    pub(super) fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.chars().count() >= SHORTEST_SECRET && !is_ordinary(value) {
            self.0.push(value.to_owned());
        }
    }

    /// Adds a header's value and, after a scheme such as `Bearer`, the credential alone.
    pub(super) fn add_header(&mut self, value: &str) {
        self.add(value);
        if let Some((scheme, credential)) = value.split_once(' ')
            && scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            self.add(credential);
        }
    }

    /// Adds what a URL hides, as it is written and with its escapes decoded.
    pub(super) fn add_url(&mut self, url: &ServerUrl) {
        for secret in url.secrets() {
            self.add(secret);
            self.add(&super::roots::percent_decode(secret));
        }
    }

    /// The secrets, the longest first, so that no part of a longer one is left over.
    pub(super) fn into_secrets(mut self) -> Vec<String> {
        self.0
            .sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.0.dedup();
        self.0
    }
}

/// Whether a value is a small number, or one that everybody has.
pub fn is_ordinary(value: &str) -> bool {
    let is_small_number = value.len() < 7 && value.bytes().all(|byte| byte.is_ascii_digit());
    is_small_number || COMMON_VALUES.contains(&value.to_ascii_lowercase().as_str())
}

fn is_key(segment: &str) -> bool {
    segment.len() >= KEY_SEGMENT
        && segment.bytes().any(|byte| byte.is_ascii_digit())
        && segment.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_and_shown_without_credentials() {
        for (url, shown) in [
            ("http://[::1]:3000", "http://[::1]/…"),
            (
                "https://ada:lovelace@example.com:8443/mcp?key=12345&flag",
                "https://example.com/…",
            ),
        ] {
            assert_eq!(format!("{:?}", ServerUrl::parse(url).unwrap()), shown);
        }
        for url in [
            "",
            "example.com",
            "ftp://example.com",
            "/mcp",
            "http://",
            "http://a b",
        ] {
            assert!(ServerUrl::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn short_and_common_values_are_not_secrets() {
        let mut collector = SecretCollector::default();
        for value in [
            "1",
            "abc",
            "true",
            "Production",
            "8080",
            "hunter2",
            "hunter2",
        ] {
            collector.add(value);
        }
        collector.add_header("Bearer t0ken");
        let url = "https://ada:lovelace@example.com/?q=a%20key%21";
        collector.add_url(&ServerUrl::parse(url).unwrap());
        let secrets = collector.into_secrets();
        assert_eq!(
            secrets,
            [
                "Bearer t0ken",
                "ada:lovelace",
                "a%20key%21",
                "lovelace",
                "hunter2",
                "a key!",
                "t0ken"
            ]
        );
    }
}
