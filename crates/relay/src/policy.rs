//! What commands may do.
//!
//! Rules about URLs keep a client from being sent astray; they cannot stop a page's own script from navigating. Rules about CDP
//! methods are the stronger ones.

use globset::{Glob, GlobSet, GlobSetBuilder};
use mcp_proxy_wire::{Field, Message};

use crate::fault::RelayFault;

/// The command that carries any method of the Chrome DevTools Protocol.
pub(crate) const FORWARD_CDP: &str = "forwardCDPCommand";

/// Denied unless somebody allows it: cookies are credentials, files are not the browser's, and targets are tabs, other
/// connections' tabs among them.
const DENIED_CDP: [&str; 24] = [
    "Network.getCookies",
    "Network.getAllCookies",
    "Network.setCookie",
    "Network.setCookies",
    "Network.deleteCookies",
    "Network.clearBrowserCookies",
    "Storage.getCookies",
    "Storage.setCookies",
    "Storage.clearCookies",
    "DOM.setFileInputFiles",
    "Browser.close",
    "Browser.crash",
    "Browser.setDownloadBehavior",
    "Page.setDownloadBehavior",
    "Target.attachToBrowserTarget",
    "Target.autoAttachRelated",
    "Target.attachToTarget",
    "Target.activateTarget",
    "Target.closeTarget",
    "Target.createTarget",
    "Target.createBrowserContext",
    "Target.exposeDevToolsProtocol",
    "Target.sendMessageToTarget",
    "Target.setAutoAttach",
];

/// What the commands of a user may do. An allow list that is empty allows everything; what is denied is never allowed.
#[derive(Clone, Debug)]
pub struct RelayPolicy {
    allowed_methods: GlobSet,
    denied_methods: GlobSet,
    allowed_cdp: GlobSet,
    denied_cdp: GlobSet,
    allowed_urls: GlobSet,
    denied_urls: GlobSet,
}

/// One of the lists of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyList {
    /// Methods of the relay's protocol, such as `createTab`.
    Methods,
    /// Methods of the Chrome DevTools Protocol, such as `Network.getCookies`.
    Cdp,
    /// URLs that tabs are opened with or sent to.
    Urls,
}

impl RelayPolicy {
    /// The policy with another list, in which `*` matches any characters. A list of denied CDP methods replaces the default.
    pub fn with(
        mut self,
        list: PolicyList,
        allowed: Option<&[String]>,
        denied: Option<&[String]>,
    ) -> Result<RelayPolicy, String> {
        let (own_allowed, own_denied) = match list {
            PolicyList::Methods => (&mut self.allowed_methods, &mut self.denied_methods),
            PolicyList::Cdp => (&mut self.allowed_cdp, &mut self.denied_cdp),
            PolicyList::Urls => (&mut self.allowed_urls, &mut self.denied_urls),
        };
        if let Some(allowed) = allowed {
            *own_allowed = patterns(allowed.iter().map(String::as_str))?;
        }
        if let Some(denied) = denied {
            *own_denied = patterns(denied.iter().map(String::as_str))?;
        }
        Ok(self)
    }

    /// Checks a command.
    pub(crate) fn check(&self, method: &str, message: &Message) -> Result<(), RelayFault> {
        require(&self.allowed_methods, &self.denied_methods, method)?;
        let url = match method {
            FORWARD_CDP => {
                let cdp = message
                    .text(Field::Param("method"))
                    .ok_or(RelayFault::InvalidParams("method must be a string"))?;
                require(&self.allowed_cdp, &self.denied_cdp, &cdp)?;
                let inner = message.span(Field::Param("params"));
                inner.and_then(|inner| message.member(inner, "url"))
            }
            _ => message.span(Field::Param("url")),
        };
        match url.and_then(|url| message.text_at(url)) {
            Some(url) => require(
                &self.allowed_urls,
                &self.denied_urls,
                &as_browsers_read(&url),
            ),
            None => Ok(()),
        }
    }
}

