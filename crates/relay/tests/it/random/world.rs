//! What the peers of a relay know, do and check: the model that random events are played against.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use mcp_proxy_relay::{
    NewClient, NewExtension, RelayAccess, RelaySettings, RelayTime, SocketId, SocketOutput,
    UserRelay,
};
use mcp_proxy_wire::{Id, Message};
use serde_json::{Value, json};

use super::{Answer, CLIENTS, Event, ForgedAnswer, Request};

/// What the peers know.
#[derive(Default)]
pub(super) struct World {
    now: Duration,
    next_socket: u64,
    pub(super) clients: BTreeMap<usize, ClientEnd>,
    extensions: BTreeMap<usize, ExtensionEnd>,
    next_tab: u64,
    /// The connection that a tab was opened for.
    tab_owners: HashMap<u64, String>,
    /// Tabs of clients that left before they were told about them. Whether they own them depends on how they come back.
    unclear_tabs: HashSet<u64>,
    /// The connection that a command was sent on, by its marker.
    senders: HashMap<String, String>,
    /// The tabs that browsers are attached to, by extension and scope. They survive a reconnect.
    attached: HashMap<(usize, String), u64>,
    /// Extensions attach to one tab for all clients, whatever a command names.
    has_shared_debugger: bool,
    /// Clients may be connected without knowing their connection. There is one for each.
    is_direct: bool,
}

pub(super) struct ClientEnd {
    socket: SocketId,
    next_id: u64,
    /// The markers of requests that wait for an answer, by id.
    pub(super) open: HashMap<u64, Vec<String>>,
    /// The markers of requests that failed.
    failed: HashSet<String>,
    /// Those of them that had the same id as another open one: an error does not say which of the two it is about.
    doubtful: HashSet<String>,
    /// Its connections, as it was told.
    connections: Vec<String>,
    pub(super) is_closed: bool,
}

struct ExtensionEnd {
    socket: SocketId,
    asked: Vec<Value>,
    is_closed: bool,
}

impl World {
    pub(super) fn new(settings: &RelaySettings) -> World {
        World {
            has_shared_debugger: settings.shared_debugger,
            is_direct: settings.access == RelayAccess::Direct,
            ..World::default()
        }
    }

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

