//! The state of the UI, without the screen: keys and news go in, what is to be done outside comes out.

mod act;
mod again;
mod answers;
mod decide;
mod held;
mod keys;
mod look;
mod typed;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseEvent};
use mcp_proxy_control::{
    BreakpointsListRequest, ControlRequest, HelloRequest, HoldListRequest, RulesListRequest,
    SubscribeRequest,
};

use crate::command::Command;
use crate::editor::{Editor, Purpose};
use crate::input::{History, Input};
use crate::port::{News, Port};
use crate::proxy::{Link, Proxy};
use crate::tab::Tab;
use crate::text::{Body, Compared};
use crate::theme::{Colours, Theme};
use answers::Then;
use held::Lost;

/// How often records are looked at without being told.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a message to the user stays.
const SAID_FOR: Duration = Duration::from_secs(6);

/// The UI.
pub struct App {
    /// Sessions that are looked at; the first is the live one, if there is one.
    pub tabs: Vec<Tab>,
    /// Which of them is shown.
    pub tab: usize,
    /// The proxy.
    pub proxy: Proxy,
    /// Who has the keys.
    pub focus: Focus,
    /// What lies over the panes.
    pub overlay: Overlay,
    /// What was last said to the user.
    pub said: Option<Said>,
    /// Its colours.
    pub theme: Theme,
    /// Whether it has any.
    pub colours: Colours,
    /// Whether long lines are wrapped.
    pub wraps: bool,
    /// What is searched for in messages.
    pub search: String,
    /// Where a proxy of this program listens.
    pub listens: Option<String>,
    /// What leaving means.
    pub owner: Owner,
    /// Where the mouse finds what, as the screen was last drawn.
    pub hits: Vec<Hit>,
    /// The clock of this turn.
    pub now: Instant,
    port: Option<Port>,
    /// The newest message that a proxy without a record has given.
    fetched: u64,
    /// When records were last looked at.
    looked: Instant,
    /// New messages were followed before some were held.
    followed: bool,
    /// Messages that were decided from here, until the holds are told again.
    decided_here: BTreeSet<u64>,
    /// The message that was decided elsewhere while the user looked at it.
    lost: Option<Lost>,
    /// What was edited and sent, until it is known to have arrived.
    unsent: Option<Box<Editor>>,
    /// The filter before another was typed.
    filter_before: String,
    asked: HashMap<u64, Then>,
    history: [History; 3],
    effects: Vec<Effect>,
}

/// Whose the proxy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Somebody else's: leaving leaves it alone.
    Other,
    /// This program's: leaving ends it.
    Here,
    /// The demo's: it is over when the UI is, and nobody waits for it.
    Demo,
}

/// Who has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The list.
    List,
    /// The message.
    Detail,
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
    Typing(Typing, Input),
    /// A message that is edited.
    Editor(Box<Editor>),
    /// Whether to end the proxy.
    ConfirmQuit,
    /// Whether to leave a proxy that goes on holding messages.
    ConfirmLeave,
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
    Happenings {
        /// Lines from the end.
        back: usize,
    },
    /// Two bodies side by side.
    Diff(Box<Sides>),
}

/// What is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// A filter.
    Filter,
    /// What to search for in the message.
    Search,
    /// A command.
    Command,
}

/// Two bodies side by side.
pub struct Sides {
    /// What they are.
    pub titles: [String; 2],
    /// The bodies.
    pub bodies: [Body; 2],
    /// Line by line.
    pub lines: Vec<Compared>,
    /// The first line shown.
    pub top: usize,
}

/// Something said to the user.
#[derive(Clone, Debug)]
pub struct Said {
    /// What.
    pub text: String,
    /// How.
    pub tone: Tone,
    until: Instant,
}

/// How something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Something went wrong.
    Bad,
}

/// A place on the screen that the mouse can press.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Where.
    pub area: ratatui::layout::Rect,
    /// What.
    pub target: Target,
}

/// What the mouse can press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A button.
    Button(Command),
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
    /// Edit outside, and hand the text back to [`App::edited`].
    Edit(Purpose, String),
    /// End the UI.
    Quit,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
}

