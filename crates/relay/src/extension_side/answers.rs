//! What an extension says, and what it means for its connections and their tabs.

use bytes::Bytes;
use mcp_proxy_wire::{Id, IdKey, Kind, Message, Span};
use serde_json::{Map, Value};

use super::extension::{Extension, RelayQuestion, SentCommand};
use super::own_tab::may_have_current_tab;
use super::plain_ids::is_plain;
use super::{answer, notify};
use crate::context::RelayContext;
use crate::extension_event::AnswerBody;
use crate::fault::{Delivered, RelayFault};
use crate::messages::{self, AnsweredRequest};
use crate::tabs::{self, CurrentTab, TabUse};

/// The code of an error that an extension gave none.
const UNNAMED_ERROR: i64 = -32000;

impl Extension {
    /// An answer to a command, or to a question of the relay's own.
    pub(super) fn answer(&mut self, message: &Message, context: &mut RelayContext) {
        let Some(key) = message.id().map(|id: Id| id.key()) else {
            context.counters.ignored += 1;
            return;
        };
        match AnsweredRequest::of(&key) {
            AnsweredRequest::Question(number) => {
                return self.answered_question(number, message, context);
            }
            AnsweredRequest::Unknown => {
                context.counters.ignored += 1;
                return;
            }
            AnsweredRequest::Command => {}
        }
        let Some(sent) = self.finish_sent(&key) else {
            context.counters.late_answers += 1;
            self.note_late_answer(&key);
            return;
        };
        let limit = context.settings.max_message;
        // JSON-RPC 1.0 peers write `null` in the place of an error.
        let error = message.error();
        let error = error.filter(|error| message.slice(*error) != b"null");
        let outcome = match (message.kind(), message.result(), error) {
            _ if message.len() > limit => Err(RelayFault::TooLarge(limit)),
            (Kind::Error, _, Some(error)) => Ok(AnswerBody {
                edits: Vec::from_iter(self.error(&sent, message, error).map(|own| (error, own))),
                message: message.clone(),
            }),
            (Kind::Response, Some(result), None) => {
                let noted = self.note_tabs(&sent, message);
                noted.map(|()| AnswerBody {
                    edits: self.own_tab_edits(&sent.connection, message, result),
                    message: message.clone(),
                })
            }
            _ => Err(RelayFault::UnusableAnswer),
        };
        if outcome.is_err() || message.kind() == Kind::Error {
            self.forget_current(&sent);
        }
        answer(sent.connection, sent.number, outcome, context);
    }

    /// A command has an answer that cannot be read.
    pub(super) fn refuse_answer(
        &mut self,
        key: &IdKey,
        fault: RelayFault,
        context: &mut RelayContext,
    ) {
        if let Some(sent) = self.finish_sent(key) {
            self.forget_current(&sent);
            answer(sent.connection, sent.number, Err(fault), context);
        }
    }

    /// A command is answered, one way or the other.
    fn finish_sent(&mut self, key: &IdKey) -> Option<SentCommand> {
        let sent = self.commands.open.remove(key)?;
        self.commands.proven = self.commands.proven.max(sent.place);
        if let Some(known) = self.connections.get_mut(&sent.connection)
            && sent.tab_use.acquires()
        {
            known.acquiring = known.acquiring.saturating_sub(1);
        }
        Some(sent)
    }

    /// The answer to a command is an error, or could not be read. If it was about another tab, the extension may be attached to
    /// that one all the same.
    fn forget_current(&mut self, sent: &SentCommand) {
        if let Some(known) = self.connections.get_mut(&sent.connection)
            && sent.tab_use.acquires()
        {
            known.current = None;
        }
    }

    /// A replacement for an error that lacks a code or a text, has the extension's stack, or names a current tab. `None` if it needs
    /// none.
    fn error(&mut self, sent: &SentCommand, message: &Message, error: Span) -> Option<Bytes> {
        let raw = message.slice(error);
        let [code, stack, text] = message.members(error, ["code", "stack", "message"]);
        let has_text = text.is_some_and(|span| message.text_at(span).is_some());
        let is_integer = |token: &[u8]| token.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        let has_code = code.is_some_and(|span| is_integer(message.slice(span)));
        if has_code && has_text && stack.is_none() && !may_have_current_tab(raw) {
            return None;
        }
        let mut members = match serde_json::from_slice::<Value>(raw) {
            Ok(Value::Object(members)) => members,
            Ok(Value::String(text)) => Map::from_iter([("message".to_owned(), text.into())]),
            _ => Map::new(),
        };
        members.remove("stack");
        if !has_code {
            members.insert("code".to_owned(), UNNAMED_ERROR.into());
        }
        if !members.get("message").is_some_and(Value::is_string) {
            members.insert("message".to_owned(), "the extension failed".into());
        }
        self.put_own_tab_into(&sent.connection, &mut members);
        Some(Value::Object(members).to_string().into())
    }