    pub(super) fn play(&mut self, relay: &mut UserRelay, event: Event) {
        match event {
            Event::ClientJoins(client) => {
                let socket = self.socket();
                let new = NewClient {
                    // The last one has no id of its own, so it cannot resume.
                    client_id: (client + 1 < CLIENTS).then(|| format!("client-{client}")),
                    expires_at: i64::MAX,
                    request: Some(Id::number(0)),
                    ..NewClient::default()
                };
                if let Some(old) = self.clients.remove(&client)
                    && client + 1 == CLIENTS
                {
                    relay.socket_closed(old.socket, self.time());
                }
                relay.client_joined(socket, &new, self.time());
                let end = ClientEnd {
                    socket,
                    next_id: 1,
                    open: HashMap::from([(0, vec![String::new()])]),
                    failed: HashSet::new(),
                    doubtful: HashSet::new(),
                    connections: Vec::new(),
                    is_closed: false,
                };
                self.clients.insert(client, end);
            }
            Event::ClientLeaves(client) => {
                if let Some(gone) = self.clients.remove(&client) {
                    relay.socket_closed(gone.socket, self.time());
                }
            }
            Event::ClientSays(client, request) => self.say(relay, client, &request),
            Event::ExtensionJoins(extension) => {
                let socket = self.socket();
                let new = NewExtension {
                    name: Some(format!("Browser {extension}")),
                    client_id: Some(format!("browser-{extension}")),
                    expires_at: i64::MAX,
                    ..NewExtension::default()
                };
                relay.extension_joined(socket, &new, self.time());
                let end = ExtensionEnd {
                    socket,
                    asked: Vec::new(),
                    is_closed: false,
                };
                if let Some(old) = self.extensions.insert(extension, end) {
                    relay.socket_closed(old.socket, self.time());
                }
            }
            Event::ExtensionLeaves(extension) => {
                if let Some(gone) = self.extensions.remove(&extension) {
                    relay.socket_closed(gone.socket, self.time());
                }
            }
            Event::ExtensionAnswers(extension, newest, answer) => {
                self.answer(relay, extension, newest, &answer);
            }
            Event::ExtensionBabbles(extension, what) => {
                let Some(end) = self.extensions.get(&extension) else {
                    return;
                };
                let text = match what % 3 {
                    0 => "nonsense",
                    1 => {
                        r#"{"method":"notifications/tab_info_update","params":{"currentTab":{"id":1}}}"#
                    }
                    _ => r#"{"id":"ext:1","method":"anything"}"#,
                };
                relay.message(end.socket, Message::parse(text), self.time());
            }
            Event::ExtensionForges(extension, forgery) => {
                let Some(id) = self.open_question(forgery.which) else {
                    return;
                };
                let now = self.time();
                let end = self.extensions.get(&extension);
                // What it was asked itself it may answer.
                let is_own = |end: &ExtensionEnd| end.asked.iter().any(|asked| asked["id"] == id);
                if let Some(end) = end.filter(|end| !is_own(end)) {
                    let text = forged_text(&id, forgery.kind);
                    relay.message(end.socket, Message::parse(text), now);
                }
            }
            Event::ClientForges(client, forgery) => {
                if let Some(id) = self.open_question(forgery.which)
                    && let Some(end) = self.clients.get(&client)
                {
                    let text = forged_text(&id, forgery.kind);
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

    /// The id of something that an extension was asked and has not answered.
    fn open_question(&self, which: u8) -> Option<Value> {
        let mut asked: Vec<&Value> = Vec::new();
        for end in self.extensions.values() {
            asked.extend(end.asked.iter().map(|asked| &asked["id"]));
        }
        let which = usize::from(which).checked_rem(asked.len())?;
        Some(asked[which].clone())
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
        let mut text = json!({"id": id, "method": method, "params": params});
        let is_command = params.get("marker").is_some();
        let chosen = (end.next_id as usize).checked_rem(end.connections.len());
        if let Some(connection) = chosen.map(|chosen| end.connections[chosen].clone())
            && is_command
        {
            if end.connections.len() > 1 {
                text["connectionId"] = connection.as_str().into();
            }
            self.senders.insert(marker.clone(), connection);
        }
        if self.is_direct {
            self.senders
                .insert(marker.clone(), format!("client {client}"));
        }
        let text = text.to_string();
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
        // A client that was told that its command failed does not own a tab by it.
        let open = self.clients.values().flat_map(|end| end.open.values());
        let is_awaited = open.flatten().any(|open| marker == open.as_str());
        let has_failed =
            |end: &ClientEnd| marker.as_str().is_some_and(|own| end.failed.contains(own));
        let has_failed = self.clients.values().any(has_failed);
        let is_unclear = marker.is_string() && !is_awaited && !has_failed;
        let sender = marker.as_str().and_then(|marker| self.senders.get(marker));
        let place = (extension, scope_of(id, self.has_shared_debugger));
        let sender = sender.filter(|_| is_awaited).cloned();
        let value = match (asked["method"].as_str().unwrap(), answer) {
            (_, Answer::Error) => json!({"id": id, "error": {"message": "no"}}),
            (_, Answer::Empty) => json!({"id": id}),
            ("createTab", _) => {
                let tab = self.next_tab;
                self.next_tab += 1;
                self.attached.insert(place, tab);
                self.unclear_tabs.extend(is_unclear.then_some(tab));
                self.tab_owners
                    .extend(sender.map(|connection| (tab, connection)));
                json!({"id": id, "result": {"marker": marker, "tab": {"id": tab}}})
            }
            // All tabs are in each browser here, by their number.
            ("getTabs", _) => {
                let tabs: Vec<Value> = (0..self.next_tab).map(|tab| json!({"id": tab})).collect();
                json!({"id": id, "result": {"marker": marker, "tabs": tabs}})
            }
            ("selectTab", _) => {
                let index = asked["params"]["tabIndex"].as_u64().unwrap();
                self.attached.insert(place, index);
                self.unclear_tabs.extend(is_unclear.then_some(index));
                self.tab_owners
                    .extend(sender.map(|connection| (index, connection)));
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
            let sockets = relay.take_sockets_with_output();
            if sockets.is_empty() {
                return;
            }
            for socket in sockets {
                let output = relay.take(socket, 1 << 20, now);
                for end in self.clients.values_mut().filter(|end| end.socket == socket) {
                    end.hear_all(&output);
                }
                let mut extensions = self.extensions.iter_mut();
                if let Some((index, end)) = extensions.find(|(_, end)| end.socket == socket) {
                    for message in &output.messages {
                        let asked: Value = serde_json::from_slice(message.raw()).unwrap();
                        if asked.get("id").is_some() && asked["method"].is_string() {
                            let marker = asked["params"]["marker"].as_str();
                            let sender = marker.and_then(|marker| self.senders.get(marker));
                            let scope = scope_of(&asked["id"], self.has_shared_debugger);
                            let named = asked["params"]["tabId"].as_u64();
                            let attached = self.attached.get(&(*index, scope)).copied();
                            let acted_on = match self.has_shared_debugger {
                                true => attached,
                                false => named.or(attached),
                            };
                            let is_unclear = |tab: u64| self.unclear_tabs.contains(&tab);
                            if let Some(sender) = sender
                                && asked["method"] == "screenshot"
                                && !acted_on.is_some_and(is_unclear)
                            {
                                check_tab(&self.tab_owners, sender, named.or(acted_on), &asked);
                                check_tab(&self.tab_owners, sender, acted_on, &asked);
                            }
                            end.asked.push(asked);
                        }
                    }
                    end.is_closed |= output.close.is_some();
                }
            }
        }
    }
}

/// An answer with the id of somebody else's question. Nobody must ever hear of it.
fn forged_text(id: &Value, kind: ForgedAnswer) -> String {
    let forged = json!({"marker": "forged", "tab": {"id": 0}, "tabs": []});
    match kind {
        ForgedAnswer::Error => json!({"id": id, "error": {"message": "forged"}}),
        ForgedAnswer::Result => json!({"id": id, "result": forged}),
    }
    .to_string()
}

impl ClientEnd {
    fn hear_all(&mut self, output: &SocketOutput) {
        for message in &output.messages {
            self.hear(&serde_json::from_slice(message.raw()).unwrap());
        }
        self.is_closed |= output.close.is_some();
    }

    fn hear(&mut self, message: &Value) {
        assert_ne!(message["error"]["message"], "forged");
        let ended = &message["params"]["connection_id"];
        self.connections.retain(|own| ended != own.as_str());
        if message["result"]["disconnected"] == true {
            self.connections.clear();
        }
        let connected = message["result"]["connection_id"].as_str();
        self.connections.extend(connected.map(str::to_owned));
        let Some(id) = message["id"].as_u64() else {
            return;
        };
        let open = self
            .open
            .get_mut(&id)
            .expect("an answer to something that was asked");
        let marker = message["result"]["marker"].as_str();
        let is_doubtful = marker.is_some_and(|marker| self.doubtful.remove(marker));
        let at = match marker {
            // The error was about the other command with the same id.
            Some(marker) if is_doubtful => {
                self.failed.remove(marker);
                self.failed.extend(open.first().cloned());
                open.len().checked_sub(1).map(|_| 0)
            }
            Some(marker) => open.iter().position(|open| open == marker),
            None => open.len().checked_sub(1),
        };
        let at = at.unwrap_or_else(|| panic!("not what was asked: {message}, open {open:?}"));
        let marker = open.remove(at);
        if message.get("error").is_some() {
            if !open.is_empty() {
                self.doubtful.insert(marker.clone());
            }
            self.failed.insert(marker);
        }
        if open.is_empty() {
            self.open.remove(&id);
        }
    }
}

/// For whom an extension keeps an attached tab: extensions tell their clients apart by what stands before the colon of an id,
/// unless they have one tab for all.
fn scope_of(id: &Value, has_shared_debugger: bool) -> String {
    let text = id.as_str().filter(|_| !has_shared_debugger);
    let scope = text.and_then(|text| text.split_once(':'));
    scope.map_or("", |(connection, _)| connection).to_owned()
}

/// The tab that a command works on was opened or selected by its own connection.
fn check_tab(owners: &HashMap<u64, String>, sender: &String, tab: Option<u64>, asked: &Value) {
    let owner = tab.and_then(|tab| owners.get(&tab));
    assert_eq!(owner, Some(sender), "{asked}");
}
