//! Rules about URLs, which are read as browsers read them (WHATWG URL).
//!
//! Scheme, host, port and path are matched one by one, so that a `*` in the host never reaches into the path. What a browser could
//! read in a way that is not known here is denied as soon as there is a rule.

mod parts;

use globset::{GlobBuilder, GlobMatcher};

use self::parts::{UrlParts, canonical_path, default_port, is_scheme, pattern_host};

/// The URLs that are allowed and denied.
#[derive(Clone, Debug, Default)]
pub(super) struct UrlRules {
    allowed: Vec<UrlPattern>,
    denied: Vec<UrlPattern>,
}

/// Which URLs a rule is about.
#[derive(Clone, Debug)]
enum UrlPattern {
    /// `*`
    Any,
    /// Those of a scheme that needs no host, such as `about:blank`.
    Opaque(GlobMatcher),
    /// Those with one.
    Host(Box<HostPattern>),
}

/// A pattern with a host.
#[derive(Clone, Debug)]
struct HostPattern {
    scheme: GlobMatcher,
    host: GlobMatcher,
    /// The default port is the empty text.
    port: GlobMatcher,
    path: GlobMatcher,
    /// Otherwise URLs are compared without theirs.
    has_fragment: bool,
}

impl UrlRules {
    /// Without a port in its pattern, a URL is allowed with the default port only.
    pub(super) fn allow(&mut self, patterns: &[String]) -> Result<(), String> {
        self.allowed = read_all(patterns, "")?;
        Ok(())
    }

    /// Without a port in its pattern, a URL is denied with every port.
    pub(super) fn deny(&mut self, patterns: &[String]) -> Result<(), String> {
        self.denied = read_all(patterns, "*")?;
        Ok(())
    }

    pub(super) fn admit(&self, url: &str) -> bool {
        if self.allowed.is_empty() && self.denied.is_empty() {
            return true;
        }
        let Some(readings) = UrlParts::read(url) else {
            return false;
        };
        let matches = |pattern: &UrlPattern| readings.iter().any(|url| pattern.matches(url));
        let is_allowed = self.allowed.is_empty() || self.allowed.iter().any(matches);
        is_allowed && !self.denied.iter().any(matches) && !self.may_hide(&readings)
    }

    /// Whether a URL may lead to a site that is denied, and its text does not tell. A rule can allow it all the same.
    fn may_hide(&self, readings: &[UrlParts]) -> bool {
        let names_host = |pattern: &UrlPattern| matches!(pattern, UrlPattern::Host(_));
        let names_it = |pattern: &UrlPattern| {
            let is_opaque = matches!(pattern, UrlPattern::Opaque(_));
            is_opaque && readings.iter().any(|url| pattern.matches(url))
        };
        readings.last().is_some_and(UrlParts::is_inline)
            && self.denied.iter().any(names_host)
            && !self.allowed.iter().any(names_it)
    }
}

impl UrlPattern {
    fn read(text: &str, implied_port: &str) -> Result<UrlPattern, String> {
        if text == "*" {
            return Ok(UrlPattern::Any);
        }
        let wrong = |why: &str| Err(format!("{text:?}: {why}"));
        let Some((scheme, rest)) = text.split_once("//") else {
            return match text.split_once(':') {
                Some((scheme, rest))
                    if is_scheme(scheme)
                        && default_port(scheme).is_none()
                        && !rest.starts_with(|first: char| first.is_ascii_digit()) =>
                {
                    let scheme = scheme.to_ascii_lowercase();
                    Ok(UrlPattern::Opaque(glob(&format!("{scheme}:{rest}"))?))
                }
                _ => wrong("write *://HOST/PATH"),
            };
        };
        let scheme = scheme.strip_suffix(':').unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        if !is_scheme(&scheme.replace('*', "x")) {
            return wrong("write *://HOST/PATH");
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let Some((host, port)) = split_port(authority) else {
            return wrong("the port must be a number or *");
        };
        let host = match host.contains('*') {
            true if host.is_ascii() && !host.contains('@') => {
                Some(host.trim_end_matches('.').to_ascii_lowercase())
            }
            true => None,
            false => pattern_host(host),
        };
        let Some(host) = host else {
            return wrong("the host must be ASCII (xn--… if its name is not), without a user");
        };
        let port = match port {
            None => implied_port,
            Some(port) if default_port(&scheme) == Some(port) => "",
            Some(port) => port,
        };
        // Without a path it is about all of the host.
        let path = match path {
            "" => "*".to_owned(),
            _ => format!(
                "/{}",
                canonical_path(path.strip_prefix('/').unwrap_or(path))
            ),
        };
        Ok(UrlPattern::Host(Box::new(HostPattern {
            scheme: glob(&scheme)?,
            host: glob(&host)?,
            port: glob(port)?,
            has_fragment: path.contains('#'),
            path: glob(&path)?,
        })))
    }

    fn matches(&self, url: &UrlParts) -> bool {
        match (self, url) {
            (UrlPattern::Any, _) => true,
            (UrlPattern::Opaque(pattern), UrlParts::Opaque(text)) => pattern.is_match(text),
            (UrlPattern::Opaque(pattern), UrlParts::Host(url)) => pattern.is_match(url.text()),
            (UrlPattern::Host(pattern), UrlParts::Host(url)) => {
                let path = match pattern.has_fragment {
                    true => &url.path,
                    false => url.path.split('#').next().unwrap_or_default(),
                };
                pattern.scheme.is_match(&url.scheme)
                    && pattern.host.is_match(&url.host)
                    && pattern.port.is_match(&url.port)
                    && pattern.path.is_match(path)
            }
            _ => false,
        }
    }
}

/// The host and port of a pattern. The port has digits, or is `*`; an empty one is none.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let host_end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = authority.get(host_end..)?.rfind(':') else {
        return Some((authority, None));
    };
    let (host, port) = authority.split_at(host_end + colon);
    let port = port.strip_prefix(':')?;
    let is_port = port == "*" || port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some((host, Some(port).filter(|port| !port.is_empty())))
}

fn read_all(patterns: &[String], implied_port: &str) -> Result<Vec<UrlPattern>, String> {
    let patterns = patterns.iter();
    patterns
        .map(|text| UrlPattern::read(text, implied_port))
        .collect()
}

/// Only `*` is special.
fn glob(text: &str) -> Result<GlobMatcher, String> {
    let escaped = globset::escape(text).replace("[*]", "*");
    let glob = GlobBuilder::new(&escaped).build();
    let glob = glob.map_err(|error| format!("{text:?}: {}", error.kind()))?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests;