    /// Who owns which tab after this answer.
    fn note_tabs(&mut self, sent: &SentCommand, message: &Message) -> Result<(), RelayFault> {
        let Some(known) = self.connections.get_mut(&sent.connection) else {
            return Ok(());
        };
        let answered = tabs::answered_tab(message);
        if sent.tab_use.moves_debugger()
            && let Some(debugger) = &mut self.debugger
        {
            debugger.attached = answered.as_ref().map(|tab| tab.id.clone());
        }
        let is_other = |tab: &CurrentTab| sent.tab.as_ref().is_some_and(|own| *own != tab.id);
        if (sent.is_by_index || sent.tab_use == TabUse::Selects)
            && answered.as_ref().is_some_and(is_other)
        {
            if sent.tab_use == TabUse::Selects {
                // It is attached to a tab that it did not ask for, and has to select again.
                known.current = None;
            }
            return Err(RelayFault::TabMoved(Delivered::Yes));
        }
        match sent.tab_use {
            TabUse::Opens | TabUse::Selects => {
                let Some(tab) = answered else {
                    // It may be attached to a tab that the relay does not know.
                    known.current = None;
                    return Ok(());
                };
                let owner = self.tabs.owner(&tab.id);
                if owner.is_some_and(|owner| *owner != sent.connection) {
                    known.current = None;
                    return Err(RelayFault::ForeignTab);
                }
                self.tabs.claim(tab.id.clone(), &sent.connection);
                // It may not be alone any more since it asked, and its ids have a prefix now.
                let is_plain = message.id().is_some_and(|id| is_plain(&id));
                let is_known = is_plain == self.plain_ids.belong_to(&sent.connection);
                known.current = Some(tab).filter(|_| is_known);
            }
            TabUse::Closes => {
                let Some(tab) = &sent.tab else {
                    return Ok(());
                };
                self.tabs.release(tab);
                if known.current.as_ref().is_some_and(|own| own.id == *tab) {
                    known.current = None;
                }
            }
            TabUse::Lists => self.note_listing(message),
            TabUse::Activates | TabUse::Browser | TabUse::Works => {}
        }
        Ok(())
    }

    /// Tabs that are not in a list of all tabs have been closed.
    fn note_listing(&mut self, message: &Message) {
        let Some(listed) = tabs::listed_tabs(message) else {
            return;
        };
        // A tab that is being opened may be missing in a list that was made before.
        if self.connections.values().any(|known| known.acquiring > 0) {
            return;
        }
        self.tabs.keep_only(&listed);
        for known in self.connections.values_mut() {
            let is_gone = |current: &CurrentTab| !tabs::is_listed(&current.id, &listed);
            if known.current.as_ref().is_some_and(is_gone) {
                known.current = None;
            }
        }
    }

    fn answered_question(&mut self, number: u64, message: &Message, context: &mut RelayContext) {
        let Some((question, _)) = self.questions.open.remove(&number) else {
            context.counters.late_answers += 1;
            // It may have been a selection.
            self.note_attached(None);
            return;
        };
        let connection = match question {
            // The new token was checked before the answer came here.
            RelayQuestion::Token => return,
            RelayQuestion::Place(switch) => return self.select_listed(switch, message, context),
            RelayQuestion::Selection(switch) => return self.selected(switch, message, context),
            RelayQuestion::Tabs(connection) => connection,
        };
        let listed = tabs::listed_tabs(message);
        if listed.is_some() {
            self.note_listing(message);
        }
        let Some(known) = self.connections.get_mut(&connection) else {
            return;
        };
        known.is_asking = false;
        match listed {
            Some(listed) => known.listing = Some(listed),
            None => {
                let fault = RelayFault::TabUnavailable(Delivered::No);
                self.fail_next(&connection, fault, context);
            }
        }
    }

    /// A notification. Clients get one kind; the others are only counted.
    pub(super) fn notification(&mut self, message: &Message, context: &mut RelayContext) {
        match message.method().as_deref() {
            Some(messages::TAB_INFO_UPDATE) => {}
            method => {
                if method == Some(messages::BUILD_INFO) {
                    self.debugger.get_or_insert_default();
                }
                context.counters.ignored += 1;
                return;
            }
        }
        let found = message
            .params()
            .map(|params| message.members(params, ["currentTab", "tabId"]));
        let [current, tab] = found.unwrap_or_default();
        let named = [current.and_then(|tab| message.member(tab, "id")), tab];
        let mut named = named.into_iter().flatten();
        let owner = named.find_map(|span| self.tabs.owner_at(message, span));
        let params = message.params().map(|span| message.slice(span));
        let notice = notice(params);
        match owner {
            Some(owner) => notify(owner, &notice, context),
            None => {
                let mut all: Vec<_> = self.connections.keys().collect();
                all.sort();
                for connection in all {
                    notify(connection, &notice, context);
                }
            }
        }
    }
}

fn notice(params: Option<&[u8]>) -> Message {
    let mut text = br#"{"jsonrpc":"2.0","method":"notifications/tab_info_update""#.to_vec();
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        text.extend_from_slice(params);
    }
    text.push(b'}');
    Message::parse(text)
}
