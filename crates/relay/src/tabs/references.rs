//! The tabs that the parameters of a command name.

use mcp_proxy_wire::{JsonToken, Message, Span};

use super::TabId;
use crate::fault::RelayFault;
use crate::messages::loose_name;
use crate::policy::FORWARD_CDP;

/// A tab that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TabReference {
    /// By its id.
    Id(TabId),
    /// By its place among all tabs, which only the extension knows.
    Index(usize),
}

/// All tabs that a command names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedTabs {
    /// By a parameter of its own. These must all be the same tab, and the command is about it.
    pub(crate) subject: Vec<TabReference>,
    /// By members further down, such as `options.tabId`, or in another spelling.
    pub(crate) nested: Vec<TabReference>,
    /// By members that may mean something else, such as `id`. They must not be another connection's tabs.
    pub(crate) possible: Vec<TabId>,
}

/// What a member names tabs by.
#[derive(Clone, Copy, Debug)]
enum TabNaming {
    Id,
    Index,
    /// Perhaps an id.
    Possible,
}

const NOT_AN_ID: RelayFault = RelayFault::InvalidParams("tabId must be a whole number or a string");

impl NamedTabs {
    /// The tabs that a command names.
    pub(crate) fn of(method: &str, message: &Message) -> Result<NamedTabs, RelayFault> {
        let Some(params) = message.params() else {
            return Ok(NamedTabs::default());
        };
        let [id, tab_index, index] = message.members(params, ["tabId", "tabIndex", "index"]);
        let ids = id.map(|span| (span, TabNaming::Id)).into_iter();
        let indexes = [tab_index, index].into_iter().flatten();
        let named = ids.chain(indexes.map(|span| (span, TabNaming::Index)));
        let mut subject = Vec::new();
        for (span, naming) in named {
            subject.extend(naming.read(message, span)?);
        }
        let mut tabs = NamedTabs {
            subject,
            ..NamedTabs::default()
        };
        tabs.add_nested(method, message, params)?;
        Ok(tabs)
    }

    /// Whether the extension has to be asked which tab an index means.
    pub(crate) fn has_index(&self) -> bool {
        let is_index = |reference: &TabReference| matches!(reference, TabReference::Index(_));
        self.subject.iter().chain(&self.nested).any(is_index)
    }
}

impl TabNaming {
    /// How a member names tabs, `depth` objects and lists below the parameters. `index` is too common a word to count further
    /// down, and so is a list of other things that have an `id`.
    fn of_member(name: &str, depth: usize) -> Option<TabNaming> {
        if depth == 0 && matches!(name, "tabId" | "tabIndex" | "index") {
            // The subject.
            return None;
        }
        match &*loose_name(name) {
            "tabid" | "tabids" => Some(TabNaming::Id),
            "tabindex" => Some(TabNaming::Index),
            "index" if depth == 0 => Some(TabNaming::Index),
            "id" | "ids" | "tab" | "tabs" => Some(TabNaming::Possible),
            _ => None,
        }
    }

    /// The tab that a value names. `null` names none.
    fn read(self, message: &Message, span: Span) -> Result<Option<TabReference>, RelayFault> {
        let token = message.slice(span);
        if token == b"null" {
            return Ok(None);
        }
        let reference = match self {
            TabNaming::Id | TabNaming::Possible => TabId::named(message, span)
                .map(TabReference::Id)
                .ok_or(NOT_AN_ID),
            TabNaming::Index => {
                let digits = token.iter().all(u8::is_ascii_digit).then_some(token);
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                let index = digits.and_then(|digits| digits.parse().ok());
                index
                    .map(TabReference::Index)
                    .ok_or(RelayFault::InvalidParams(
                        "the index of a tab must be a whole number",
                    ))
            }
        };
        reference.map(Some)
    }
}

