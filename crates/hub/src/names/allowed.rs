//! Which names and URIs the configuration allows.

use std::sync::OnceLock;

use serde::Deserialize;

use super::matches_any;
use crate::template::UriTemplate;
use crate::uri;

/// Globs that choose names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllowedNames {
    /// Only names that match one of these; all, if there is no list.
    pub allow: Option<Vec<String>>,
    /// Names that match one of these are left out, even if they are allowed.
    pub deny: Vec<String>,
    /// The forms of `deny` that URIs are compared with.
    #[serde(skip)]
    pub denied_forms: DeniedForms,
}

/// Forms of rules, which are worked out when the first URI is judged.
#[derive(Clone, Debug, Default)]
pub struct DeniedForms(OnceLock<Vec<String>>);

/// They follow from the rules, which are compared.
impl PartialEq for DeniedForms {
    fn eq(&self, _: &DeniedForms) -> bool {
        true
    }
}

impl Eq for DeniedForms {}

impl AllowedNames {
    /// Whether a name is chosen.
    pub fn permits(&self, name: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|allow| matches_any(allow, name))
            && !matches_any(&self.deny, name)
    }

    /// Whether a URI that its server does not list is chosen. A template among the globs stands for what it covers.
    pub(crate) fn permits_uri(&self, uri: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|allow| covers_any(allow, uri))
            && !self.denies_uri(uri)
    }

    /// Whether a URI is left out, by itself or because a template is that covers it. A server may take other spellings for
    /// the same resource, so all of them are; and where there are rules, a URI that goes up with `..` is refused as it is.
    pub(crate) fn denies_uri(&self, uri: &str) -> bool {
        let has_rules = self.allow.is_some() || !self.deny.is_empty();
        has_rules && (uri::is_devious(uri) || self.denies_spelling(uri))
    }

    /// Whether a URI is left out in this or another spelling.
    pub(super) fn denies_spelling(&self, uri: &str) -> bool {
        if self.deny.is_empty() {
            return false;
        }
        let denied = self.denied_forms.0.get_or_init(|| {
            let globs = self.deny.iter();
            globs.flat_map(|glob| uri::denied_forms(glob)).collect()
        });
        let mut forms = uri::plain_forms(uri).into_iter();
        covers_any(&self.deny, uri) || forms.any(|form| covers_any(denied, &form))
    }
}

