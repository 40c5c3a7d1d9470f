//! What commands may do.
//!
//! Rules about URLs keep a client from being sent astray; they cannot stop a page's own script from navigating. Rules about CDP
//! methods are the stronger ones.

mod names;
mod url;

use globset::{Glob, GlobSet, GlobSetBuilder};
use mcp_proxy_wire::{Message, Span};
use serde_json::value::RawValue;

use self::names::{DENIED_CDP, DENIED_METHODS, READ_ONLY_CDP, READ_ONLY_METHODS};
use self::url::as_browsers_read;
use crate::fault::RelayFault;

/// The command that carries any method of the Chrome DevTools Protocol.
pub(crate) const FORWARD_CDP: &str = "forwardCDPCommand";

/// How deep commands may be wrapped in each other for the policy to find them.
const MAX_WRAPPERS: usize = 8;

/// What the commands of a user may do. An allow list that is empty allows everything; what is denied is never allowed.
#[derive(Clone, Debug, Default)]
pub struct RelayPolicy {
    methods: NamePatterns,
    cdp: NamePatterns,
    urls: NamePatterns,
    /// The CDP methods that a policy for reading allows, if it is one.
    read_only: Option<GlobSet>,
}

/// What is allowed and denied of one kind.
#[derive(Clone, Debug, Default)]
struct NamePatterns {
    allowed: GlobSet,
    denied: GlobSet,
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
    /// The policy that denies what a client should not do unasked: cookies, files, other targets and the extension's storage.
    pub fn standard() -> RelayPolicy {
        // The names are plain.
        let denying = |names: &[&str]| NamePatterns {
            allowed: GlobSet::empty(),
            denied: patterns(names.iter().copied()).unwrap_or_else(|_| GlobSet::empty()),
        };
        RelayPolicy {
            methods: denying(&DENIED_METHODS),
            cdp: denying(&DENIED_CDP),
            ..RelayPolicy::default()
        }
    }

    /// The policy with another list, in which `*` matches any characters. A list of denied CDP methods replaces the standard.
    /// A list of denied methods adds to it, unless it is empty.
    pub fn with(
        mut self,
        list: PolicyList,
        allowed: Option<&[String]>,
        denied: Option<&[String]>,
    ) -> Result<RelayPolicy, String> {
        let own = match list {
            PolicyList::Methods => &mut self.methods,
            PolicyList::Cdp => &mut self.cdp,
            PolicyList::Urls => &mut self.urls,
        };
        if let Some(allowed) = allowed {
            own.allowed = patterns(allowed.iter().map(String::as_str))?;
        }
        if let Some(denied) = denied {
            let standard: &[&str] = match list {
                PolicyList::Methods if !denied.is_empty() => &DENIED_METHODS,
                _ => &[],
            };
            let denied = denied.iter().map(String::as_str);
            own.denied = patterns(denied.chain(standard.iter().copied()))?;
        }
        Ok(self)
    }

    /// The policy, for reading only: of what it allows, that which changes nothing.
    pub fn read_only(mut self, is_read_only: bool) -> RelayPolicy {
        // The names are good patterns. If they were not, nothing would be allowed.
        let names = || patterns(READ_ONLY_CDP.into_iter()).unwrap_or_else(|_| GlobSet::empty());
        self.read_only = is_read_only.then(names);
        self
    }

    /// Checks a command.
    pub(crate) fn check(&self, method: &str, message: &Message) -> Result<(), RelayFault> {
        self.methods.require(method)?;
        let params = message.params();
        if method == FORWARD_CDP {
            let cdp = params.and_then(|params| message.member(params, "method"));
            let cdp = cdp.and_then(|cdp| message.text_at(cdp));
            let cdp = cdp.ok_or(RelayFault::InvalidParams("method must be a string"))?;
            self.check_cdp(&cdp)?;
        } else if is_cdp_name(method) {
            self.check_cdp(method)?;
        } else if self.read_only.is_some() && !READ_ONLY_METHODS.contains(&method) {
            return Err(denied(method));
        }
        match params {
            Some(params) => self.check_carried(message, params, MAX_WRAPPERS),
            None => Ok(()),
        }
    }

    fn check_cdp(&self, method: &str) -> Result<(), RelayFault> {
        self.cdp.require(method)?;
        match &self.read_only {
            Some(allowed) if !allowed.is_match(method) => Err(denied(method)),
            _ => Ok(()),
        }
    }

