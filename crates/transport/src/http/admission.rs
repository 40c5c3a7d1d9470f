//! Who may speak to a listener: Host and Origin (DNS rebinding), and our own bearer token.
//!
//! Pure checks on headers. The token is ours alone: it is removed before anything is recorded or forwarded.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};
use mcp_proxy_wire::ErrorCode;
use mcp_proxy_wire::headers::remove_in_order;

/// What a listener demands.
#[derive(Clone, Default)]
pub struct Admission {
    /// The bearer token that clients must show, if any.
    pub token: Option<Token>,
    /// Host names in addition to the loopback ones; with a token and none named, every Host is accepted.
    pub hosts: Vec<String>,
    /// Origins in addition to the loopback ones.
    pub origins: Vec<String>,
    /// Which browser extensions may connect.
    pub extensions: BrowserExtensions,
    /// Whether pages that are served from this machine may.
    pub local_pages: LocalPages,
}

/// The browser extensions that a listener takes. A web page cannot pretend to be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrowserExtensions {
    /// Those among the origins.
    #[default]
    Named,
    /// All.
    Any,
}

/// Pages with a loopback origin, such as those of a program under development. They are as trusted as that program, so a listener
/// that asks for nothing else may refuse them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalPages {
    /// They may connect.
    #[default]
    Admitted,
    /// They are pages like any other.
    Refused,
}

/// What the origins of extensions begin with.
const EXTENSION_SCHEMES: [&str; 3] = [
    "chrome-extension://",
    "moz-extension://",
    "safari-web-extension://",
];

