//! Spellings that a server may take for one URI, so that a rule holds for all of them.
//!
//! Servers read the URIs of their resources with all kinds of parsers: case of scheme and host, percent signs, `..`, empty
//! segments, a user name, a port, a query or a fragment may or may not make a difference. A rule that denies takes the careful side.

use super::web_form::web_form;
use super::{is_file, is_scheme};

/// A text that is encoded more often is taken as it is after so many rounds.
const ROUNDS: usize = 8;

/// A longer URI is not worth the time that its spellings take.
const LONGEST: usize = 64 * 1024;

/// The forms of a URI that the forms of a denied one ([`denied_forms`]) are compared with.
pub(crate) fn plain_forms(uri: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for spelling in spellings(uri) {
        let whole = spelling.split('#').next().unwrap_or(&spelling);
        let without_query = whole.split('?').next().unwrap_or(whole);
        for text in [whole, without_query] {
            let form = plain_form(text);
            if let Some(without_port) = without_port(&form) {
                forms.push(without_port);
            }
            // `x://a/` is `x://a` here, and `x://a/*` is meant to match it.
            forms.push(format!("{form}/"));
            forms.push(form);
            forms.extend(with_slashes(text));
            forms.extend(without_file_host(text));
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The forms of a URI, or of a pattern of URIs, that a rule denies.
pub(crate) fn denied_forms(pattern: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for spelling in spellings(pattern) {
        forms.push(plain_form(&spelling));
        forms.extend(with_slashes(&spelling));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The text as it is, and as parsers of web addresses read it: before and after its percent signs are decoded.
fn spellings(text: &str) -> Vec<String> {
    let web = [web_form(text), web_form(&fully_decoded(text))];
    let mut spellings = vec![text.to_owned()];
    spellings.extend(web.into_iter().flatten());
    spellings.dedup();
    spellings
}

/// The form of `x://a` for `x:a`, which some servers read alike.
fn with_slashes(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let has_none = is_scheme(scheme) && !rest.starts_with(['/', '\\']);
    has_none.then(|| plain_form(&format!("{scheme}://{rest}")))
}

/// The form of `file:///etc/x` for `file://host/etc/x`: servers that read only the path of a `file` URI open the same file.
fn without_file_host(text: &str) -> Option<String> {
    let decoded = fully_decoded(text);
    let (scheme, rest) = decoded.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    is_file(scheme).then(|| plain_form(&format!("{scheme}:///{path}")))
}

/// One form for all spellings of a URI: decoded, without `.`, `..` and empty segments, with scheme and host in lower case and no
/// user name. The host counts as the first segment, as it does for servers that cut the scheme off and take the rest for a path.
fn plain_form(uri: &str) -> String {
    let decoded: String = fully_decoded(uri.trim())
        .chars()
        .filter(|letter| !letter.is_control())
        .map(|letter| if letter == '\\' { '/' } else { letter })
        .collect();
    let Some((scheme, rest)) = decoded
        .split_once(':')
        .filter(|(scheme, _)| is_scheme(scheme))
    else {
        return decoded;
    };
    let scheme = scheme.to_ascii_lowercase();
    if !rest.starts_with('/') {
        return format!("{scheme}:{}", rest.to_ascii_lowercase());
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let is_local = |host: &str| scheme == "file" && host.eq_ignore_ascii_case("localhost");
    if segments.first().is_some_and(|host| is_local(host)) {
        segments.remove(0);
    }
    let Some((host, path)) = segments.split_first() else {
        return format!("{scheme}://");
    };
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    let path: String = path.iter().map(|segment| format!("/{segment}")).collect();
    format!("{scheme}://{host}{path}")
}

/// Whether a parser that resolves the URI would find another one in it: it goes up, has characters that some parsers take out
/// or take for a slash, or begins like a web address and is not one. Where there are rules, such a URI is not worth its risk.
pub(crate) fn is_devious(uri: &str) -> bool {
    if uri.len() > LONGEST {
        return true;
    }
    let decoded = fully_decoded(uri);
    let is_dots = |segment: &str| matches!(segment, "." | "..");
    decoded.trim() != decoded
        || decoded.contains(|letter: char| letter == '\\' || letter.is_control())
        || decoded.split(['/', '?', '#', ':']).any(is_dots)
        || web_form(uri).is_none()
        || web_form(&decoded).is_none()
}

fn without_port(form: &str) -> Option<String> {
    let (scheme, rest) = form.split_once("://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = host.rsplit_once(':')?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then(|| format!("{scheme}://{host}{path}"))
}

fn fully_decoded(uri: &str) -> String {
    let mut decoded = uri.to_owned();
    for _ in 0..ROUNDS {
        let again = percent_decoded(&decoded);
        if again == decoded {
            break;
        }
        decoded = again;
    }
    decoded
}

/// A URI with the characters that `%41` and the like stand for.
fn percent_decoded(uri: &str) -> String {
    let mut decoded = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &behind[2..];
            }
            None => {
                decoded.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_spellings_of_one_uri_have_one_form() {
        for (form, spellings) in [
            (
                "x://priv/1",
                &[
                    "x://priv/1",
                    "X://priv/1",
                    "x://PRIV/1",
                    "x:///priv/1",
                    "x://priv//1/",
                    "x://pub/../priv/1",
                    "x://pub/%2e%2E/priv/./1",
                    "x://%70riv/1",
                    "x://%2570riv/1",
                    "x://priv\\1",
                    "x://u@priv/1",
                    " x://priv/1\n",
                    "x:/priv/1",
                ][..],
            ),
            (
                "file://etc/passwd",
                &[
                    "file:///etc/passwd",
                    "file:/etc/passwd",
                    "file://localhost/etc/passwd",
                    "FILE:////etc//passwd",
                    "file:///etc/./passwd",
                ],
            ),
            ("urn:isbn:1", &["urn:isbn:1", "URN:ISBN:1", "urn:isbn:%31"]),
            ("x://", &["x://", "x:///.."]),
            ("a name", &["a name"]),
        ] {
            for spelling in spellings {
                assert_eq!(plain_form(spelling), form, "{spelling}");
            }
        }
    }

    #[test]
    fn a8_forms_leave_out_what_may_make_no_difference() {
        for uri in [
            "x://priv:80/1",
            "x://priv/1?a=b",
            "x://priv/1#c",
            "x://priv:/1?a#c",
        ] {
            let forms = plain_forms(uri);
            assert!(forms.iter().any(|form| form == "x://priv/1"), "{forms:?}");
        }
    }

    #[test]
    fn a8_uris_that_parsers_resolve_are_devious() {
        for uri in [
            "x://a/../b",
            "x://a/%2e%2e/b",
            "x://a/.",
            "x://a/..?q",
            "x://a\\b",
            "x://a/\tb",
            "x://a/b%00",
            &"x".repeat(LONGEST + 1),
            " x://a",
        ] {
            assert!(is_devious(uri), "{uri}");
        }
        for uri in [
            "x://a/b..c",
            "x://a//b",
            "x://a/b c",
            "x://a/%2Fb",
            "urn:a.b",
        ] {
            assert!(!is_devious(uri), "{uri}");
        }
    }
}
