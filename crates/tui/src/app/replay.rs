//! Sending messages again.

use mcp_proxy_control::{ReplayRequest, ReplaySession};
use mcp_proxy_wire::Direction;

use super::answers::RequestPurpose;
use super::decisions::{EditCheck, EditLocation, editable};
use super::{App, Overlay};
use crate::editor::{EditPurpose, Editor};
use crate::proxy::ProxyStatus;

impl App {
    /// Sends the selected message again, on a session of its own unless told otherwise, or where the server takes none.
    pub(super) fn replay(&mut self, session: Option<ReplaySession>) {
        if let Some(sequence) = self.replayable() {
            self.send_again(sequence, None, session);
        }
    }

    /// Edits the selected message, to send it again.
    pub(super) fn replay_edited(&mut self) {
        let Some(sequence) = self.replayable() else {
            return;
        };
        let detail = self.tabs.first().and_then(|tab| tab.detail.as_ref());
        match detail.map(|detail| editable(detail, EditLocation::Here)) {
            Some(Ok(text)) => {
                let purpose = EditPurpose::Replay { sequence };
                self.open_editor(purpose, &text);
            }
            Some(Err(why)) => self.complain(why),
            None => {}
        }
    }

    /// Has the user fill in the values of a message that nobody knows any more.
    pub(super) fn edit_redacted(&mut self, sequence: u64) {
        let is_selected = self.tabs.first().and_then(|tab| tab.selected) == Some(sequence);
        if self.tab != 0 || !is_selected || !matches!(self.overlay, Overlay::None) {
            return;
        }
        let detail = self.tabs.first().and_then(|tab| tab.detail.as_ref());
        if let Some(Ok(text)) = detail.map(|detail| editable(detail, EditLocation::Here)) {
            self.overlay = Overlay::Editor(Box::new(Editor::new(
                EditPurpose::Replay { sequence },
                None,
                &text,
            )));
        }
    }

    /// Text that is not JSON-RPC is sent on a fresh session only, and only an edit can contain it.
    pub(super) fn send_again(
        &mut self,
        sequence: u64,
        raw: Option<(String, EditCheck)>,
        session: Option<ReplaySession>,
    ) {
        let request = ReplayRequest {
            sequence,
            session,
            as_is: matches!(&raw, Some((_, EditCheck::AsIs))),
            raw: raw.and_then(|(raw, _)| ReplayRequest::text(&raw)),
            ..ReplayRequest::default()
        };
        self.say(format!("replaying #{sequence} …"));
        self.ask(&request, RequestPurpose::Replayed(sequence));
    }

    /// The selected message, or the request that it answers.
    fn replayable(&mut self) -> Option<u64> {
        if self.proxy.link == ProxyStatus::None || self.tab != 0 {
            self.complain(
                "no proxy runs here that could send it; `mcp-proxy replay RECORD` replays a record",
            );
            return None;
        }
        let tab = self.tabs.first_mut()?;
        // What rushes by is laid out by its beginning only.
        tab.follows = false;
        tab.show();
        let Some(detail) = tab.detail.as_ref() else {
            self.complain("no message is selected");
            return None;
        };
        let message = detail.told.as_ref().ok().map(|told| &told.message)?;
        match (message.direction, message.answers) {
            (Direction::ClientToServer, _) => Some(message.sequence),
            (Direction::ServerToClient, Some(request)) => {
                self.go_to(request);
                self.tabs.first_mut()?.show();
                Some(request)
            }
            (Direction::ServerToClient, None) => {
                self.complain("only messages from a client can be replayed");
                None
            }
        }
    }
}
