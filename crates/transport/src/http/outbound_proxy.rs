//! The HTTP proxy that stands between us and servers, from the environment as curl reads it: `HTTP_PROXY`, `HTTPS_PROXY`,
//! `ALL_PROXY` and `NO_PROXY`, in capitals or not.

use std::net::IpAddr;

use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

/// An HTTP proxy.
#[derive(Clone, Debug)]
pub struct OutboundProxy {
    /// The variable that names it.
    variable: &'static str,
    /// Where requests to it go. It has no credentials.
    url: Uri,
    /// The credentials of its URL, as `Proxy-Authorization`.
    authorization: Option<HeaderValue>,
}

/// Why a variable does not name a proxy. Its value may hold a password, so it is not shown.
#[derive(Debug, thiserror::Error)]
pub enum OutboundProxyError {
    /// Another kind of proxy.
    #[error(
        "{0} names a proxy that is not an http:// one, and no other kind is supported; put the server's host into NO_PROXY to connect directly"
    )]
    Unsupported(&'static str),
    /// No URL.
    #[error("{0} is not the URL of a proxy; write http://host:port")]
    Malformed(&'static str),
}

impl OutboundProxy {
    /// The proxy that requests to `server` take. `variable` reads one of our own environment.
    pub fn from_environment(
        server: &Uri,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<OutboundProxy>, OutboundProxyError> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let either = |name: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
            set(&name.to_ascii_lowercase()).or_else(|| set(name))
        };
        let exempt = either("NO_PROXY").unwrap_or_default();
        let exempt = exempt.replace([' ', '\t'], ",");
        let any = Matcher::builder().all("http://proxy").no(exempt).build();
        if is_loopback(host) || any.intercept(server).is_none() {
            return Ok(None);
        }
        let own = match server.scheme() == Some(&Scheme::HTTPS) {
            true => "HTTPS_PROXY",
            false => "HTTP_PROXY",
        };
        for name in [own, "ALL_PROXY"] {
            if let Some(value) = either(name) {
                return OutboundProxy::parse(name, value.trim()).map(Some);
            }
        }
        Ok(None)
    }

    fn parse(name: &'static str, value: &str) -> Result<OutboundProxy, OutboundProxyError> {
        let rest = match value.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(OutboundProxyError::Unsupported(name)),
            None => value,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let matcher = Matcher::builder().all(format!("http://{authority}"));
        let proxy = matcher
            .build()
            .intercept(&Uri::from_static("http://server"));
        let proxy = proxy.ok_or(OutboundProxyError::Malformed(name))?;
        Ok(OutboundProxy {
            variable: name,
            url: proxy.uri().clone(),
            authorization: proxy.basic_auth().cloned(),
        })
    }

    /// What people call it; without its credentials.
    pub(super) fn shown(&self) -> String {
        let url = self.url.to_string();
        format!("{} (from {})", url.trim_end_matches('/'), self.variable)
    }

    /// Its URL, without its credentials.
    pub fn url(&self) -> Uri {
        self.url.clone()
    }

    /// The value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

/// This machine is never reached through a proxy.
fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let server = server.parse().unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = OutboundProxy::from_environment(&server, variable).unwrap();
        proxy.map(|proxy| proxy.url.authority().unwrap().to_string())
    }

    #[test]
    fn the_variable_of_the_scheme_names_the_proxy() {
        let all = [
            ("HTTP_PROXY", "http://plain:3128"),
            ("https_proxy", "secure:3129/"),
            ("ALL_PROXY", "http://all"),
        ];
        assert_eq!(chosen("http://h/mcp", &all).unwrap(), "plain:3128");
        assert_eq!(chosen("https://h/mcp", &all).unwrap(), "secure:3129");
        assert_eq!(chosen("https://h/mcp", &all[2..]).unwrap(), "all");
        assert_eq!(chosen("https://h/mcp", &[("HTTPS_PROXY", "")]), None);
        let both = [("HTTP_PROXY", "capital"), ("http_proxy", "small")];
        assert_eq!(chosen("http://h/mcp", &both).unwrap(), "small");
    }

    #[test]
    fn no_proxy_exempts_hosts_domains_and_networks() {
        let cases = [
            ("http://example.com/", "example.com", true),
            ("http://EXAMPLE.com/", ".example.com", true),
            ("http://api.example.com/", "other example.com", true),
            ("http://notexample.com/", "example.com", false),
            ("http://10.1.2.3/", "10.0.0.0/8", true),
            ("http://11.1.2.3/", "10.0.0.0/8", false),
            ("http://10.1.2.3/", "10.1.2.3", true),
            ("http://10.1.2.4/", "10.1.2.3", false),
            ("http://10.1.2.4/", "0.0.0.0/0", true),
            ("http://[fd00::1]/", "[fd00::]/8,fd00::/8", true),
            ("http://[fe80::1]/", "fd00::/8", false),
            ("http://anything/", "*", true),
            ("http://anything/", "", false),
        ];
        for (server, list, exempt) in cases {
            let variables = [("http_proxy", "http://proxy:1"), ("NO_PROXY", list)];
            assert_eq!(
                chosen(server, &variables).is_none(),
                exempt,
                "{server} {list}"
            );
        }
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy() {
        let here = [
            "http://localhost:1/",
            "http://app.localhost/",
            "http://127.9.9.9/",
            "http://[::1]:1/",
        ];
        for server in here {
            assert_eq!(chosen(server, &[("http_proxy", "http://p:1")]), None);
        }
    }

    #[test]
    fn credentials_of_a_proxy_become_a_header() {
        let variable = |_: &str| Some("http://me:p%40w@proxy:1".to_owned());
        let server = "http://elsewhere/".parse().unwrap();
        // `NO_PROXY` is the same text here, which exempts nothing.
        let proxy = OutboundProxy::from_environment(&server, variable)
            .unwrap()
            .unwrap();
        assert_eq!(proxy.authorization.unwrap(), "Basic bWU6cEB3");
        assert_eq!(
            OutboundProxy::parse("X", "h:1").unwrap().url(),
            "http://h:1/"
        );
    }

    #[test]
    fn other_kinds_of_proxies_are_refused_by_the_name_of_their_variable() {
        for (value, unsupported) in [
            ("socks5://h:1", true),
            ("https://h", true),
            ("http://", false),
        ] {
            let error = OutboundProxy::parse("ALL_PROXY", value).unwrap_err();
            let is_unsupported = matches!(error, OutboundProxyError::Unsupported("ALL_PROXY"));
            assert_eq!(is_unsupported, unsupported, "{value}");
        }
    }
}