/// A secret that is never printed.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// From the bytes of a file; white space around it does not count.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (!text.is_empty()).then(|| Token(Arc::from(text)))
    }

    /// Compares without telling by time how much of it was right.
    fn is(&self, shown: &[u8]) -> bool {
        let own_bytes = self.0.as_bytes();
        let mut difference = usize::from(shown.len() != own_bytes.len());
        for (index, byte) in shown.iter().enumerate() {
            let own = own_bytes.get(index).copied().unwrap_or_default();
            difference |= usize::from(own ^ byte);
        }
        difference == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRefusal {
    /// HTTP status.
    pub status: u16,
    /// JSON-RPC code in the body.
    pub code: ErrorCode,
    /// Text for the peer.
    pub text: &'static str,
}

const BAD_HOST: AdmissionRefusal = AdmissionRefusal {
    status: 403,
    code: ErrorCode::FORBIDDEN_HOST,
    text: "this Host is not served here (DNS rebinding protection); name it with --allow-host",
};
const TWO_HOSTS: AdmissionRefusal = AdmissionRefusal {
    status: 400,
    code: ErrorCode::BAD_REQUEST,
    text: "a request has one Host header, not several",
};
const BAD_ORIGIN: AdmissionRefusal = AdmissionRefusal {
    status: 403,
    code: ErrorCode::FORBIDDEN_HOST,
    text: "this Origin may not use this listener; name it with --allow-origin",
};
const BAD_TOKEN: AdmissionRefusal = AdmissionRefusal {
    status: 401,
    code: ErrorCode::UNAUTHORIZED,
    text: "a bearer token is needed: Authorization: Bearer …",
};

impl Admission {
    /// Checks a request's head. On success the proxy's own token has been removed from it and is returned, if one is
    /// required.
    pub fn admit(
        &self,
        headers: &mut HeaderMap,
        authority: Option<&str>,
    ) -> Result<Option<Arc<str>>, AdmissionRefusal> {
        self.admit_origin(headers, authority)?;
        let Some(token) = &self.token else {
            return Ok(None);
        };
        let shown = headers
            .get(AUTHORIZATION)
            .and_then(|value| bearer(value.as_bytes()));
        if !shown.is_some_and(|shown| token.is(shown)) {
            return Err(BAD_TOKEN);
        }
        remove_in_order(headers, |name| *name == AUTHORIZATION);
        Ok(Some(Arc::clone(&token.0)))
    }

    /// The part of it that needs no token: whom the request is meant for, and whose page sent it.
    pub(super) fn admit_origin(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
    ) -> Result<(), AdmissionRefusal> {
        self.admit_hosts(headers, authority)?;
        let mut origins = headers.get_all(ORIGIN).into_iter();
        let is_known = origins.all(|it| self.origin_is_known(it.to_str().unwrap_or_default()));
        is_known.then_some(()).ok_or(BAD_ORIGIN)
    }

    /// A request names its host in the Host header, in an absolute request target or `:authority`, or in both: who reads
    /// it behind us may go by either, so each of them must be known.
    fn admit_hosts(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
    ) -> Result<(), AdmissionRefusal> {
        let mut hosts = headers.get_all(HOST).into_iter();
        let host = hosts.next().map(|host| host.to_str().unwrap_or_default());
        if hosts.next().is_some() {
            return Err(TWO_HOSTS);
        }
        let is_known = match (host, authority) {
            (Some(host), Some(authority)) => {
                self.host_is_known(Some(host)) && self.host_is_known(Some(authority))
            }
            (host, authority) => self.host_is_known(host.or(authority)),
        };
        is_known.then_some(()).ok_or(BAD_HOST)
    }

    fn host_is_known(&self, host: Option<&str>) -> bool {
        if self.token.is_some() && self.hosts.is_empty() {
            return true;
        }
        let Some(host) = host else { return false };
        let name = without_port(host);
        is_loopback_name(name)
            || self
                .hosts
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether the user named this origin.
    pub(super) fn names_origin(&self, origin: &str) -> bool {
        let mut named = self.origins.iter();
        named.any(|named| named.eq_ignore_ascii_case(origin))
    }

    fn origin_is_known(&self, origin: &str) -> bool {
        if self.names_origin(origin) {
            return true;
        }
        if self.extensions == BrowserExtensions::Any && is_extension(origin) {
            return true;
        }
        if self.local_pages == LocalPages::Refused {
            return false;
        }
        let Some((_, rest)) = origin.split_once("://") else {
            return false;
        };
        is_loopback_name(without_port(rest))
    }
}

/// Whether an Origin is that of a browser extension. A web page cannot send one.
pub fn is_extension_origin(origin: &HeaderValue) -> bool {
    origin.to_str().is_ok_and(is_extension)
}

fn is_extension(origin: &str) -> bool {
    let mut schemes = EXTENSION_SCHEMES.iter();
    schemes.any(|scheme| origin.starts_with(scheme))
}

/// The token of an `Authorization` header.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| rest.trim_ascii())
}

/// `localhost:80` → `localhost`, `[::1]:80` → `[::1]`. What follows the last colon and is not a port stays, and makes
/// the name an unknown one.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(admission: &Admission, pairs: &[(&str, &str)]) -> Result<(), u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        admission
            .admit(&mut headers, None)
            .map(drop)
            .map_err(|refusal| refusal.status)
    }

    #[test]
    fn every_place_that_names_a_host_or_origin_is_looked_at() {
        let open = Admission::default();
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(admit(&open, &two), Err(400));
        let origins = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil.example"),
        ];
        assert_eq!(admit(&open, &origins), Err(403));
        assert_eq!(admit(&open, &origins[..2]), Ok(()));
        let target = |authority| {
            let mut headers = HeaderMap::new();
            headers.append(HOST, "localhost".parse().unwrap());
            let admitted = open.admit(&mut headers, Some(authority));
            admitted.map(drop).map_err(|refusal| refusal.status)
        };
        assert_eq!(target("evil.example"), Err(403));
        assert_eq!(target("localhost:80"), Ok(()));
        let mut headers = HeaderMap::new();
        assert_eq!(open.admit(&mut headers, Some("localhost")), Ok(None));
        assert_eq!(
            open.admit(&mut headers, Some("evil.example")),
            Err(BAD_HOST)
        );
    }

    #[test]
    fn loopback_names_pass_and_others_do_not() {
        let open = Admission::default();
        for host in [
            "localhost",
            "localhost:8888",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:80",
            "LOCALHOST",
        ] {
            assert_eq!(admit(&open, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "127.0.0.1:80@evil.example",
            "localhost:evil.example",
            "localhost@evil.example:80",
            "[::1]:80:80",
            "",
        ] {
            assert_eq!(admit(&open, &[("host", host)]), Err(403), "{host}");
        }
        assert_eq!(admit(&open, &[]), Err(403));
    }

    #[test]
    fn origins_are_checked_when_shown() {
        let mut admission = Admission::default();
        let local = ("host", "localhost");
        assert_eq!(
            admit(&admission, &[local, ("origin", "http://localhost:6274")]),
            Ok(())
        );
        assert_eq!(
            admit(&admission, &[local, ("origin", "http://evil.example")]),
            Err(403)
        );
        assert_eq!(admit(&admission, &[local, ("origin", "null")]), Err(403));
        admission.origins.push("https://app.example".into());
        assert_eq!(
            admit(&admission, &[local, ("origin", "https://app.example")]),
            Ok(())
        );
    }

    #[test]
    fn pages_of_this_machine_can_be_refused_and_extensions_still_pass() {
        let admission = Admission {
            extensions: BrowserExtensions::Any,
            local_pages: LocalPages::Refused,
            ..Admission::default()
        };
        let from = |origin| admit(&admission, &[("host", "localhost"), ("origin", origin)]);
        for page in [
            "http://localhost:8899",
            "http://127.0.0.1",
            "https://[::1]:1",
            "null",
        ] {
            assert_eq!(from(page), Err(403), "{page}");
        }
        assert_eq!(from("chrome-extension://abcdefgh"), Ok(()));
        assert_eq!(admit(&admission, &[("host", "localhost")]), Ok(()));
    }

    #[test]
    fn a_token_is_demanded_and_taken_away() {
        let admission = Admission {
            token: Token::new(" s3cret\n"),
            ..Admission::default()
        };
        let host = ("host", "proxy.example");
        assert_eq!(admit(&admission, &[host]), Err(401));
        assert_eq!(
            admit(&admission, &[host, ("authorization", "Bearer s3cre")]),
            Err(401)
        );
        assert_eq!(
            admit(&admission, &[host, ("authorization", "Basic s3cret")]),
            Err(401)
        );
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "proxy.example".parse().unwrap());
        headers.insert(AUTHORIZATION, "bearer s3cret".parse().unwrap());
        let admitted = admission.admit(&mut headers, None);
        assert_eq!(admitted, Ok(Some(Arc::from("s3cret"))));
        assert!(!headers.contains_key(AUTHORIZATION));
    }
}
