//! The state of the UI, without the screen: keys and news go in, what is to be done outside comes out.

mod answers;
mod breakpoints;
mod commands;
mod decisions;
mod diff_view;
mod drafts;
mod holds;
mod keys;
mod message_view;
mod prompt;
mod replay;
mod servers;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseEvent};
use mcp_proxy_control::{
    BreakpointsListRequest, ControlRequest, HelloRequest, HoldListRequest, RulesListRequest,
    SubscribeRequest,
};
use ratatui_textarea::TextArea;

use crate::command::UiCommand;
use crate::editor::{EditPurpose, Editor};
use crate::input_history::InputHistory;
use crate::port::{ProxyEvent, ProxyPort};
use crate::proxy::{ProxyState, ProxyStatus};
use crate::tab::Tab;
use crate::text::client_config;
use crate::theme::{Colours, Theme};
use answers::RequestPurpose;
pub use diff_view::{DiffScreenRow, DiffView};
use drafts::Drafts;
use holds::HoldTracking;
use prompt::EarlierFilters;
pub use servers::ServersWindow;

/// How often records are looked at without being told.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a message to the user stays.
const SAID_FOR: Duration = Duration::from_secs(6);
/// After this long a key removes what was said: it has been read.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// The UI.
pub struct App {
    /// Sessions that are looked at; the first is the live one, if there is one.
    pub tabs: Vec<Tab>,
    /// Which of them is shown.
    pub tab: usize,
    /// The proxy.
    pub proxy: ProxyState,
    /// The pane that gets key presses.
    pub focus: Focus,
    /// How much of the screen the message gets while it has the focus.
    pub detail_width: DetailWidth,
    /// What lies over the panes.
    pub overlay: Overlay,
    /// What was last said to the user.
    pub status: Option<StatusMessage>,
    /// Its colours.
    pub theme: Theme,
    /// Whether it has any.
    pub colours: Colours,
    /// Whether long lines are wrapped.
    pub wraps: bool,
    /// What is searched for in messages.
    pub search: String,
    /// Where clients connect.
    pub listen_url: Option<String>,
    /// What leaving means.
    pub owner: ProxyOwner,
    /// Where the mouse finds what, as the screen was last drawn.
    pub click_areas: Vec<ClickArea>,
    /// The clock of this turn.
    pub now: Instant,
    port: Option<ProxyPort>,
    /// When records were last looked at.
    last_refresh: Instant,
    holds: HoldTracking,
    drafts: Drafts,
    filters: EarlierFilters,
    /// When the servers of a hub were last asked about. `None`: they are to be asked about now.
    servers_asked: Option<Instant>,
    pending_requests: HashMap<u64, RequestPurpose>,
    history: [InputHistory; 3],
    effects: Vec<Effect>,
}

/// Whose the proxy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyOwner {
    /// Somebody else's: leaving leaves it alone.
    Other,
    /// This program's: leaving ends it.
    Here,
    /// The demo's: it is over when the UI is, and nobody waits for it.
    Demo,
}

/// The pane that gets key presses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The list.
    List,
    /// The message.
    Detail,
}

/// How much of the screen the message gets while it has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailWidth {
    /// The pane next to the list.
    Pane,
    /// All columns.
    Whole,
}

/// What lies over the panes.
pub enum Overlay {
    /// Nothing.
    None,
    /// The keys.
    Help {
        /// The first line shown.
        top: usize,
    },
    /// A line that is typed.
    Prompt(PromptKind, Box<TextArea<'static>>),
    /// A message that is edited.
    Editor(Box<Editor>),
    /// Whether to end the proxy.
    ConfirmQuit,
    /// Whether to leave a proxy that keeps holding messages.
    ConfirmLeave,
    /// Something that the user has to see before another key counts: the editor under their hands was closed.
    Notice(String),
    /// Breakpoints.
    Breakpoints {
        /// The one that is selected.
        selected: usize,
    },
    /// Rules.
    Rules {
        /// The first shown.
        top: usize,
    },
    /// Stderr and other events.
    Events {
        /// Lines from the end.
        back: usize,
    },
    /// The servers of a hub.
    Servers(ServersWindow),
    /// Two bodies side by side.
    Diff(Box<DiffView>),
}

/// What is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A filter.
    Filter,
    /// What to search for in the message.
    Search,
    /// A command.
    UiCommand,
}

