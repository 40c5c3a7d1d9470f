//! Rules about URLs, which are read as browsers read them (WHATWG URL).
//!
//! Scheme, host, port and path are matched one by one, so that a `*` in the host never reaches into the path. What a browser could
//! read in a way that is not known here, such as a host that is not ASCII, is denied as soon as there is a rule.

mod host;
mod parts;

use globset::{GlobBuilder, GlobMatcher};

use self::host::canonical_host;
use self::parts::{UrlParts, canonical_path, default_port, is_scheme, split_port};

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
    /// Those without a host, such as `about:blank`.
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
        let Some(url) = UrlParts::read(url) else {
            return false;
        };
        let matches = |pattern: &UrlPattern| pattern.matches(&url);
        let is_allowed = self.allowed.is_empty() || self.allowed.iter().any(matches);
        is_allowed && !self.denied.iter().any(matches)
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
        let scheme = scheme.strip_suffix(':').unwrap_or(scheme);
        let scheme = scheme.to_ascii_lowercase();
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
            false => canonical_host(host),
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
            path: glob(&path)?,
        })))
    }

    fn matches(&self, url: &UrlParts) -> bool {
        match (self, url) {
            (UrlPattern::Any, _) => true,
            (UrlPattern::Opaque(pattern), UrlParts::Opaque(text)) => pattern.is_match(text),
            (UrlPattern::Host(pattern), UrlParts::Host(url)) => {
                pattern.scheme.is_match(&url.scheme)
                    && pattern.host.is_match(&url.host)
                    && pattern.port.is_match(&url.port)
                    && pattern.path.is_match(&url.path)
            }
            _ => false,
        }
    }
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
