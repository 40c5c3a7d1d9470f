//! The cookies of one session with one server: load balancers find the right instance by them.
//!
//! The part of RFC 6265 that an origin needs which is the only one: name, value, `Path`, `Max-Age`, `Expires`, `Secure`. A
//! `Domain` that does not have the server in it is refused.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::SET_COOKIE;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Uri};

/// As browsers, RFC 6265 6.1.
const COOKIES_MAX: usize = 50;
/// Of a whole `Set-Cookie` value.
const COOKIE_BYTES: usize = 4096;

/// The cookies of a session.
#[derive(Default)]
pub(crate) struct CookieJar(Mutex<Vec<Cookie>>);

struct Cookie {
    name: String,
    value: String,
    path: String,
    expires: Option<SystemTime>,
    secure: bool,
}

impl CookieJar {
    /// Takes what an answer from `url` sets.
    pub(crate) fn take(&self, url: &Uri, headers: &HeaderMap) {
        // Nearly no answer sets any.
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let now = SystemTime::now();
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for value in headers.get_all(SET_COOKIE) {
            let Some(cookie) = Cookie::parse(value, url, now) else {
                continue;
            };
            cookies.retain(|old| (&old.name, &old.path) != (&cookie.name, &cookie.path));
            if !cookie.is_over(now) {
                if cookies.len() >= COOKIES_MAX {
                    cookies.remove(0);
                }
                cookies.push(cookie);
            }
        }
    }

    /// The `Cookie` header for a request to `url`.
    pub(crate) fn header(&self, url: &Uri) -> Option<HeaderValue> {
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cookies.is_empty() {
            return None;
        }
        let now = SystemTime::now();
        cookies.retain(|cookie| !cookie.is_over(now));
        let mut sent: Vec<&Cookie> = cookies.iter().filter(|cookie| cookie.fits(url)).collect();
        // Longer paths first; the older of equal ones.
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> = sent
            .iter()
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        let mut value = HeaderValue::from_str(&pairs.join("; ")).ok()?;
        value.set_sensitive(true);
        (!value.is_empty()).then_some(value)
    }
}

impl Cookie {
    fn parse(value: &HeaderValue, url: &Uri, now: SystemTime) -> Option<Cookie> {
        let text = value
            .to_str()
            .ok()
            .filter(|text| text.len() <= COOKIE_BYTES)?;
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return None;
        }
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            path: default_path(url).to_owned(),
            expires: None,
            secure: false,
        };
        let mut has_max_age = false;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "secure" => cookie.secure = true,
                "max-age" => {
                    if let Ok(seconds) = value.parse::<i64>() {
                        has_max_age = true;
                        let seconds = u64::try_from(seconds).unwrap_or(0);
                        // A time that is too far away never comes.
                        cookie.expires = now.checked_add(Duration::from_secs(seconds));
                    }
                }
                "expires" if !has_max_age => {
                    // `09-Jun-2027` is written too.
                    let date = httpdate::parse_http_date(&value.replace('-', " "));
                    cookie.expires = date.ok().or(cookie.expires);
                }
                "domain" if !has_domain(url, value.trim_start_matches('.')) => return None,
                _ => {}
            }
        }
        Some(cookie)
    }

    fn is_over(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// RFC 6265 5.1.4.
    fn fits(&self, url: &Uri) -> bool {
        let rest = url.path().strip_prefix(&self.path);
        let below = rest.is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/')
        });
        below && (!self.secure || url.scheme() == Some(&Scheme::HTTPS))
    }
}

fn default_path(url: &Uri) -> &str {
    match url.path().rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

fn has_domain(url: &Uri, domain: &str) -> bool {
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let domain = domain.to_ascii_lowercase();
    domain.is_empty() || host == domain || host.ends_with(&format!(".{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(url: &str, set: &[&str]) -> CookieJar {
        let jar = CookieJar::default();
        for text in set {
            let headers = HeaderMap::from_iter([(SET_COOKIE, text.parse().unwrap())]);
            jar.take(&url.parse().unwrap(), &headers);
        }
        jar
    }

    fn sent(url: &str, set: &[&str]) -> String {
        let header = jar(url, set).header(&url.parse().unwrap());
        header.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_come_back_until_they_are_over() {
        let url = "http://h/a/mcp";
        assert_eq!(sent(url, &["A=1; HttpOnly", "B=2; Max-Age=60"]), "A=1; B=2");
        assert_eq!(sent(url, &["A=1", "A=2"]), "A=2");
        assert_eq!(sent(url, &["A=1", "A=; Max-Age=0"]), "");
        let past = "A=1; Expires=Wed, 09 Jun 2021 10:18:14 GMT";
        assert_eq!(sent(url, &[past]), "");
        let dashes = "A=1; Expires=Wed, 09-Jun-2021 10:18:14 GMT";
        assert_eq!(sent(url, &[dashes]), "");
        let both = "A=1; Max-Age=60; Expires=Wed, 09 Jun 2021 10:18:14 GMT";
        assert_eq!(sent(url, &[both]), "A=1");
        assert_eq!(sent(url, &["nonsense", "=x", "A=a=b"]), "A=a=b");
    }

    #[test]
    fn cookies_keep_to_their_path_scheme_and_host() {
        let url = "http://h/a/mcp";
        assert_eq!(sent(url, &["A=1; Path=/", "B=2; Path=/a/mcp"]), "B=2; A=1");
        assert_eq!(sent(url, &["A=1; Path=/a/m", "B=2; Path=/b"]), "");
        assert_eq!(sent(url, &["A=1; Secure"]), "");
        assert_eq!(sent("https://h/a", &["A=1; Secure"]), "A=1");
        assert_eq!(sent(url, &["A=1; Domain=h", "B=2; Domain=other"]), "A=1");
        assert_eq!(sent("http://x.h/", &["A=1; Domain=.h"]), "A=1");
    }

    #[test]
    fn a_jar_is_bounded() {
        let many: Vec<String> = (0..99).map(|number| format!("C{number}=x")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(sent("http://h/", &many).split("; ").count(), COOKIES_MAX);
        let large = format!("A={}", "x".repeat(COOKIE_BYTES));
        assert_eq!(sent("http://h/", &[&large]), "");
    }
}