/// Something said to the user.
#[derive(Clone, Debug)]
pub struct StatusMessage {
    /// What.
    pub text: String,
    /// How.
    pub tone: StatusTone,
    /// When it was said.
    since: Instant,
}

/// How something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTone {
    /// As it is.
    Plain,
    /// Something went wrong.
    Bad,
}

/// A place on the screen that the mouse can press.
#[derive(Clone, Copy, Debug)]
pub struct ClickArea {
    /// Where.
    pub area: ratatui::layout::Rect,
    /// What.
    pub target: ClickTarget,
}

/// What the mouse can press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClickTarget {
    /// A button.
    Button(UiCommand),
    /// The list.
    List,
    /// The message.
    Detail,
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put into the clipboard.
    Copy(String),
    /// Edit outside, and hand the text back to [`App::finish_external_edit`].
    Edit(EditPurpose, String),
    /// Stop the program until it is continued, as Ctrl-Z does in a shell.
    Suspend,
    /// End the UI.
    Quit,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum InputEvent {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
}

impl App {
    /// A UI for a proxy.
    pub fn live(mut port: ProxyPort, owner: ProxyOwner, theme: Theme) -> App {
        let hello = HelloRequest {
            name: Some("tui".to_owned()),
        };
        let asked = [
            (port.ask(&hello), RequestPurpose::Hello),
            (port.ask(&SubscribeRequest {}), RequestPurpose::Subscribed),
            (port.ask(&HoldListRequest::default()), RequestPurpose::Holds),
            (
                port.ask(&BreakpointsListRequest {}),
                RequestPurpose::Breakpoints,
            ),
            (
                port.ask(&RulesListRequest::default()),
                RequestPurpose::Rules,
            ),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(id, then)| Some((id?, then)))
            .collect();
        let mut app = App::new(ProxyState::unknown(ProxyStatus::Live), theme);
        app.port = Some(port);
        app.pending_requests = asked;
        app.owner = owner;
        app
    }

    /// A UI for a record. `port` leads to somebody who can copy and export it.
    pub fn recorded(tab: Tab, port: ProxyPort, theme: Theme) -> App {
        let mut app = App::new(ProxyState::unknown(ProxyStatus::None), theme);
        app.tabs.push(tab);
        app.port = Some(port);
        app
    }

    fn new(proxy: ProxyState, theme: Theme) -> App {
        App {
            tabs: Vec::new(),
            tab: 0,
            proxy,
            focus: Focus::List,
            detail_width: DetailWidth::Pane,
            overlay: Overlay::None,
            status: None,
            theme,
            colours: Colours::Themed,
            wraps: true,
            search: String::new(),
            listen_url: None,
            owner: ProxyOwner::Other,
            click_areas: Vec::new(),
            now: Instant::now(),
            port: None,
            last_refresh: Instant::now(),
            holds: HoldTracking::default(),
            drafts: Drafts::default(),
            filters: EarlierFilters::default(),
            servers_asked: None,
            pending_requests: HashMap::new(),
            history: Default::default(),
            effects: Vec::new(),
        }
    }

    /// The session that is shown.
    pub fn current(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(self.tab)
    }

    /// Whether nobody is there who could decide about messages of the session that is shown. Of the live one the proxy tells
    /// what is held; the record may be behind that.
    pub fn is_left_undecided(&self) -> bool {
        self.tab != 0 || self.proxy.link != ProxyStatus::Live
    }

