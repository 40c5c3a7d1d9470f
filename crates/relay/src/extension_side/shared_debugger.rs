//! Extensions that attach to one tab for all their clients.
//!
//! Some published extensions carry out every command in the tab that was attached last, for any client. For these the relay
//! sees to it that the attached tab is the caller's: it selects that tab itself before it sends the command, and sends nothing
//! that depends on the attached tab until that is done. Commands in one tab still run side by side.

use mcp_proxy_wire::Message;
use serde_json::json;

use super::extension::{Extension, RelayQuestion};
use crate::context::RelayContext;
use crate::fault::{Delivered, RelayFault};
use crate::ids::RelayConnectionId;
use crate::messages;
use crate::tabs::{self, TabId, TabUse};

/// Which tab such an extension is attached to, and who has it next.
#[derive(Debug, Default)]
pub(super) struct SharedDebugger {
    /// The attached tab. None while it is not known.
    pub(super) attached: Option<TabId>,
    /// The connection that is waited for, or for which the tab was just selected.
    next: Option<RelayConnectionId>,
}

/// A command for whose sake the relay selects a tab.
#[derive(Clone, Debug)]
pub(super) struct TabSwitch {
    connection: RelayConnectionId,
    number: u64,
    tab: TabId,
}

/// What has to happen before a command can be sent.
pub(super) enum DebuggerTurn {
    Ready,
    Waiting,
    /// The relay asks for the place of the tab, in order to select it.
    Switch(Message),
}

impl Extension {
    /// What has to happen before the next command of a connection can be sent.
    pub(super) fn debugger_turn(
        &mut self,
        connection: &RelayConnectionId,
        tab_use: TabUse,
        tab: Option<&TabId>,
        context: &RelayContext,
    ) -> DebuggerTurn {
        let Some(debugger) = &self.debugger else {
            return DebuggerTurn::Ready;
        };
        if !tab_use.uses_debugger() {
            return DebuggerTurn::Ready;
        }
        let has_commands = |id: &RelayConnectionId| {
            let known = self.connections.get(id);
            known.is_some_and(|known| !known.queue.is_empty())
        };
        let next = debugger.next.as_ref();
        if self.is_switching() || next.is_some_and(|next| next != connection && has_commands(next))
        {
            return DebuggerTurn::Waiting;
        }
        let is_attached = tab.is_some() && debugger.attached.as_ref() == tab;
        let now = context.now.elapsed;
        let sent = self.commands.open.values().map(|sent| sent.tab_use);
        let cancelled = self.commands.cancelled.values();
        let cancelled = cancelled.filter(|command| now < command.deadline);
        let mut open = sent.chain(cancelled.map(|command| command.tab_use));
        let must_wait = match tab_use.moves_debugger() || !is_attached {
            true => open.any(TabUse::uses_debugger),
            false => open.any(TabUse::moves_debugger),
        };
        let switch = tab.filter(|_| !is_attached && !tab_use.moves_debugger());
        let switch = switch.cloned();
        let Some(debugger) = &mut self.debugger else {
            return DebuggerTurn::Ready;
        };
        debugger.next = Some(connection.clone());
        match (must_wait, switch) {
            (true, _) => DebuggerTurn::Waiting,
            (false, Some(tab)) => {
                DebuggerTurn::Switch(self.ask_for_place(connection, tab, context))
            }
            (false, None) => {
                debugger.next = None;
                if tab_use.moves_debugger() || tab_use == TabUse::Closes {
                    debugger.attached = None;
                }
                DebuggerTurn::Ready
            }
        }
    }

    /// A command that moves the debugger was answered: the tab that it is attached to now, if the answer says so.
    pub(super) fn note_attached(&mut self, tab: Option<&TabId>) {
        if let Some(debugger) = &mut self.debugger {
            debugger.attached = tab.cloned();
        }
    }

    fn is_switching(&self) -> bool {
        let is_switch = |question: &RelayQuestion| {
            matches!(
                question,
                RelayQuestion::Place(_) | RelayQuestion::Selection(_)
            )
        };
        self.questions
            .open
            .values()
            .any(|(question, _)| is_switch(question))
    }

    fn ask_for_place(
        &mut self,
        connection: &RelayConnectionId,
        tab: TabId,
        context: &RelayContext,
    ) -> Message {
        let known = self.connections.get(connection);
        let next = known.and_then(|known| known.queue.front());
        let switch = TabSwitch {
            connection: connection.clone(),
            number: next.map_or(0, |next| next.command.number),
            tab,
        };
        let number = self.ask(RelayQuestion::Place(switch), context);
        messages::request(&messages::relay_id(number), messages::GET_TABS, Some(b"{}"))
    }

    /// The extension has listed its tabs: the one that is wanted is selected by its place.
    pub(super) fn select_listed(
        &mut self,
        switch: TabSwitch,
        answer: &Message,
        context: &mut RelayContext,
    ) {
        let listed = tabs::listed_tabs(answer).unwrap_or_default();
        let is_wanted =
            |tab: &Option<tabs::ListedTab>| tab.as_ref().is_some_and(|tab| tab.id == switch.tab);
        let Some(place) = listed.iter().position(is_wanted) else {
            return self.fail_switch(&switch, RelayFault::TabUnavailable, context);
        };
        let params = json!({"tabIndex": place, "activate": false}).to_string();
        let number = self.ask(RelayQuestion::Selection(switch), context);
        let id = messages::relay_id(number);
        let request = messages::request(&id, messages::SELECT_TAB, Some(params.as_bytes()));
        self.send(request, context);
    }

    /// The extension has answered the relay's own `selectTab`.
    pub(super) fn selected(
        &mut self,
        switch: TabSwitch,
        answer: &Message,
        context: &mut RelayContext,
    ) {
        let attached = tabs::answered_tab(answer).map(|tab| tab.id);
        let is_wanted = attached.as_ref() == Some(&switch.tab);
        self.note_attached(attached.as_ref());
        if !is_wanted {
            self.fail_switch(&switch, RelayFault::TabUnavailable, context);
        }
    }

    /// Fails the command for whose sake a tab was to be selected, if it still waits.
    pub(super) fn fail_switch(
        &mut self,
        switch: &TabSwitch,
        fault: impl Fn(Delivered) -> RelayFault,
        context: &mut RelayContext,
    ) {
        let known = self.connections.get(&switch.connection);
        let next = known.and_then(|known| known.queue.front());
        if next.is_some_and(|next| next.command.number == switch.number) {
            self.fail_next(&switch.connection, fault(Delivered::No), context);
        }
    }
}
