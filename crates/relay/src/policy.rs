//! What commands may do.
//!
//! Rules about URLs keep a client from being sent astray; they cannot stop a page's own script from navigating. Rules about CDP
//! methods are the stronger ones.

mod names;
mod url_rules;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use mcp_proxy_wire::{Field, Message, Span};
use serde_json::value::RawValue;

use self::names::{
    CARRYING_MEMBERS, DENIED_CDP, DENIED_METHODS, READ_ONLY_CDP, READ_ONLY_METHODS, URL_MEMBERS,
};
use self::url_rules::UrlRules;
use crate::fault::RelayFault;
use crate::messages::loose_name;

/// The command that carries any method of the Chrome DevTools Protocol.
pub(crate) const FORWARD_CDP: &str = "forwardCDPCommand";

/// The members of a command that decide what it is.
const OUTER_MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params"];

/// How deep commands may be wrapped in each other for the policy to find them.
const MAX_WRAPPERS: usize = 8;

/// What the commands of a user may do. An allow list that is empty allows everything; what is denied is never allowed.
#[derive(Clone, Debug, Default)]
pub struct RelayPolicy {
    methods: NamePatterns,
    cdp: NamePatterns,
    urls: UrlRules,
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
            denied: denied_patterns(names.iter().copied()).unwrap_or_else(|_| GlobSet::empty()),
        };
        RelayPolicy {
            methods: denying(&DENIED_METHODS),
            cdp: denying(DENIED_CDP),
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
            PolicyList::Urls => {
                allowed.map_or(Ok(()), |allowed| self.urls.allow(allowed))?;
                denied.map_or(Ok(()), |denied| self.urls.deny(denied))?;
                return Ok(self);
            }
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
            own.denied = denied_patterns(denied.chain(standard.iter().copied()))?;
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
        let params = message.params();
        let in_params = params.and_then(|params| message.ambiguous_member(params, &[]));
        if message.ambiguous_outer_member(OUTER_MEMBERS).is_some() || in_params.is_some() {
            return Err(RelayFault::InvalidParams(
                "two members have the same name but for case",
            ));
        }
        if !self.methods.admit(method) {
            return Err(denied(PolicyList::Methods, method));
        }
        self.check_name(method)?;
        if method == FORWARD_CDP {
            let cdp = params.and_then(|params| message.member(params, "method"));
            let cdp = cdp.and_then(|cdp| message.text_at(cdp));
            let cdp = cdp.ok_or(RelayFault::InvalidParams("method must be a string"))?;
            self.check_cdp(&cdp)?;
        } else if !is_cdp_name(method) && self.read_only.is_some() && !is_read_only(method, message)
        {
            return Err(denied(PolicyList::Methods, method));
        }
        match params {
            Some(params) => self.check_carried(message, params, MAX_WRAPPERS),
            None => Ok(()),
        }
    }

    fn check_cdp(&self, method: &str) -> Result<(), RelayFault> {
        let is_read = |allowed: &GlobSet| allowed.is_match(method);
        match self.cdp.admit(method) && self.read_only.as_ref().is_none_or(is_read) {
            true => Ok(()),
            false => Err(denied(PolicyList::Cdp, method)),
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
        for (name, value) in message.each_member(object) {
            let name = loose_name(&name);
            if URL_MEMBERS.contains(&name.as_str()) {
                self.check_url(message, value)?;
            } else if CARRYING_MEMBERS.contains(&name.as_str()) {
                self.check_value(message, value, wrappers)?;
            }
        }
        Ok(())
    }

    /// Checks a URL, or several: `chrome.windows.create` takes a list.
    fn check_url(&self, message: &Message, url: Span) -> Result<(), RelayFault> {
        let urls = match message.slice(url).first() {
            Some(b'[') => elements(message, url)?,
            _ => vec![url],
        };
        for url in urls.into_iter().filter_map(|url| message.text_at(url)) {
            if !self.urls.admit(&url) {
                return Err(denied(PolicyList::Urls, &url));
            }
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
            Some(b'"') => match message.text_at(value) {
                Some(name) => self.check_name(&name),
                None => Ok(()),
            },
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

    /// Checks a text that may be the name of a CDP method, also in a spelling that an extension may put right.
    fn check_name(&self, name: &str) -> Result<(), RelayFault> {
        if is_cdp_name(name) {
            return self.check_cdp(name);
        }
        let plain = without_blanks(name);
        match plain != name && is_cdp_name(&plain) {
            true => Err(denied(PolicyList::Cdp, name)),
            false => Ok(()),
        }
    }
}

impl NamePatterns {
    fn admit(&self, name: &str) -> bool {
        let is_allowed = self.allowed.is_empty() || self.allowed.is_match(name);
        is_allowed && !self.denied.is_match(without_blanks(name))
    }
}

/// Whether a command changes nothing. Selecting a tab does not, unless the tab is to come to the front as well.
fn is_read_only(method: &str, message: &Message) -> bool {
    let activate = message.span(Field::Param("activate"));
    let stays = activate.is_none_or(|value| matches!(message.slice(value), b"false" | b"null"));
    READ_ONLY_METHODS.contains(&method) && stays
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

/// A name without what some extensions trim, and some parsers end it at.
fn without_blanks(name: &str) -> String {
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    name.chars().filter(|letter| !is_blank(*letter)).collect()
}

fn denied(list: PolicyList, name: &str) -> RelayFault {
    let name = name.chars().take(80).collect();
    RelayFault::Denied { list, name }
}

fn patterns<'a>(texts: impl Iterator<Item = &'a str>) -> Result<GlobSet, String> {
    built(texts, LetterCase::Counts)
}

/// What is denied is denied in any case.
fn denied_patterns<'a>(texts: impl Iterator<Item = &'a str>) -> Result<GlobSet, String> {
    built(texts, LetterCase::Ignored)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    Counts,
    Ignored,
}

fn built<'a>(texts: impl Iterator<Item = &'a str>, case: LetterCase) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        // Only `*` is special.
        let text = globset::escape(text).replace("[*]", "*");
        let glob = GlobBuilder::new(&text)
            .case_insensitive(case == LetterCase::Ignored)
            .build()
            .map_err(|error| format!("{text:?}: {}", error.kind()))?;
        set.add(glob);
    }
    set.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