impl App {
    /// A UI for a proxy.
    pub fn live(mut port: Port, owner: Owner, theme: Theme) -> App {
        let hello = HelloRequest {
            name: Some("tui".to_owned()),
        };
        let asked = [
            (port.ask(&hello), Then::Hello),
            (port.ask(&SubscribeRequest {}), Then::Subscribed),
            (port.ask(&HoldListRequest::default()), Then::Holds),
            (port.ask(&BreakpointsListRequest {}), Then::Breakpoints),
            (port.ask(&RulesListRequest::default()), Then::Rules),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(id, then)| Some((id?, then)))
            .collect();
        let mut app = App::new(Proxy::unknown(Link::Live), theme);
        app.port = Some(port);
        app.asked = asked;
        app.owner = owner;
        app
    }

    /// A UI for a record. `port` leads to somebody who can copy and export it.
    pub fn recorded(tab: Tab, port: Port, theme: Theme) -> App {
        let mut app = App::new(Proxy::unknown(Link::None), theme);
        app.tabs.push(tab);
        app.port = Some(port);
        app
    }

    fn new(proxy: Proxy, theme: Theme) -> App {
        App {
            tabs: Vec::new(),
            tab: 0,
            proxy,
            focus: Focus::List,
            overlay: Overlay::None,
            said: None,
            theme,
            colours: Colours::Themed,
            wraps: false,
            search: String::new(),
            listens: None,
            owner: Owner::Other,
            hits: Vec::new(),
            now: Instant::now(),
            port: None,
            fetched: 0,
            looked: Instant::now(),
            followed: false,
            decided_here: BTreeSet::new(),
            lost: None,
            unsent: None,
            filter_before: String::new(),
            asked: HashMap::new(),
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
        self.tab != 0 || self.proxy.link != Link::Live
    }

    /// Takes what has come from the proxy and from records. True: the screen has changed.
    pub fn turn(&mut self, now: Instant) -> bool {
        self.now = now;
        let mut changed = false;
        while let Some(news) = self.port.as_ref().and_then(Port::news) {
            changed = true;
            match news {
                News::Notice(notice) => self.noticed(&notice),
                News::Answer { id, result } => self.answered(id, result),
                News::Gone { why } => self.lost(why),
            }
        }
        if now.duration_since(self.looked) >= LOOK_EVERY {
            self.looked = now;
            // A record may grow without a proxy that tells.
            self.tabs.iter().for_each(|tab| tab.view.look());
        }
        for tab in &mut self.tabs {
            changed |= tab.poll();
        }
        if changed && self.listens.is_none() {
            self.find_address();
        }
        changed |= self.tell_lost();
        if self.said.as_ref().is_some_and(|said| said.until <= now) {
            self.said = None;
            changed = true;
        }
        changed
    }

    /// Opens an editor or a window. What was said before must not hide its keys.
    fn open(&mut self, overlay: Overlay) {
        self.said = None;
        self.overlay = overlay;
    }

    /// Takes what the user does.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Key(key) => self.key(key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) => self.letters(&text),
        }
        self.lost = None;
    }

    /// What is to be done outside now.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The program itself says something.
    pub fn heard(&mut self, text: &str) {
        match text.strip_prefix("listening on ") {
            Some(url) => self.listens = Some(url.to_owned()),
            None => self.say(text.strip_prefix("mcp-proxy: ").unwrap_or(text)),
        }
    }

    /// Says something to the user.
    pub fn say(&mut self, text: impl Into<String>) {
        self.tell(text.into(), Tone::Plain);
    }

    /// Says that something went wrong.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.tell(text.into(), Tone::Bad);
    }

    fn tell(&mut self, text: String, tone: Tone) {
        self.said = Some(Said {
            text,
            tone,
            until: self.now + SAID_FOR,
        });
    }

    /// Asks the proxy.
    fn ask(&mut self, request: &impl ControlRequest, then: Then) {
        let asked = match (&self.proxy.link, &mut self.port) {
            (Link::Gone(why), _) => {
                let text = format!("the proxy is gone: {why}");
                return self.complain(text);
            }
            (_, Some(port)) => port.ask(request),
            (_, None) => None,
        };
        match asked {
            Some(id) => drop(self.asked.insert(id, then)),
            None => self.complain("the proxy takes no more questions now"),
        }
    }
}