impl NamedTabs {
    /// Adds the tabs that other members of the parameters name, at any depth, one by one or in lists. What `forwardCDPCommand` hands
    /// to the browser is left out: CDP does not know tabs by these names, and scripts get whatever data a page has.
    fn add_nested(
        &mut self,
        method: &str,
        message: &Message,
        params: Span,
    ) -> Result<(), RelayFault> {
        let cdp = match method {
            FORWARD_CDP => message.member(params, "params"),
            _ => None,
        };
        let is_cdp = |span: Span| cdp.is_some_and(|cdp| cdp.range().contains(&span.start));
        // What the elements of each open container name, if it is a list, and what the member whose value is next names.
        let mut open: Vec<Option<TabNaming>> = Vec::new();
        let mut member = None;
        let mut walk = message.walk();
        while let Some(token) = walk.next() {
            if !params.range().contains(&(walk.position() - 1)) {
                continue;
            }
            let element = open.last().copied().flatten();
            match token {
                JsonToken::Key(name) if is_cdp(name) => {}
                JsonToken::Key(name) => {
                    let name = message.text_at(name).unwrap_or_default();
                    member = TabNaming::of_member(&name, open.len().saturating_sub(1));
                }
                JsonToken::Object => {
                    if let Some(TabNaming::Id) = member.take().or(element) {
                        return Err(NOT_AN_ID);
                    }
                    open.push(None);
                }
                JsonToken::Array => open.push(member.take().or(element)),
                JsonToken::End => {
                    open.pop();
                }
                JsonToken::Scalar(value) => {
                    if let Some(naming) = member.take().or(element) {
                        self.add_value(naming, message, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_value(
        &mut self,
        naming: TabNaming,
        message: &Message,
        value: Span,
    ) -> Result<(), RelayFault> {
        let read = naming.read(message, value);
        match naming {
            TabNaming::Id => self.nested.extend(read?),
            // Elements of a page have a `tabIndex` too, which may be -1.
            TabNaming::Index => self.nested.extend(read.ok().flatten()),
            TabNaming::Possible => {
                if let Ok(Some(TabReference::Id(tab))) = read {
                    self.possible.push(tab);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_by(method: &str, params: &str) -> Result<NamedTabs, i64> {
        let text = format!(r#"{{"id":1,"method":"{method}","params":{params},"tabId":99}}"#);
        NamedTabs::of(method, &Message::parse(text)).map_err(|fault| fault.code())
    }

    fn subject(params: &str) -> Result<Vec<TabReference>, i64> {
        named_by("m", params).map(|named| named.subject)
    }

    fn nested(params: &str) -> Result<Vec<TabReference>, i64> {
        named_by("m", params).map(|named| named.nested)
    }

    fn id(text: &str) -> TabReference {
        TabReference::Id(TabId(text.into()))
    }

    #[test]
    fn tabs_are_named_by_id_and_by_index() {
        assert_eq!(subject("{}"), Ok(vec![]));
        assert_eq!(subject(r#"{"tabId":5}"#), Ok(vec![id("5")]));
        assert_eq!(
            subject(r#"{"tabId":"5","tabIndex":2,"index":0}"#),
            Ok(vec![
                id("5"),
                TabReference::Index(2),
                TabReference::Index(0)
            ])
        );
        assert_eq!(subject(r#"{"tabId":null,"index":null}"#), Ok(vec![]));
        for bad in ["-1", "1.5", "\"1\"", "{}", "1e2"] {
            let params = format!(r#"{{"index":{bad}}}"#);
            assert_eq!(subject(&params), Err(-32602), "{bad}");
        }
    }

    #[test]
    fn other_spellings_of_a_number_name_no_tab() {
        for bad in ["5.0", "5e0", "-5", "12345678901234567890", "{}", "true"] {
            let params = format!(r#"{{"tabId":{bad}}}"#);
            assert_eq!(subject(&params), Err(-32602), "{bad}");
        }
        for bad in [
            "5.0",
            "5e0",
            "-5",
            "12345678901234567890",
            "true",
            "{}",
            "[{}]",
        ] {
            let params = format!(r#"{{"options":{{"tabId":{bad}}}}}"#);
            assert_eq!(nested(&params), Err(-32602), "{bad}");
        }
    }

    #[test]
    fn tabs_are_named_at_any_depth_and_in_lists() {
        for (params, expected) in [
            (r#"{"tabId":5,"tabIndex":1}"#, vec![]),
            (r#"{"options":{"tabId":5}}"#, vec![id("5")]),
            (r#"{"target":{"tab\u0049d":"5"}}"#, vec![id("5")]),
            (r#"{"tabIds":[5,"6",null]}"#, vec![id("5"), id("6")]),
            (r#"{"tabIds":7}"#, vec![id("7")]),
            (
                r#"{"a":[{"b":[{"tabIds":[[5],6]}]}]}"#,
                vec![id("5"), id("6")],
            ),
            (
                r#"{"options":{"tabIndex":3,"index":4}}"#,
                vec![TabReference::Index(3)],
            ),
            (r#"{"options":{"tabId":null},"text":"tabId"}"#, vec![]),
            (r#"{"attributes":{"tabIndex":-1}}"#, vec![]),
            (
                r#"{"tabInfo":[1],"o":{"tabIndex":{"a":1}},"x":["tabId",5]}"#,
                vec![],
            ),
        ] {
            assert_eq!(nested(params), Ok(expected), "{params}");
        }
    }

    #[test]
    fn a16_tabs_are_named_in_other_spellings() {
        for params in [
            r#"{"tab_id":5}"#,
            r#"{"TabId":5}"#,
            r#"{"tab.id":5}"#,
            r#"{"tab-id":"5"}"#,
            r#"{"TABID":5}"#,
            r#"{"options":{"tab_ids":[5]}}"#,
        ] {
            assert_eq!(nested(params), Ok(vec![id("5")]), "{params}");
        }
        for params in [r#"{"tab_index":3}"#, r#"{"Index":3}"#] {
            assert_eq!(nested(params), Ok(vec![TabReference::Index(3)]), "{params}");
        }
        for (params, expected) in [
            (r#"{"id":5}"#, vec![TabId("5".into())]),
            (r#"{"ID":"5"}"#, vec![TabId("5".into())]),
            (r#"{"tab":{"id":5}}"#, vec![TabId("5".into())]),
            (r#"{"tabs":[5]}"#, vec![TabId("5".into())]),
            (
                r#"{"tab":5,"id":-1,"ids":{"a":1}}"#,
                vec![TabId("5".into())],
            ),
            (r#"{"index":5,"ident":5}"#, vec![]),
        ] {
            let named = named_by("m", params).map(|named| named.possible);
            assert_eq!(named, Ok(expected), "{params}");
        }
    }

    #[test]
    fn parameters_of_cdp_methods_name_no_tabs() {
        let params = r#"{"method":"Runtime.callFunctionOn","target":{"tabId":5},
            "params":{"tabId":6,"tabIds":[6.5],"arguments":[{"value":{"tabIndex":-1}}]},"options":{"tabId":7}}"#;
        let named = named_by(FORWARD_CDP, params).map(|named| named.nested);
        assert_eq!(named, Ok(vec![id("5"), id("7")]));
    }
}
