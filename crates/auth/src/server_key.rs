//! The name under which a sign-in is kept: the server's URL without what does not tell servers apart.

use std::fmt;

use url::{Host, Url};

use crate::AuthError;

/// Scheme, host, port and path of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServerKey {
    url: Url,
    text: String,
}

impl ServerKey {
    /// Of any http or https URL.
    pub(crate) fn new(server: &Url) -> ServerKey {
        let mut url = server.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Only URLs without a host cannot have these removed, and such a URL has none.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let text = url.as_str().trim_end_matches('/').to_owned();
        ServerKey { url, text }
    }

    /// Of a server that tokens may be sent to.
    pub(crate) fn checked(server: &Url) -> Result<ServerKey, AuthError> {
        let key = ServerKey::new(server);
        let is_safe = match server.scheme() {
            "https" => server.host().is_some(),
            "http" => is_loopback(server),
            _ => false,
        };
        match is_safe {
            true => Ok(key),
            false => Err(AuthError::NotHttps { server: key.text }),
        }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The host and port, as people name the server.
    pub(crate) fn host(&self) -> String {
        host_of(&self.url)
    }
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The host of a URL, with its port if that is not the scheme's own.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The host of an issuer, for errors.
pub(crate) fn issuer_host(issuer: &str) -> String {
    Url::parse(issuer).map_or_else(|_| issuer.to_owned(), |url| host_of(&url))
}

/// Whether a URL names this machine by an address or by `localhost`.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::ServerKey;

    fn key(url: &str) -> String {
        ServerKey::new(&Url::parse(url).unwrap()).to_string()
    }

    #[test]
    fn what_does_not_tell_servers_apart_is_not_in_the_key() {
        for url in [
            "https://example.com/mcp",
            "https://example.com/mcp/",
            "https://EXAMPLE.com:443/mcp?x=1#y",
            "https://ada:secret@example.com/mcp",
        ] {
            assert_eq!(key(url), "https://example.com/mcp");
        }
        assert_eq!(key("https://example.com/"), "https://example.com");
        assert_ne!(
            key("https://example.com:8443/mcp"),
            key("https://example.com/mcp")
        );
        assert_ne!(key("https://example.com/a"), key("https://example.com/b"));
    }

    #[test]
    fn tokens_go_over_https_or_stay_on_this_machine() {
        for (url, is_safe) in [
            ("https://example.com/mcp", true),
            ("http://127.0.0.1:8080/mcp", true),
            ("http://[::1]/mcp", true),
            ("http://localhost/mcp", true),
            ("http://example.com/mcp", false),
            ("http://192.168.1.5/mcp", false),
            ("http://localhost.example.com/mcp", false),
            ("ws://localhost/mcp", false),
            ("file:///etc/passwd", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(ServerKey::checked(&url).is_ok(), is_safe, "{url}");
        }
    }
}
