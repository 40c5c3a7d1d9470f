//! Breakpoints: set from the selected message or by a filter, removed, and what they mean for quitting.

use mcp_proxy_control::{BreakpointsAddRequest, BreakpointsRemoveRequest, ContinueRequest};
use mcp_proxy_session::MessageWithContext;
use mcp_proxy_wire::json_string;

use super::answers::RequestPurpose;
use super::{App, Overlay};

impl App {
    /// Sets a breakpoint with a filter, or has one typed that holds messages like the selected one.
    pub(super) fn break_here(&mut self, filter: &str) {
        if filter.is_empty() {
            if let Some(why) = self.cannot_decide() {
                return self.complain(why);
            }
            let selected = self.current().and_then(|tab| {
                let told = tab.view.message_with_context(tab.selected?).ok()?;
                filter_like(&told)
            });
            return self.type_command(&format!("break {}", selected.unwrap_or_default()));
        }
        let said = format!("breakpoint set: messages that match `{filter}` are held");
        let request = BreakpointsAddRequest {
            filter: filter.to_owned(),
            ..BreakpointsAddRequest::default()
        };
        self.ask(&request, RequestPurpose::BreakpointsChanged(said));
    }

    /// Removes a breakpoint: the one of this number, or the one that is selected.
    pub(super) fn unbreak(&mut self, number: &str) {
        let selected = match self.overlay {
            Overlay::Breakpoints { selected } => self.proxy.breakpoints.get(selected),
            _ => None,
        };
        let id = match number.is_empty() {
            true => selected.map(|breakpoint| breakpoint.id),
            false => number.parse().ok(),
        };
        let Some(id) = id else {
            return self.complain("which breakpoint? b lists them, `:unbreak NUMBER` removes one");
        };
        let then = RequestPurpose::BreakpointsChanged(format!("breakpoint {id} removed"));
        self.ask(&BreakpointsRemoveRequest { id }, then);
    }

    /// Removes all breakpoints, forwards all that is held, and quits.
    pub(super) fn resume_and_leave(&mut self) {
        self.overlay = Overlay::None;
        let breakpoints = std::mem::take(&mut self.proxy.breakpoints);
        for breakpoint in breakpoints {
            let request = BreakpointsRemoveRequest { id: breakpoint.id };
            self.ask(&request, RequestPurpose::Say(String::new()));
        }
        self.ask(&ContinueRequest {}, RequestPurpose::Resumed);
    }
}

/// A filter for messages like this one, in its direction: a call and its answer have the same method and name.
fn filter_like(told: &MessageWithContext) -> Option<String> {
    let message = &told.message;
    let (method, name) = match &told.request {
        Some(request) => (Some(&request.method), request.name.as_ref()),
        None => (message.method.as_ref(), message.name.as_ref()),
    };
    let method = method?;
    let about = match name.map(|name| json_string(name)) {
        Some(name) if method == "tools/call" => format!(".tool == {name}"),
        Some(name) => format!(".method == {} and .name == {name}", json_string(method)),
        None => format!(".method == {}", json_string(method)),
    };
    let direction = message.direction.as_str();
    Some(format!("{about} and .direction == \"{direction}\""))
}