impl Default for RelayPolicy {
    fn default() -> RelayPolicy {
        RelayPolicy {
            allowed_methods: GlobSet::empty(),
            denied_methods: GlobSet::empty(),
            allowed_cdp: GlobSet::empty(),
            // The names above are plain.
            denied_cdp: patterns(DENIED_CDP.into_iter()).unwrap_or_else(|_| GlobSet::empty()),
            allowed_urls: GlobSet::empty(),
            denied_urls: GlobSet::empty(),
        }
    }
}

fn patterns<'a>(texts: impl Iterator<Item = &'a str>) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        // Only `*` is special.
        let text = globset::escape(text).replace("[*]", "*");
        let glob = Glob::new(&text).map_err(|error| format!("{text:?}: {}", error.kind()))?;
        set.add(glob);
    }
    set.build().map_err(|error| error.to_string())
}

/// A URL as a browser understands it, as far as patterns can tell the difference: no white space around it, slashes that lean
/// forward, scheme and host in small letters, a path, and what `view-source:` shows.
fn as_browsers_read(url: &str) -> String {
    let is_ignored = |character: char| character.is_ascii_control() || character == ' ';
    let url = url.trim_matches(is_ignored).replace('\\', "/");
    let url: String = url
        .chars()
        .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
        .collect();
    let Some((scheme, rest)) = url.split_once(':') else {
        return url;
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "view-source" {
        return as_browsers_read(rest);
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return format!("{scheme}:{rest}");
    };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(host);
    let slash = if rest.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{}{slash}{rest}", host.to_ascii_lowercase())
}

fn require(allowed: &GlobSet, denied: &GlobSet, name: &str) -> Result<(), RelayFault> {
    let is_allowed = allowed.is_empty() || allowed.is_match(name);
    match is_allowed && !denied.is_match(name) {
        true => Ok(()),
        false => Err(RelayFault::Denied(name.chars().take(80).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &RelayPolicy, method: &str, params: &str) -> Result<(), i64> {
        let text = format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#);
        let checked = policy.check(method, &Message::parse(text));
        checked.map_err(|fault| fault.code())
    }

    #[test]
    fn cookies_files_and_other_targets_are_denied_by_default() {
        let policy = RelayPolicy::default();
        for method in DENIED_CDP {
            let params = format!(r#"{{"method":"{method}"}}"#);
            assert_eq!(
                check(&policy, FORWARD_CDP, &params),
                Err(-32008),
                "{method}"
            );
        }
        let params = r#"{"method":"Runtime.evaluate","params":{"expression":"1"}}"#;
        assert_eq!(check(&policy, FORWARD_CDP, params), Ok(()));
        assert_eq!(check(&policy, FORWARD_CDP, "{}"), Err(-32602));
        assert_eq!(
            check(&policy, "createTab", r#"{"url":"https://a.test"}"#),
            Ok(())
        );
    }

    #[test]
    fn urls_are_checked_where_tabs_are_opened_and_navigated() {
        let denied = ["*//*.bank.test/*".to_owned()];
        let policy = RelayPolicy::default()
            .with(PolicyList::Urls, None, Some(&denied))
            .unwrap();
        let opened = r#"{"url":"https://my.bank.test/x"}"#;
        assert_eq!(check(&policy, "createTab", opened), Err(-32008));
        for same in [
            "HTTPS://my.BANK.test",
            " https://my.bank.test/x",
            "https:\\\\\\\\my.bank.test\\\\x",
        ] {
            let opened = format!(r#"{{"url":"{same}"}}"#);
            assert_eq!(check(&policy, "createTab", &opened), Err(-32008), "{same}");
        }
        let sent = r#"{"method":"Page.navigate","params":{"url":"https://my.bank.test/x"}}"#;
        assert_eq!(check(&policy, FORWARD_CDP, sent), Err(-32008));
        assert_eq!(
            check(&policy, "createTab", r#"{"url":"https://a.test/"}"#),
            Ok(())
        );
    }

    #[test]
    fn an_allow_list_denies_the_rest() {
        let allowed = ["getTabs".to_owned(), "create*".to_owned()];
        let policy = RelayPolicy::default()
            .with(PolicyList::Methods, Some(&allowed), None)
            .unwrap();
        assert_eq!(check(&policy, "createTab", "{}"), Ok(()));
        assert_eq!(check(&policy, "closeTab", "{}"), Err(-32008));
    }
}