    /// Checks the URL and the CDP method that parameters carry, and those inside of them: an extension may have other commands
    /// than `forwardCDPCommand` that send CDP methods.
    fn check_carried(
        &self,
        message: &Message,
        object: Span,
        wrappers: usize,
    ) -> Result<(), RelayFault> {
        let names = ["url", "method", "command", "cdpMethod", "params", "args"];
        let [url, method, command, cdp, params, arguments] = message.members(object, names);
        if let Some(url) = url.and_then(|url| message.text_at(url)) {
            self.urls.require(&as_browsers_read(&url))?;
        }
        for span in [method, command, cdp, params, arguments]
            .into_iter()
            .flatten()
        {
            self.check_value(message, span, wrappers)?;
        }
        Ok(())
    }

    /// Checks a value that may be the name of a CDP method, or have one inside: a list has the arguments of
    /// `chrome.debugger.sendCommand`, or several commands.
    fn check_value(
        &self,
        message: &Message,
        value: Span,
        wrappers: usize,
    ) -> Result<(), RelayFault> {
        // Deeper than any extension looks.
        let too_deep = RelayFault::InvalidParams("nested too deep");
        match message.slice(value).first() {
            Some(b'"') => self.check_name(message.text_at(value).as_deref()),
            Some(b'{') => {
                let wrappers = wrappers.checked_sub(1).ok_or(too_deep)?;
                self.check_carried(message, value, wrappers)
            }
            Some(b'[') => {
                let wrappers = wrappers.checked_sub(1).ok_or(too_deep)?;
                let elements = elements(message, value)?;
                elements
                    .into_iter()
                    .try_for_each(|element| self.check_value(message, element, wrappers))
            }
            _ => Ok(()),
        }
    }

    fn check_name(&self, name: Option<&str>) -> Result<(), RelayFault> {
        match name {
            Some(name) if is_cdp_name(name) => self.check_cdp(name),
            _ => Ok(()),
        }
    }
}

impl NamePatterns {
    fn require(&self, name: &str) -> Result<(), RelayFault> {
        let is_allowed = self.allowed.is_empty() || self.allowed.is_match(name);
        match is_allowed && !self.denied.is_match(name) {
            true => Ok(()),
            false => Err(denied(name)),
        }
    }
}

/// Where the elements of a list stand.
fn elements(message: &Message, list: Span) -> Result<Vec<Span>, RelayFault> {
    let text = message.slice(list);
    let elements: Vec<&RawValue> = serde_json::from_slice(text)
        .map_err(|_| RelayFault::InvalidParams("a list cannot be read"))?;
    let span = |element: &RawValue| {
        // The elements are parts of the text.
        let start = list.range().start + element.get().as_ptr().addr() - text.as_ptr().addr();
        Span::new(start, start + element.get().len())
    };
    Ok(elements.into_iter().map(span).collect())
}

/// Whether this is the name of a CDP method: `Domain.method`.
fn is_cdp_name(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name
            .split_once('.')
            .is_some_and(|(domain, method)| is_word(domain) && is_word(method))
}

