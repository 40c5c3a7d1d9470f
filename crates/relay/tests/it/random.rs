//! Random sequences of events against a model: nobody crashes the relay, no answer reaches another than the one who asked, no
//! command reaches another connection's tab, and nothing stays open.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use mcp_proxy_relay::{
    IdSource, NewClient, NewExtension, RelayAccess, RelaySettings, RelayTime, SocketId, UserRelay,
};
use mcp_proxy_wire::{Id, Message};
use proptest::prelude::*;
use serde_json::{Value, json};

const CLIENTS: usize = 3;
const EXTENSIONS: usize = 2;

#[derive(Clone, Debug)]
enum Event {
    ClientJoins(usize),
    ClientLeaves(usize),
    ClientSays(usize, Request),
    ExtensionJoins(usize),
    ExtensionLeaves(usize),
    /// The extension answers the oldest or newest thing that it was asked.
    ExtensionAnswers(usize, bool, Answer),
    ExtensionBabbles(usize, u8),
    Wait(u8),
}

#[derive(Clone, Debug)]
enum Request {
    Connect(usize),
    Disconnect,
    List,
    CreateTab,
    GetTabs,
    /// A command on the tab with this number, modulo those that exist.
    OnTab(u8),
    OnCurrentTab,
    SelectIndex(u8),
    /// The id of the last request once more.
    Repeat,
    Nonsense,
}

#[derive(Clone, Debug)]
enum Answer {
    Result,
    Error,
    Empty,
}

/// What the peers know.
#[derive(Default)]
struct World {
    now: Duration,
    next_socket: u64,
    clients: BTreeMap<usize, ClientEnd>,
    extensions: BTreeMap<usize, ExtensionEnd>,
    next_tab: u64,
    /// The connection that a tab was opened for.
    tab_owners: HashMap<u64, String>,
}

struct ClientEnd {
    socket: SocketId,
    next_id: u64,
    /// The markers of requests that wait for an answer, by id.
    open: HashMap<u64, Vec<String>>,
    is_closed: bool,
}

struct ExtensionEnd {
    socket: SocketId,
    asked: Vec<Value>,
    is_closed: bool,
}

fn event() -> impl Strategy<Value = Event> {
    let request = prop_oneof![
        3 => (0..EXTENSIONS).prop_map(Request::Connect),
        1 => Just(Request::Disconnect),
        1 => Just(Request::List),
        4 => Just(Request::CreateTab),
        2 => Just(Request::GetTabs),
        4 => any::<u8>().prop_map(Request::OnTab),
        4 => Just(Request::OnCurrentTab),
        2 => (0u8..4).prop_map(Request::SelectIndex),
        1 => Just(Request::Repeat),
        1 => Just(Request::Nonsense),
    ];
    let answer = prop_oneof![
        6 => Just(Answer::Result),
        1 => Just(Answer::Error),
        1 => Just(Answer::Empty),
    ];
    prop_oneof![
        2 => (0..CLIENTS).prop_map(Event::ClientJoins),
        1 => (0..CLIENTS).prop_map(Event::ClientLeaves),
        12 => ((0..CLIENTS), request).prop_map(|(client, request)| Event::ClientSays(client, request)),
        2 => (0..EXTENSIONS).prop_map(Event::ExtensionJoins),
        1 => (0..EXTENSIONS).prop_map(Event::ExtensionLeaves),
        10 => ((0..EXTENSIONS), any::<bool>(), answer)
            .prop_map(|(extension, newest, answer)| Event::ExtensionAnswers(extension, newest, answer)),
        1 => ((0..EXTENSIONS), any::<u8>()).prop_map(|(extension, what)| Event::ExtensionBabbles(extension, what)),
        1 => (0u8..40).prop_map(Event::Wait),
    ]
}

impl World {
    fn time(&self) -> RelayTime {
        RelayTime {
            elapsed: self.now,
            wall_ms: i64::try_from(self.now.as_millis()).unwrap(),
        }
    }

    fn socket(&mut self) -> SocketId {
        self.next_socket += 1;
        SocketId(self.next_socket)
    }

