//! What the proxy tells, taken into the state.

use bytes::Bytes;
use mcp_proxy_control::{
    BreakpointsListRequest, ConnectionsListRequest, ControlRequest, ExportRequest, Fault,
    HelloRequest, HoldEditRequest, HoldExtendRequest, HoldListRequest, HoldResolveRequest,
    InterceptMode, Notice, ReplayRequest, ReplayResult, RulesListRequest, ServersListRequest,
    SubscribeRequest,
};

use super::prompt::FileOutput;
use super::servers::ServerTask;
use super::{App, Effect, Overlay, ProxyOwner};
use crate::command::UiCommand;
use crate::proxy::ProxyStatus;
use crate::source::SessionView;
use crate::tab::Tab;

/// What an answer is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    Hello,
    Subscribed,
    Holds,
    Breakpoints,
    Rules,
    /// How the servers of a hub are doing.
    Servers,
    /// The connections of a hub.
    Connections,
    /// Something was done about the servers of a hub.
    ServersChanged(ServerTask),
    /// Nothing is done but to say this, or why not.
    Say(String),
    /// The held message of this number was decided.
    Resolved(u64, String),
    /// An editor of a held message was opened or closed.
    HoldEdited,
    /// The held message of this number has more time.
    Extended(u64),
    /// Held messages of these numbers were released.
    Released(Vec<u64>, String),
    /// Breakpoints have changed.
    BreakpointsChanged(String),
    /// A message was sent again.
    Replayed(u64),
    /// A file was written.
    Written(FileOutput),
    /// Nothing is held any more, and the UI ends.
    Resumed,
    /// The proxy ends, and the UI with it.
    Ended,
}