    /// Takes what has come from the proxy and from records. True: the screen has changed.
    pub fn tick(&mut self, now: Instant) -> bool {
        self.now = now;
        let mut changed = false;
        while let Some(news) = self.port.as_ref().and_then(ProxyPort::news) {
            changed = true;
            match news {
                ProxyEvent::Notice(notice) => self.handle_notice(&notice),
                ProxyEvent::Answer { id, result } => self.handle_answer(id, result),
                ProxyEvent::Gone { why } => self.handle_disconnect(why),
            }
        }
        if now.duration_since(self.last_refresh) >= LOOK_EVERY {
            self.last_refresh = now;
            // A record may grow without a proxy that tells.
            self.tabs.iter().for_each(|tab| tab.view.request_refresh());
        }
        for tab in &mut self.tabs {
            changed |= tab.poll();
        }
        self.poll_servers();
        changed |= self.clear_status_after(SAID_FOR);
        changed
    }

    /// Removes what was said this long ago.
    fn clear_status_after(&mut self, time: Duration) -> bool {
        let is_old = |said: &mut StatusMessage| self.now.duration_since(said.since) >= time;
        self.status.take_if(is_old).is_some()
    }

    /// What a client's config says to connect here, as long as there is a proxy that listens.
    pub fn client_config(&self) -> Option<String> {
        let url = self.listen_url.as_deref()?;
        let name = match self.proxy.is_hub() {
            true => "hub",
            false => "server",
        };
        // The clients of a relay are configured in other ways.
        let is_relay = self.proxy.hello.client == mcp_proxy_wire::Transport::WebSocket.as_str();
        let is_live = self.proxy.link == ProxyStatus::Live;
        (is_live && !is_relay).then(|| client_config(name, url, &self.proxy.hello.client))
    }

    /// Gives the key presses to a pane.
    fn focus_on(&mut self, focus: Focus, width: DetailWidth) {
        self.focus = focus;
        self.detail_width = width;
    }

    /// Opens an editor or a window. What was said before must not hide its keys.
    fn open(&mut self, overlay: Overlay) {
        self.status = None;
        self.overlay = overlay;
    }

    /// Takes what the user does.
    pub fn handle_input(&mut self, event: InputEvent) {
        if !matches!(event, InputEvent::Mouse(_)) {
            self.clear_status_after(READ_WITHIN);
        }
        match event {
            InputEvent::Key(key) => self.key(key),
            InputEvent::Mouse(mouse) => self.mouse(mouse),
            InputEvent::Paste(text) => self.type_text(&text),
        }
        self.holds.external_decision = None;
        self.select_unseen_hold();
    }

    /// What is to be done outside now.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The program itself says something.
    pub fn show_program_output(&mut self, text: &str) {
        match text.strip_prefix("listening on ") {
            Some(url) => self.listen_url = Some(url.to_owned()),
            None => self.say(text.strip_prefix("mcp-proxy: ").unwrap_or(text)),
        }
    }

    /// Says something to the user.
    pub fn say(&mut self, text: impl Into<String>) {
        self.tell(text.into(), StatusTone::Plain);
    }

    /// Says that something went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.tell(text.into(), StatusTone::Bad);
    }

    fn tell(&mut self, text: String, tone: StatusTone) {
        self.status = Some(StatusMessage {
            text,
            tone,
            since: self.now,
        });
    }

    /// Asks the proxy.
    fn ask(&mut self, request: &impl ControlRequest, then: RequestPurpose) {
        let asked = match (&self.proxy.link, &mut self.port) {
            (ProxyStatus::Gone(why), _) => {
                let text = format!("the proxy is gone: {why}");
                return self.complain(text);
            }
            (_, Some(port)) => port.ask(request),
            (_, None) => None,
        };
        match asked {
            Some(id) => drop(self.pending_requests.insert(id, then)),
            None => self.complain("the proxy is busy and takes no more requests now"),
        }
    }
}
