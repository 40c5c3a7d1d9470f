//! The parts of a URL, in the one form in which they are compared.

use url::{Host, Position, Url};

/// A URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UrlParts {
    /// Without a host: `about:blank`, `data:…`.
    Opaque(String),
    /// With one, which is empty for a file.
    Host(HostUrl),
}

/// A URL with a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostUrl {
    pub(super) scheme: String,
    pub(super) host: String,
    /// Empty if it is the scheme's own.
    pub(super) port: String,
    /// With the query and the fragment.
    pub(super) path: String,
}

/// URLs inside of URLs. Browsers read fewer.
const MAX_WRAPPERS: usize = 4;
/// Schemes of a browser's own pages. The standard does not know them; browsers read them like `http`, without a port.
const BROWSER_SCHEMES: [&str; 8] = [
    "chrome",
    "chrome-extension",
    "chrome-untrusted",
    "devtools",
    "edge",
    "brave",
    "opera",
    "vivaldi",
];

impl HostUrl {
    /// The URL as a whole.
    pub(super) fn text(&self) -> String {
        let colon = if self.port.is_empty() { "" } else { ":" };
        let HostUrl {
            scheme,
            host,
            port,
            path,
        } = self;
        format!("{scheme}://{host}{colon}{port}{path}")
    }
}

impl UrlParts {
    /// Everything that a browser may read a URL as: itself, then what it wraps or stands for. Nothing if it is not absolute or if a
    /// browser may read it in yet another way.
    pub(super) fn read(url: &str) -> Option<Vec<UrlParts>> {
        let url: String = url
            .trim_matches(|character| character <= ' ')
            .chars()
            .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
            .collect();
        let mut readings = Vec::new();
        let mut url = url.as_str();
        for _ in 0..=MAX_WRAPPERS {
            let (scheme, rest) = url.split_once(':')?;
            if !is_scheme(scheme) || is_host_or_drive(scheme, rest) {
                return None;
            }
            let scheme = scheme.to_ascii_lowercase();
            match scheme.as_str() {
                "view-source" | "blob" | "filesystem" | "javascript" | "data" => {
                    readings.push(UrlParts::Opaque(format!("{scheme}:{rest}")));
                }
                _ => {
                    readings.push(read_rest(&scheme, rest)?);
                    if is_own_page(&scheme, rest) {
                        readings.push(read_rest("chrome", rest)?);
                    }
                    return Some(readings);
                }
            }
            match scheme.as_str() {
                // What follows is not a URL, even if there are slashes in it.
                "javascript" | "data" => return Some(readings),
                // It has no origin.
                "blob" | "filesystem" if rest.starts_with("null") => return Some(readings),
                _ => url = rest,
            }
        }
        None
    }

    /// Whether it is a document or script that stands in the URL itself, or one that nobody knows the source of.
    pub(super) fn is_inline(&self) -> bool {
        let UrlParts::Opaque(text) = self else {
            return false;
        };
        let schemes = ["javascript:", "data:", "blob:", "filesystem:"];
        schemes.iter().any(|scheme| text.starts_with(scheme))
    }
}

/// Whether a browser takes what looks like a scheme for a host with a port, as in `localhost:80/`, or for a drive.
fn is_host_or_drive(scheme: &str, rest: &str) -> bool {
    let port = rest.split(['/', '\\', '?', '#']).next();
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    scheme.contains('.') || scheme.len() == 1 || port.is_some_and(is_port)
}

/// Whether a URL is another way to write `chrome://…`: `about:settings`, or the scheme of a browser that is made from Chrome.
fn is_own_page(scheme: &str, rest: &str) -> bool {
    let page = rest.split(['?', '#']).next().unwrap_or_default();
    match scheme {
        "about" => !["blank", "srcdoc"].contains(&page.to_ascii_lowercase().as_str()),
        "edge" | "brave" | "opera" | "vivaldi" => true,
        _ => false,
    }
}

fn read_rest(scheme: &str, rest: &str) -> Option<UrlParts> {
    let is_browsers = BROWSER_SCHEMES.contains(&scheme);
    let read_as = if is_browsers { "http" } else { scheme };
    let url = Url::parse(&format!("{read_as}:{rest}")).ok()?;
    if !url.has_authority() && scheme != "file" {
        return Some(UrlParts::Opaque(format!("{scheme}:{rest}")));
    }
    let host = match url.host() {
        Some(host) => canonical_host(&host)?,
        None => String::new(),
    };
    let port = url.port().filter(|_| !is_browsers);
    let mut path = canonical_path(&url[Position::BeforePath..]);
    // Several slashes are one to the system.
    while scheme == "file" && path.contains("//") {
        path = path.replace("//", "/");
    }
    Some(UrlParts::Host(HostUrl {
        scheme: scheme.to_owned(),
        host,
        port: port.map_or_else(String::new, |port| port.to_string()),
        path,
    }))
}

/// The host of a pattern without wildcards, in the form in which hosts are compared. Nothing if it is not one.
pub(super) fn pattern_host(host: &str) -> Option<String> {
    match host {
        "" => Some(String::new()),
        _ if host.is_ascii() => canonical_host(&Host::parse(host).ok()?),
        _ => None,
    }
}

/// A host without the dot at its end. An IPv4 address inside of an IPv6 address leads to the same machine.
fn canonical_host<S: AsRef<str>>(host: &Host<S>) -> Option<String> {
    let domain = match host {
        Host::Ipv4(address) => return Some(address.to_string()),
        Host::Ipv6(address) => {
            return Some(match address.to_ipv4_mapped() {
                Some(address) => address.to_string(),
                None => format!("[{address}]"),
            });
        }
        Host::Domain(domain) => domain.as_ref().to_ascii_lowercase(),
    };
    let domain = domain.strip_suffix('.').unwrap_or(&domain);
    // Browsers take dots away, but not all of them the same ones. Hosts of other schemes than the web's are not decoded.
    let is_unclear = domain.split('.').any(str::is_empty) || domain.contains('%');
    (domain.is_empty() || !is_unclear).then(|| domain.to_owned())
}

/// The port that URLs of a scheme need not name.
pub(super) fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        "ftp" => Some("21"),
        scheme if BROWSER_SCHEMES.contains(&scheme) => Some(""),
        _ => None,
    }
}

pub(super) fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

/// A path or query in which each character is written in one way: letters, digits and `-._~` as they are, others that need it
/// percent-encoded.
pub(super) fn canonical_path(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        let encoded = match bytes {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        let byte = match encoded {
            Some((high, low)) => high * 16 + low,
            None => *first,
        };
        bytes = match encoded {
            Some(_) => bytes.get(3..).unwrap_or_default(),
            None => rest,
        };
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let stays = encoded.is_none() && byte.is_ascii_graphic() && !b"\"<>`{}".contains(&byte);
        match is_plain || stays {
            true => path.push(char::from(byte)),
            false => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}