/// Whether one of the globs matches a URI, or is a URI template that covers it.
fn covers_any(globs: &[String], uri: &str) -> bool {
    let covers = |glob: &String| {
        glob.contains('{') && UriTemplate::parse(glob).is_some_and(|template| template.matches(uri))
    };
    matches_any(globs, uri) || globs.iter().any(covers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::ItemKind;
    use crate::names::ServerNaming;

    #[test]
    fn a8_other_spellings_of_a_denied_uri_are_denied() {
        let names = AllowedNames {
            allow: None,
            deny: vec!["note://s/secret".to_owned(), "note://user/{id}".to_owned()],
            ..AllowedNames::default()
        };
        for uri in [
            "note://s/secret",
            "note://s/%73ecret",
            "note://s/secret#x",
            "note://s/secret?x",
            "NOTE://s/secret",
            "note://S/secret",
            "note://s//secret",
            "note:///s/secret",
            "note://s/x/../secret",
            "note://x/../s/open",
            "note://s:1/secret",
            "note://user/5",
            "note://user//5",
        ] {
            assert!(!names.permits_uri(uri), "{uri}");
        }
        for uri in [
            "note://s/open",
            "note://s/secret/more",
            "note://s/%",
            "note://s/%zz",
        ] {
            assert!(names.permits_uri(uri), "{uri}");
        }
        let globs = |allow: Option<&str>, deny: &[&str]| AllowedNames {
            allow: allow.map(|glob| vec![glob.to_owned()]),
            deny: deny.iter().map(|glob| (*glob).to_owned()).collect(),
            ..AllowedNames::default()
        };
        let only = globs(Some("x://pub/*"), &[]);
        assert!(only.permits_uri("x://pub/1"));
        for uri in ["x://pub/../priv/1", "x://pub/%2e%2e/priv/1", "x://PUB/1"] {
            assert!(!only.permits_uri(uri), "{uri}");
        }
        for glob in [
            "file:///etc/*",
            "FILE:///etc/*",
            "file:etc/*",
            "*passwd",
            "file:*",
            "*://etc/*",
        ] {
            let denied = globs(None, &[glob]);
            assert!(denied.denies_uri("file:///etc//passwd"), "{glob}");
            for host in ["localhost", "127.0.0.1", "x", "%78"] {
                let uri = format!("file://{host}/etc/passwd");
                assert!(denied.denies_uri(&uri), "{glob} {uri}");
            }
            assert!(!denied.denies_uri("data://x/1"), "{glob}");
        }
    }

    fn denying(glob: &str) -> AllowedNames {
        AllowedNames {
            deny: vec![glob.to_owned()],
            ..AllowedNames::default()
        }
    }

    #[test]
    fn a8_a_uri_without_slashes_behind_its_scheme_is_denied() {
        for (glob, uri) in [
            ("file:///tmp/x/priv/*", "file:tmp/x/priv/1"),
            ("file:///tmp/x/priv/*", "FILE:tmp/x/%70riv/1"),
            ("file:///tmp/x/priv/*", "file%3Atmp/x/priv/1"),
            ("file:///tmp/x/priv/*", "file:tmp/x/%2570riv/1"),
            ("file:///tmp/x/priv/*", "file:tmp/x/../x/priv/1"),
            ("file:tmp/x/priv/*", "file:///tmp/x/priv/1"),
            ("x://priv/*", "x:priv/1"),
            ("https://example.com/priv*", "https:example.com/priv1"),
            ("https://example.com/priv*", "https:/example.com/priv1"),
            ("https:example.com/priv*", "https://example.com/priv1"),
        ] {
            assert!(denying(glob).denies_uri(uri), "{glob} {uri}");
        }
        for (glob, uri) in [
            ("file:///tmp/x/priv/*", "file:tmp/x/pub/1"),
            ("urn:isbn:1", "urn:isbn:1:2"),
            ("urn:isbn", "urn:isbn:1"),
            ("https://example.com/priv*", "https://example.com/pub"),
        ] {
            assert!(!denying(glob).denies_uri(uri), "{glob} {uri}");
        }
    }

    #[test]
    fn a8_a_host_is_denied_in_every_spelling() {
        for (glob, hosts) in [
            (
                "https://example.com/priv*",
                &[
                    "EXAMPLE.com",
                    "example.com.",
                    "example.com..",
                    "example.com.:8443",
                    "u@example.com.",
                    "ｅxample.com",
                    "example。com",
                    "%65xample.com",
                    "%EF%BD%85xample.com",
                    "ex\u{ad}ample.com",
                    "example.com:443",
                ][..],
            ),
            (
                "https://127.0.0.1/*",
                &[
                    "0x7f.1",
                    "2130706433",
                    "0177.0.0.1",
                    "127.1",
                    "127.0.0.1.",
                    "[::ffff:127.0.0.1]",
                    "[::ffff:7f00:1]",
                ],
            ),
            ("https://[::1]/*", &["[0:0:0:0:0:0:0:1]"]),
            ("https://BÜCHER.de/*", &["xn--bcher-kva.de", "bücher.de"]),
            (
                "https://*.bücher.de/*",
                &["a.xn--bcher-kva.de", "a.BÜCHER.de"],
            ),
        ] {
            for host in hosts {
                let uri = format!("https://{host}/priv1");
                assert!(denying(glob).denies_uri(&uri), "{glob} {uri}");
            }
        }
        let uri = "https://example.org/priv1";
        assert!(!denying("https://example.com/priv*").denies_uri(uri));
    }

    #[test]
    fn a8_a_web_address_within_a_uri_is_denied_in_every_spelling() {
        let denied = denying("fetch://https://example.com/priv*");
        for uri in [
            "fetch://https://EXAMPLE.com/priv1",
            "fetch://https:example.com./priv1",
            "fetch://https%3A%2F%2FEXAMPLE.com%2Fpriv1",
            "fetch:https://u@example.com/priv1",
        ] {
            assert!(denied.denies_uri(uri), "{uri}");
        }
        assert!(!denied.denies_uri("fetch://https://example.com/pub"));
        let queried = denying("x://get?url=https://example.com/*");
        assert!(queried.denies_uri("x://get?url=https%3A//EXAMPLE.com/1"));
    }

    #[test]
    fn a8_a_web_address_that_cannot_be_read_is_denied_where_there_are_rules() {
        let denied = denying("x://priv/*");
        let nested = format!("x://{}", "http:".repeat(1_000));
        for uri in [
            "https://1.2.3.4.5/",
            "https://exa mple.com/",
            "https://example.com%2Fpriv1",
            "https://example.com:99999/priv1",
            &nested,
        ] {
            assert!(denied.denies_uri(uri), "{uri}");
        }
        assert!(!AllowedNames::default().denies_uri("https://1.2.3.4.5/"));
    }

    #[test]
    fn a8_a_listed_resource_is_denied_in_every_spelling() {
        let naming = ServerNaming {
            resources: denying("file:///etc/*"),
            ..ServerNaming::new("a", "a")
        };
        for uri in ["FILE:///etc/x", "file:etc/x", "file://localhost/etc/x"] {
            assert!(!naming.allows(ItemKind::Resource, uri), "{uri}");
        }
        assert!(naming.allows(ItemKind::Resource, "file:///srv/../x"));
    }
}
