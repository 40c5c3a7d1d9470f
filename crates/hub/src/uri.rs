//! How a server's resources are called in public: `scheme://rest` is shown as `scheme://prefix/rest`.
//!
//! A URI without `://` has no place for a prefix and stays as it is. In a `file` URI the prefix stands where a host would, so
//! that clients which normalise URIs, and make one slash of two, leave it alone: `file:///etc/x` is `file://prefix/etc/x`.

mod spellings;
mod web_form;

pub(crate) use spellings::{denied_forms, is_devious, plain_forms};

/// In a `file` URI, what stands between the prefix and a host.
const HOST_MARK: &str = "%2F";

/// `scheme://rest` as `scheme://prefix/rest`. `None` if the URI has no place for a prefix.
pub(crate) fn add_prefix(uri: &str, prefix: &str) -> Option<String> {
    let (scheme, rest) = split_scheme(uri)?;
    if !is_file(scheme) {
        return Some(format!("{scheme}://{prefix}/{rest}"));
    }
    let Some(path) = rest.strip_prefix('/') else {
        return Some(format!("{scheme}://{prefix}/{HOST_MARK}{rest}"));
    };
    // These would be read as another form. A value of the variable in `{+path}` may begin with a slash.
    let keeps_slash = ["/", "{", HOST_MARK];
    let slash = match keeps_slash.iter().any(|start| path.starts_with(start)) {
        true => "/",
        false => "",
    };
    Some(format!("{scheme}://{prefix}/{slash}{path}"))
}

/// `scheme://prefix/rest` as the prefix and `scheme://rest`. `None` if the URI has no first segment.
pub(crate) fn split_prefix(uri: &str) -> Option<(&str, String)> {
    let (scheme, rest) = split_scheme(uri)?;
    let (prefix, rest) = rest.split_once('/')?;
    if !is_file(scheme) {
        return Some((prefix, format!("{scheme}://{rest}")));
    }
    let original = match rest.strip_prefix(HOST_MARK) {
        Some(with_host) => format!("{scheme}://{with_host}"),
        None if rest.starts_with('/') => format!("{scheme}://{rest}"),
        None => format!("{scheme}:///{rest}"),
    };
    Some((prefix, original))
}

/// Whether the URI has a place for a prefix.
pub(crate) fn takes_prefix(uri: &str) -> bool {
    split_scheme(uri).is_some()
}

/// Whether a client can fetch the URI without us, so that it is only rewritten if a server offers it.
pub(crate) fn is_web(uri: &str) -> bool {
    split_scheme(uri).is_some_and(|(scheme, _)| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// Whether the URI is its own content, so that nobody reads it from a server.
pub(crate) fn is_self_contained(uri: &str) -> bool {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data"))
}

/// Whether the text has the form of a URI, as opposed to a name.
pub(crate) fn has_scheme(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// A URI is split at `://`, if what stands in front of it is a scheme.
fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    is_scheme(scheme).then_some((scheme, rest))
}

fn is_file(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("file")
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_becomes_the_first_segment() {
        for (uri, public) in [
            ("demo://resource/1", "demo://p/resource/1"),
            ("file:///etc/x", "file://p/etc/x"),
            ("file:///", "file://p/"),
            ("file:////etc/x", "file://p///etc/x"),
            ("file:///%2Fetc", "file://p//%2Fetc"),
            ("file:///{+path}", "file://p//{+path}"),
            ("file:///a/{x}", "file://p/a/{x}"),
            ("file://host/x", "file://p/%2Fhost/x"),
            ("file://", "file://p/%2F"),
            ("x://", "x://p/"),
            ("db+v1://{table}/rows", "db+v1://p/{table}/rows"),
        ] {
            assert_eq!(add_prefix(uri, "p").as_deref(), Some(public));
            assert_eq!(split_prefix(public), Some(("p", uri.to_owned())));
        }
    }

    #[test]
    fn w1_the_older_form_of_a_file_uri_is_known() {
        let old = split_prefix("file://p//etc/x");
        assert_eq!(old, Some(("p", "file:///etc/x".to_owned())));
    }

    #[test]
    fn a_uri_without_an_authority_has_no_place_for_a_prefix() {
        for uri in ["urn:a:b", "note", "", "{scheme}://x", "data:,a://b", "://x"] {
            assert_eq!(add_prefix(uri, "p"), None, "{uri}");
        }
    }

    #[test]
    fn only_a_whole_segment_is_a_prefix() {
        assert_eq!(split_prefix("demo://pq/x").unwrap().0, "pq");
        assert_eq!(split_prefix("demo://p"), None);
        assert_eq!(split_prefix("urn:p/x"), None);
    }

    #[test]
    fn web_addresses_and_names_are_told_apart() {
        assert!(is_web("HTTPS://example.org/"));
        assert!(!is_web("httpx://example.org/"));
        assert!(has_scheme("urn:x"));
        assert!(!has_scheme("a name: with a colon"));
    }
}
