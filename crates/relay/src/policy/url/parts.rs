//! The parts of a URL, in the one form in which they are compared.

use super::host::canonical_host;

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
    let is_file = scheme == "file";
    let is_special = is_file || default_port(scheme).is_some();
    let is_slash = |character: char| character == '/' || (is_special && character == '\\');
    let slashes = rest.find(|character| !is_slash(character));
    let slashes = slashes.unwrap_or(rest.len());
    // Special schemes need no slashes in front of the host, and may have more than two.
    let rest = match () {
        () if is_file && slashes != 2 => return Some(host_url(scheme, "", "", file_path(rest))),
        () if is_file => rest.get(2..)?,
        () if is_special => rest.get(slashes..)?,
        () => match rest.strip_prefix("//") {
            Some(rest) => rest,
            None => return Some(UrlParts::Opaque(format!("{scheme}:{rest}"))),
        },
    };
    let end = rest.find(|character| is_slash(character) || matches!(character, '?' | '#'));
    let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, it)| it);
    let (host, port) = split_port(authority)?;
    let host = canonical_host(host)?;
    if is_file {
        let host = if host == "localhost" { "" } else { &host };
        return Some(host_url(scheme, host, "", file_path(rest)));
    }
    if is_special && host.is_empty() {
        return None;
    }
    let port = match port {
        Some(port) => port.parse::<u16>().ok()?.to_string(),
        None => String::new(),
    };
    let is_default = default_port(scheme).is_some_and(|own| own == port);
    let port = if is_default { "" } else { &port };
    let path = resolved(rest, is_special);
    Some(host_url(scheme, &host, port, path))
}

/// A path in which several slashes are one, as they are for the system.
fn file_path(rest: &str) -> String {
    let mut path = resolved(rest, true);
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    path
}

fn host_url(scheme: &str, host: &str, port: &str, path: String) -> UrlParts {
    UrlParts::Host(HostUrl {
        scheme: scheme.to_owned(),
        host: host.to_owned(),
        port: port.to_owned(),
        path,
    })
}

/// The port that URLs of a scheme need not name. Those that have one are special schemes, and `file` is one too.
pub(super) fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        "ftp" => Some("21"),
        // Not special in the standard, but Chrome reads their slashes in the same way. They never have a port.
        "chrome" | "chrome-extension" | "chrome-untrusted" | "devtools" => Some(""),
        "edge" | "brave" | "opera" | "vivaldi" => Some(""),
        _ => None,
    }
}

pub(super) fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

/// Host and port. The port has digits, or is the `*` of a pattern; an empty one is none.
pub(super) fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let host_end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = authority.get(host_end..)?.rfind(':') else {
        return Some((authority, None));
    };
    let (host, port) = authority.split_at(host_end + colon);
    let port = port.strip_prefix(':')?;
    let is_port = port == "*" || port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some((host, Some(port).filter(|port| !port.is_empty())))
}

/// A path with its `.` and `..` resolved, and what follows it.
fn resolved(rest: &str, is_special: bool) -> String {
    let (path, more) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let path = match is_special {
        true => path.replace('\\', "/"),
        false => path.to_owned(),
    };
    let path = canonical_path(path.strip_prefix('/').unwrap_or(&path));
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    segments.pop();
                }
                // A folder ends with a slash.
                if is_last {
                    segments.push("");
                }
            }
            _ => segments.push(part),
        }
    }
    format!("/{}{}", segments.join("/"), canonical_path(more))
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
pub(super) fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}