    fn play(&mut self, relay: &mut UserRelay, event: Event) {
        match event {
            Event::ClientJoins(client) => {
                let socket = self.socket();
                let new = NewClient {
                    // The last one has no id of its own, so it cannot resume.
                    client_id: (client + 1 < CLIENTS).then(|| format!("client-{client}")),
                    expires_at: i64::MAX,
                    request: Some(Id::number(0)),
                };
                if let Some(old) = self.clients.remove(&client)
                    && client + 1 == CLIENTS
                {
                    relay.left(old.socket, self.time());
                }
                relay.client_joined(socket, &new, self.time());
                let end = ClientEnd {
                    socket,
                    next_id: 1,
                    open: HashMap::from([(0, vec![String::new()])]),
                    is_closed: false,
                };
                self.clients.insert(client, end);
            }
            Event::ClientLeaves(client) => {
                if let Some(gone) = self.clients.remove(&client) {
                    relay.left(gone.socket, self.time());
                }
            }
            Event::ClientSays(client, request) => self.say(relay, client, &request),
            Event::ExtensionJoins(extension) => {
                let socket = self.socket();
                let new = NewExtension {
                    name: Some(format!("Browser {extension}")),
                    client_id: Some(format!("browser-{extension}")),
                    expires_at: i64::MAX,
                };
                relay.extension_joined(socket, &new, self.time());
                let end = ExtensionEnd {
                    socket,
                    asked: Vec::new(),
                    is_closed: false,
                };
                if let Some(old) = self.extensions.insert(extension, end) {
                    relay.left(old.socket, self.time());
                }
            }
            Event::ExtensionLeaves(extension) => {
                if let Some(gone) = self.extensions.remove(&extension) {
                    relay.left(gone.socket, self.time());
                }
            }
            Event::ExtensionAnswers(extension, newest, answer) => {
                self.answer(relay, extension, newest, &answer);
            }
            Event::ExtensionBabbles(extension, what) => {
                let Some(end) = self.extensions.get(&extension) else {
                    return;
                };
                let text = match what % 5 {
                    0 => "nonsense",
                    1 => r#"{"id":"conn-1:1","result":{"marker":"forged"}}"#,
                    2 => r#"{"id":"proxy:3","result":{"tabs":[]}}"#,
                    3 => {
                        r#"{"method":"notifications/tab_info_update","params":{"currentTab":{"id":1}}}"#
                    }
                    _ => r#"{"id":"ext:1","method":"anything"}"#,
                };
                // A forged answer to a question that is open is an answer: the extension is who it is.
                if what % 5 != 1 && what % 5 != 2 {
                    relay.message(end.socket, Message::parse(text), self.time());
                }
            }
            Event::Wait(seconds) => {
                self.now += Duration::from_secs(seconds.into());
                relay.tick(self.time());
            }
        }
        self.listen(relay);
    }

    fn say(&mut self, relay: &mut UserRelay, client: usize, request: &Request) {
        let now = self.time();
        let tabs = self.next_tab.max(1);
        let Some(end) = self.clients.get_mut(&client) else {
            return;
        };
        if end.is_closed {
            return;
        }
        let id = match request {
            Request::Repeat => end.next_id.saturating_sub(1),
            _ => end.next_id,
        };
        let marker = format!("{}-{}", end.socket.0, end.next_id);
        end.next_id += 1;
        let (method, params) = match request {
            Request::Connect(extension) => (
                "connect",
                json!({"extension_id": format!("ext-browser-{extension}")}),
            ),
            Request::Disconnect => ("disconnect", json!({})),
            Request::List => ("list_extensions", json!({})),
            Request::CreateTab => ("createTab", json!({"marker": marker})),
            Request::GetTabs | Request::Repeat => ("getTabs", json!({"marker": marker})),
            Request::OnTab(tab) => (
                "screenshot",
                json!({"marker": marker, "tabId": u64::from(*tab) % tabs}),
            ),
            Request::OnCurrentTab => ("screenshot", json!({"marker": marker})),
            Request::SelectIndex(index) => {
                ("selectTab", json!({"marker": marker, "tabIndex": index}))
            }
            Request::Nonsense => ("authenticate", json!({})),
        };
        let text = json!({"id": id, "method": method, "params": params}).to_string();
        end.open.entry(id).or_default().push(marker);
        relay.message(end.socket, Message::parse(text), now);
    }