impl App {
    pub(super) fn handle_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Rows { .. } => self.look(),
            Notice::Holds(present) => {
                self.look();
                if self.proxy.take_present(present) {
                    self.ask(&RulesListRequest::default(), RequestPurpose::Rules);
                }
                self.ask(&HoldListRequest::default(), RequestPurpose::Holds);
                self.ask(&BreakpointsListRequest {}, RequestPurpose::Breakpoints);
            }
            // The next notice tells the present.
            Notice::Lagged => {}
        }
    }

    /// There are new messages in the record.
    fn look(&mut self) {
        if let Some(tab) = self.tabs.first() {
            tab.view.request_refresh();
        }
    }

    pub(super) fn handle_disconnect(&mut self, why: String) {
        let ends =
            |then: &RequestPurpose| matches!(then, RequestPurpose::Ended | RequestPurpose::Resumed);
        if self.pending_requests.values().any(ends) {
            self.effects.push(Effect::Quit);
        }
        self.pending_requests.clear();
        self.proxy.held.clear();
        if self.proxy.link == ProxyStatus::Live {
            self.complain(format!("{why}; what was recorded stays on the screen"));
        }
        self.proxy.link = ProxyStatus::Gone(why);
        if let Overlay::ConfirmQuit | Overlay::ConfirmLeave = self.overlay {
            self.overlay = Overlay::None;
        }
        self.edit_unanswered();
        self.owner = ProxyOwner::Other;
        if let Some(tab) = self.tabs.first() {
            tab.view.request_refresh();
        }
    }

    pub(super) fn handle_answer(&mut self, id: u64, result: Result<Bytes, Fault>) {
        let Some(then) = self.pending_requests.remove(&id) else {
            return;
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(why) => return self.refused(&then, &why),
        };
        if let Err(error) = self.take_answer(then, &answer) {
            self.complain(format!("the proxy's answer cannot be read: {error}"));
        }
    }

    fn refused(&mut self, then: &RequestPurpose, fault: &Fault) {
        let why = fault.text.as_str();
        if matches!(
            then,
            RequestPurpose::Resolved(..) | RequestPurpose::Replayed(_)
        ) {
            self.edit_refused();
        }
        if let RequestPurpose::Resolved(sequence, _) = then {
            // Mostly because somebody was quicker.
            self.holds.external_decision = Some(*sequence);
        }
        match then {
            RequestPurpose::Replayed(sequence) => {
                self.complain(format!("#{sequence} was not replayed: {why}"));
                if fault.reason() == Some("redacted") {
                    self.edit_redacted(*sequence);
                }
            }
            RequestPurpose::ServersChanged(task) => self.complain(task.failure(why)),
            // An older proxy does not know this, and a message that was decided meanwhile is told by its notice.
            RequestPurpose::HoldEdited => return,
            _ => self.complain(why),
        }
        if self.proxy.link == ProxyStatus::Live {
            self.ask(&HoldListRequest::default(), RequestPurpose::Holds);
        }
    }

    fn take_answer(
        &mut self,
        then: RequestPurpose,
        answer: &Bytes,
    ) -> Result<(), serde_json::Error> {
        match then {
            RequestPurpose::Hello => {
                self.proxy.hello = HelloRequest::result(answer)?;
                if let Some(address) = &self.proxy.hello.listens {
                    self.listen_url = Some(address.clone());
                }
                let view = match &self.proxy.hello.record {
                    Some(record) => SessionView::open(record.clone()),
                    None => SessionView::without_record(),
                };
                // A record may have been opened before the proxy answered: it stays on the screen.
                self.tab += usize::from(!self.tabs.is_empty());
                self.tabs.insert(0, Tab::new("live".to_owned(), view));
                self.look();
                self.greet();
            }
            RequestPurpose::Subscribed => {
                self.proxy.mode = SubscribeRequest::result(answer)?.mode;
            }
            RequestPurpose::Holds => {
                let before = self.proxy.held_numbers();
                let list = HoldListRequest::result(answer)?;
                self.proxy.take_holds(list, self.now);
                self.holds_changed(&before);
            }
            RequestPurpose::Breakpoints => {
                self.proxy.breakpoints = BreakpointsListRequest::result(answer)?.breakpoints;
            }
            RequestPurpose::Rules => self.proxy.rules = RulesListRequest::result(answer)?,
            RequestPurpose::Servers => {
                self.take_servers(ServersListRequest::result(answer)?.servers);
            }
            RequestPurpose::Connections => {
                self.take_connections(ConnectionsListRequest::result(answer)?.connections);
            }
            RequestPurpose::ServersChanged(task) => self.servers_changed(&task),
            RequestPurpose::Say(text) if text.is_empty() => {}
            RequestPurpose::Say(text) => self.say(text),
            RequestPurpose::Resolved(sequence, text) => {
                self.edit_arrived();
                self.holds.decided_here.insert(sequence);
                match HoldResolveRequest::result(answer)?.note {
                    // It names the command; the key is the user's own.
                    Some(note) => {
                        let key = UiCommand::AnswerError.key();
                        self.say(format!("{text}: {note} ({key})"));
                    }
                    None => self.say(text),
                }
            }
            RequestPurpose::HoldEdited => {
                self.take_clock(&HoldEditRequest::result(answer)?);
            }
            RequestPurpose::Extended(sequence) => {
                if let Some(clock) = self.take_clock(&HoldExtendRequest::result(answer)?) {
                    self.say(format!("#{sequence}: {clock}"));
                }
            }
            RequestPurpose::Released(numbers, text) => {
                self.holds.decided_here.extend(numbers);
                if !text.is_empty() {
                    self.say(text);
                }
            }
            RequestPurpose::BreakpointsChanged(text) => {
                self.say(text);
                self.ask(&BreakpointsListRequest {}, RequestPurpose::Breakpoints);
            }
            RequestPurpose::Replayed(sequence) => {
                self.replayed(sequence, &ReplayRequest::result(answer)?)
            }
            RequestPurpose::Written(what) => {
                // A copy is answered as an export is.
                let written = ExportRequest::result(answer)?;
                let size = written.bytes.map(|bytes| format!(", {bytes} bytes"));
                let size = size.unwrap_or_default();
                self.say(format!("{}: {}{size}", what.done(), written.output));
            }
            RequestPurpose::Resumed => {
                self.proxy.mode = InterceptMode::Passthrough;
                self.effects.push(Effect::Quit);
            }
            RequestPurpose::Ended => self.effects.push(Effect::Quit),
        }
        Ok(())
    }

    fn replayed(&mut self, sequence: u64, replayed: &ReplayResult) {
        self.look();
        self.edit_arrived();
        let Some(tab) = self.tabs.first_mut() else {
            return;
        };
        let request = replayed.request;
        tab.replays.insert(sequence, (request, replayed.answer));
        let text = match (replayed.answer, replayed.latency_ms) {
            (Some(answer), Some(latency)) => format!(
                "#{sequence} was replayed as #{request}, answered by #{answer} after {latency:.1} ms (D compares the answers)"
            ),
            (Some(answer), None) => {
                format!(
                    "#{sequence} was replayed as #{request}, answered by #{answer} (D compares the answers)"
                )
            }
            (None, _) => format!("#{sequence} was replayed as #{request}"),
        };
        self.say(text);
    }
}