fn denied(name: &str) -> RelayFault {
    RelayFault::Denied(name.chars().take(80).collect())
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
        let policy = RelayPolicy::standard();
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
        let policy = RelayPolicy::standard()
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
    fn cdp_methods_are_found_in_other_commands_than_the_usual_one() {
        let policy = RelayPolicy::standard();
        for (method, params) in [
            ("Network.getCookies", "{}"),
            ("sendCommand", r#"{"method":"Network.getCookies"}"#),
            ("sendCommand", r#"{"command":"Network.getCookies"}"#),
            (
                "sendCommand",
                r#"{"command":{"method":"Network.getCookies"}}"#,
            ),
            ("cdp", r#"{"cdpMethod":"Network.\u0067etCookies"}"#),
            (
                "chrome.debugger.sendCommand",
                r#"{"args":[{"tabId":1},"Network.getCookies",{}]}"#,
            ),
            (
                "anything",
                r#"{"params":{"params":{"method":"Network.getCookies"}}}"#,
            ),
            ("batch", r#"{"args":[{"method":"Network.getCookies"}]}"#),
            (
                "batch",
                r#"{"args": [1, [ {"params" : [ "Network.getCookies" ]} ] ]}"#,
            ),
            (
                FORWARD_CDP,
                r#"{"method":"Input.dispatchDragEvent","params":{"data":{"files":["/etc/passwd"]}}}"#,
            ),
            (
                FORWARD_CDP,
                r#"{"method":"Page.enable","method":"Network.getCookies"}"#,
            ),
            (
                FORWARD_CDP,
                r#"{"method":"Page.enable","params":{"method":"Network.getCookies"}}"#,
            ),
        ] {
            assert_eq!(
                check(&policy, method, params),
                Err(-32008),
                "{method} {params}"
            );
        }
        for (method, params) in [
            ("sendCommand", r#"{"method":"Page.reload"}"#),
            ("type", r#"{"text":"Network.getCookies"}"#),
            (
                FORWARD_CDP,
                r#"{"method":"Fetch.continueRequest","params":{"method":"POST"}}"#,
            ),
        ] {
            assert_eq!(check(&policy, method, params), Ok(()), "{method} {params}");
        }
        for (open, close) in [(r#"{"params":"#, "}"), (r#"{"args":["#, "]}")] {
            let deep = format!("{}{{}}{}", open.repeat(20), close.repeat(20));
            assert_eq!(check(&policy, "anything", &deep), Err(-32602), "{open}");
        }
    }

    #[test]
    fn the_extensions_storage_stays_denied_next_to_other_methods() {
        let dump = |policy: &RelayPolicy| check(policy, "get_debug_storage", "{}");
        let standard = RelayPolicy::standard;
        let denying = |denied: &[String]| {
            let policy = standard().with(PolicyList::Methods, None, Some(denied));
            policy.unwrap()
        };
        assert_eq!(dump(&standard()), Err(-32008));
        let more = denying(&["reloadSelf".to_owned()]);
        assert_eq!(dump(&more), Err(-32008));
        assert_eq!(check(&more, "reloadSelf", "{}"), Err(-32008));
        assert_eq!(dump(&denying(&[])), Ok(()));
    }

    #[test]
    fn an_allow_list_of_cdp_methods_counts_for_every_way_to_send_them() {
        let allowed = ["Page.*".to_owned()];
        let policy = RelayPolicy::standard()
            .with(PolicyList::Cdp, Some(&allowed), None)
            .unwrap();
        for (method, params, expected) in [
            ("Page.reload", "{}", Ok(())),
            ("Runtime.evaluate", "{}", Err(-32008)),
            (
                "sendCommand",
                r#"{"method":"Runtime.evaluate"}"#,
                Err(-32008),
            ),
            (FORWARD_CDP, r#"{"method":"evaluate"}"#, Err(-32008)),
            ("click", "{}", Ok(())),
        ] {
            assert_eq!(
                check(&policy, method, params),
                expected,
                "{method} {params}"
            );
        }
    }

    #[test]
    fn a_policy_for_reading_allows_nothing_that_changes_a_page() {
        let policy = RelayPolicy::standard().read_only(true);
        for (method, params) in [
            ("getTabs", "{}"),
            ("selectTab", "{}"),
            ("screenshot", "{}"),
            (FORWARD_CDP, r#"{"method":"Page.captureScreenshot"}"#),
            (FORWARD_CDP, r#"{"method":"Accessibility.getFullAXTree"}"#),
            ("DOM.getDocument", "{}"),
        ] {
            assert_eq!(check(&policy, method, params), Ok(()), "{method} {params}");
        }
        for (method, params) in [
            ("createTab", "{}"),
            ("click", "{}"),
            ("neverHeardOf", "{}"),
            ("Runtime.evaluate", "{}"),
            (FORWARD_CDP, r#"{"method":"Runtime.evaluate"}"#),
            (FORWARD_CDP, r#"{"method":"Page.navigate"}"#),
            (FORWARD_CDP, r#"{"method":"Network.getCookies"}"#),
        ] {
            assert_eq!(
                check(&policy, method, params),
                Err(-32008),
                "{method} {params}"
            );
        }
        let all = policy.read_only(false);
        assert_eq!(check(&all, "createTab", "{}"), Ok(()));
    }

    #[test]
    fn an_allow_list_denies_the_rest() {
        let allowed = ["getTabs".to_owned(), "create*".to_owned()];
        let policy = RelayPolicy::standard()
            .with(PolicyList::Methods, Some(&allowed), None)
            .unwrap();
        assert_eq!(check(&policy, "createTab", "{}"), Ok(()));
        assert_eq!(check(&policy, "closeTab", "{}"), Err(-32008));
    }
}