    fn answer(&mut self, relay: &mut UserRelay, extension: usize, newest: bool, answer: &Answer) {
        let now = self.time();
        let Some(end) = self.extensions.get_mut(&extension) else {
            return;
        };
        if end.asked.is_empty() || end.is_closed {
            return;
        }
        let asked = match newest {
            true => end.asked.pop().unwrap(),
            false => end.asked.remove(0),
        };
        let id = &asked["id"];
        let marker = &asked["params"]["marker"];
        let value = match (asked["method"].as_str().unwrap(), answer) {
            (_, Answer::Error) => json!({"id": id, "error": {"message": "no"}}),
            (_, Answer::Empty) => json!({"id": id}),
            ("createTab", _) => {
                let tab = self.next_tab;
                self.next_tab += 1;
                let connection = connection_of(id);
                self.tab_owners.insert(tab, connection);
                json!({"id": id, "result": {"marker": marker, "tab": {"id": tab}}})
            }
            // All tabs are in each browser here, by their number.
            ("getTabs", _) => {
                let tabs: Vec<Value> = (0..self.next_tab).map(|tab| json!({"id": tab})).collect();
                json!({"id": id, "result": {"marker": marker, "tabs": tabs}})
            }
            ("selectTab", _) => {
                let index = asked["params"]["tabIndex"].as_u64().unwrap();
                let connection = connection_of(id);
                self.tab_owners.insert(index, connection);
                json!({"id": id, "result": {"marker": marker, "tab": {"id": index}}})
            }
            _ => json!({"id": id, "result": {"marker": marker, "currentTab": {"id": 0}}}),
        };
        relay.message(end.socket, Message::parse(value.to_string()), now);
    }

    /// Takes what the relay has for everybody, and checks it.
    fn listen(&mut self, relay: &mut UserRelay) {
        let now = self.time();
        loop {
            let woken = relay.woken();
            if woken.is_empty() {
                return;
            }
            for socket in woken {
                let output = relay.take(socket, 1 << 20, now);
                for end in self.clients.values_mut().filter(|end| end.socket == socket) {
                    for message in &output.messages {
                        end.hear(&serde_json::from_slice(message).unwrap());
                    }
                    end.is_closed |= output.close.is_some();
                }
                for end in self
                    .extensions
                    .values_mut()
                    .filter(|end| end.socket == socket)
                {
                    for message in &output.messages {
                        let asked: Value = serde_json::from_slice(message).unwrap();
                        if !asked["id"].is_null() && asked["method"].is_string() {
                            check_tab(&self.tab_owners, &asked);
                            end.asked.push(asked);
                        }
                    }
                    end.is_closed |= output.close.is_some();
                }
            }
        }
    }
}

impl ClientEnd {
    fn hear(&mut self, message: &Value) {
        let Some(id) = message["id"].as_u64() else {
            return;
        };
        let open = self
            .open
            .get_mut(&id)
            .expect("an answer to something that was asked");
        let marker = message["result"]["marker"].as_str();
        let at = match marker {
            Some(marker) => open.iter().position(|open| open == marker),
            None => open.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| panic!("not what was asked: {message}, open {open:?}"));
        open.remove(at);
        if open.is_empty() {
            self.open.remove(&id);
        }
    }
}

/// The connection that an id names. In direct mode one connection's ids name none.
fn connection_of(id: &Value) -> String {
    let text = id.as_str().unwrap_or_default();
    let (connection, _) = text.split_once(':').unwrap_or(("direct", ""));
    connection.to_owned()
}

/// A command that works on a tab names one that was opened or selected by its own connection.
fn check_tab(owners: &HashMap<u64, String>, asked: &Value) {
    let connection = connection_of(&asked["id"]);
    if asked["method"] == "screenshot"
        && let Some(tab) = asked["params"]["tabId"].as_u64()
    {
        assert_eq!(
            owners.get(&tab).map(String::as_str),
            Some(&*connection),
            "{asked}"
        );
    }
}

fn play_all(settings: RelaySettings, events: Vec<Event>) -> Result<(), TestCaseError> {
    let mut relay = UserRelay::new("ada", settings, IdSource::Counting(0));
    let mut world = World::default();
    for event in events {
        world.play(&mut relay, event);
    }
    // Nothing waits for longer than a command may take.
    for _ in 0..4 {
        world.play(&mut relay, Event::Wait(31));
    }
    for end in world.clients.values().filter(|end| !end.is_closed) {
        prop_assert!(end.open.is_empty(), "still open: {:?}", end.open);
    }
    for client in 0..CLIENTS {
        world.play(&mut relay, Event::ClientLeaves(client));
    }
    for extension in 0..EXTENSIONS {
        world.play(&mut relay, Event::ExtensionLeaves(extension));
    }
    world.play(&mut relay, Event::Wait(31));
    world.play(&mut relay, Event::Wait(31));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_everybody_gets_their_own_answers(
        events in proptest::collection::vec(event(), 1..40)
    ) {
        play_all(RelaySettings::default(), events)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn in_direct_mode_too(events in proptest::collection::vec(event(), 1..40)) {
        let settings = RelaySettings {
            access: RelayAccess::Direct,
            ..RelaySettings::default()
        };
        play_all(settings, events)?;
    }
}
