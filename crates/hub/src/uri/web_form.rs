//! Web addresses as browsers and most HTTP libraries read them: `https:example.com.`, `https://EXAMPLE.com` and
//! `https://ｅxample.com` are one host, `https://0x7f.1` is `https://127.0.0.1`, and `file:etc/x` is `file:///etc/x`.

use url::{Host, Url};

/// Schemes of addresses that are read in many spellings.
const SCHEMES: [&str; 6] = ["file", "ftp", "http", "https", "ws", "wss"];

/// A text with more web addresses in it is not worth its time.
const ADDRESSES: usize = 8;

/// The text with one spelling for each web address in it: addresses stand in the queries and paths of others. `None` if the text is
/// a web address that cannot be read, or has too many in it.
pub(super) fn web_form(text: &str) -> Option<String> {
    let starts: Vec<usize> = starts(text).take(ADDRESSES + 1).collect();
    if starts.len() > ADDRESSES {
        return None;
    }
    let mut form = text.to_owned();
    for start in starts.into_iter().rev() {
        match normalised(&form[start..]) {
            Some(address) => form.replace_range(start.., &address),
            None if start == 0 => return None,
            None => {}
        }
    }
    Some(form)
}

/// Where web addresses may begin.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let colons = text.bytes().enumerate().filter(|(_, byte)| *byte == b':');
    colons.filter_map(move |(colon, _)| {
        // The longest scheme has five letters.
        let near = &text.as_bytes()[colon.saturating_sub(6)..colon];
        let length = near
            .iter()
            .rev()
            .take_while(|byte| is_in_word(byte))
            .count();
        let start = colon - length;
        let is_web = |scheme: &str| scheme.eq_ignore_ascii_case(&text[start..colon]);
        SCHEMES.into_iter().any(is_web).then_some(start)
    })
}

/// The address as a parser of web addresses writes it, without a user and without dots behind the host.
fn normalised(address: &str) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    let host = match url.host() {
        Some(Host::Domain(name)) => Some(name.trim_end_matches('.').to_owned()),
        Some(Host::Ipv6(address)) => address.to_ipv4_mapped().map(|address| address.to_string()),
        Some(Host::Ipv4(_)) | None => None,
    };
    if let Some(host) = host {
        url.set_host(Some(&host)).ok()?;
    }
    // An address without a host has no user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a8_the_form_of_a_web_address_is_its_own_form(rest in "[a-cA-C:/.@%?x0-9\\[\\]é。\\-]{0,16}") {
            for scheme in ["https:", "file:", "x:http:"] {
                if let Some(form) = web_form(&format!("{scheme}{rest}")) {
                    prop_assert_eq!(web_form(&form), Some(form));
                }
            }
        }
    }

    #[test]
    fn a8_a_web_address_has_one_form() {
        for (text, form) in [
            ("file:etc/x", "file:///etc/x"),
            ("https:EXAMPLE.com.", "https://example.com/"),
            ("https://0x7f.1/", "https://127.0.0.1/"),
            ("https://[::ffff:7f00:1]/", "https://127.0.0.1/"),
            ("x://HTTP:a/b", "x://http://a/b"),
            ("https://a?u=https:B", "https://a/?u=https://b/"),
            ("https://a/http:", "https://a/http:"),
            ("xhttp:A", "xhttp:A"),
            ("x.http:A", "x.http:A"),
            ("é:http:A", "é:http://a/"),
            (":", ":"),
        ] {
            assert_eq!(web_form(text).as_deref(), Some(form), "{text}");
        }
    }

    #[test]
    fn a8_what_looks_like_a_web_address_and_is_none_has_no_form() {
        for text in ["https://", "https://1.2.3.4.5", &"ws:".repeat(9)] {
            assert_eq!(web_form(text), None, "{text}");
        }
    }
}
