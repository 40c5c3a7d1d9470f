//! Conversations with the relay of one user, as text.
//!
//! | line | means |
//! |---|---|
//! | `A+ client alice` | a client whose `client_id` is alice joins as socket A; without a name it gave none |
//! | `E+ extension chrome` | an extension joins as socket E; with `chrome preserve` it asks for the ids of clients |
//! | `E+ silent` | an extension that has said nothing about itself joins, as in direct mode |
//! | `A+ /mcp` | socket A opens at this path, and has to show the token `token-ada` |
//! | `A> {…}` | A says this |
//! | `A< {…}` | A hears a message that has all of this in it |
//! | `A<= {…}` | A hears exactly this |
//! | `A<! 4409` | A is closed with this code |
//! | `A-` | A's socket is gone |
//! | `E\|` | from here on nothing can be written to E |
//! | `E\| 2` | E's writer takes everything from here on, and writes two messages of it |
//! | `@ 31` | 31 seconds later |
//!
//! At the end nobody may have heard anything more. `connection_status` and `status` are skipped unless they are expected.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_proxy_relay::{
    AuthenticationStep, CommandIdMode, Credentials, IdSource, NewClient, NewExtension, RelayAccess,
    RelaySettings, RelayTime, SocketAuthentication, SocketId, SocketOutput, SocketPath, SocketRole,
    TokenRefusal, UserRelay,
};
use mcp_proxy_wire::{Id, Message};
use serde_json::Value;

/// A token that outlives every test.
pub const LATE: i64 = 4_000_000_000;
const START_MS: i64 = 1_760_989_433_163;
/// The one token that is valid at a path.
const TOKEN: &str = "token-ada";

pub struct Conversation {
    pub relay: UserRelay,
    sockets: BTreeMap<String, SocketId>,
    /// Sockets that have not shown their token yet.
    openings: BTreeMap<SocketId, SocketAuthentication>,
    /// Sockets to which nothing can be written.
    stuck: BTreeSet<SocketId>,
    /// How many messages can still be written to a socket whose writer takes all.
    writable: BTreeMap<SocketId, usize>,
    /// How many messages were written.
    written: BTreeMap<SocketId, u64>,
    heard: BTreeMap<SocketId, VecDeque<Heard>>,
    elapsed: Duration,
    line: String,
}

#[derive(Debug)]
enum Heard {
    Message(Value),
    Closed(u16),
}

/// Plays a conversation with the default settings.
pub fn play(transcript: &str) -> Conversation {
    play_with(RelaySettings::default(), transcript)
}

pub fn play_with(settings: RelaySettings, transcript: &str) -> Conversation {
    let mut conversation = Conversation::new(settings);
    conversation.continue_with(transcript);
    conversation
}

impl Conversation {
    pub fn new(settings: RelaySettings) -> Conversation {
        Conversation {
            relay: UserRelay::new("ada", settings, IdSource::Counting(0)),
            sockets: BTreeMap::new(),
            openings: BTreeMap::new(),
            stuck: BTreeSet::new(),
            writable: BTreeMap::new(),
            written: BTreeMap::new(),
            heard: BTreeMap::new(),
            elapsed: Duration::ZERO,
            line: String::new(),
        }
    }

    pub fn now(&self) -> RelayTime {
        RelayTime {
            elapsed: self.elapsed,
            wall_ms: START_MS + i64::try_from(self.elapsed.as_millis()).unwrap(),
        }
    }

    pub fn continue_with(&mut self, transcript: &str) {
        for line in transcript
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            self.line = line.to_owned();
            self.play_line(line);
        }
        self.line = "the end".to_owned();
        self.listen();
        for (name, socket) in self.sockets.clone() {
            if let Some(rest) = self.next_heard(socket, None) {
                panic!("{name} also heard {rest:?}");
            }
        }
    }

    fn play_line(&mut self, line: &str) {
        if let Some(seconds) = line.strip_prefix("@ ") {
            self.elapsed += Duration::from_secs_f64(seconds.parse().unwrap());
            let now = self.now();
            self.relay.tick(now);
            return self.listen();
        }
        let at = line
            .find(['+', '>', '<', '-', '|'])
            .expect("a line of a transcript");
        let (name, rest) = line.split_at(at);
        let (sign, rest) = rest.split_at(1);
        match sign {
            "+" => self.join(name, rest.trim()),
            "-" => {
                let socket = self.sockets.remove(name).unwrap();
                let now = self.now();
                let written = self.written.get(&socket).copied();
                self.relay
                    .messages_begun(socket, written.unwrap_or_default());
                self.relay.socket_closed(socket, now);
            }
            ">" => {
                let message = Message::parse(rest.trim().to_owned());
                self.speak(self.sockets[name], message);
            }
            "|" if !rest.is_empty() => {
                let messages = rest.trim().parse().unwrap();
                self.writable.insert(self.sockets[name], messages);
            }
            "|" => {
                self.stuck.insert(self.sockets[name]);
            }
            _ => self.expect(name, rest.trim()),
        }
        self.listen();
    }

    fn join(&mut self, name: &str, what: &str) {
        let socket = SocketId(self.sockets.len() as u64 + 100 * self.heard.len() as u64 + 1);
        self.sockets.insert(name.to_owned(), socket);
        self.heard.insert(socket, VecDeque::new());
        let path = match what {
            "/mcp" => Some(SocketPath::Client),
            "/extension" => Some(SocketPath::Extension),
            "/" => Some(SocketPath::Any),
            _ => None,
        };
        if let Some(path) = path {
            let opening = SocketAuthentication::new(path, RelayAccess::Tokens);
            let output = SocketOutput {
                messages: opening.first_message().into_iter().collect(),
                ..SocketOutput::default()
            };
            self.openings.insert(socket, opening);
            return self.note(socket, output);
        }
        let mut words = what.split(' ');
        let kind = words.next().unwrap();
        let client_id = words.next().map(str::to_owned);
        let id_mode = words.next().and_then(CommandIdMode::named);
        let now = self.now();
        match kind {
            "client" => {
                let new = NewClient {
                    client_id,
                    expires_at: LATE,
                    request: Some(Id::number(0)),
                    ..NewClient::default()
                };
                self.relay.client_joined(socket, &new, now);
            }
            _ => {
                let new = NewExtension {
                    name: (kind != "silent").then(|| "Chrome 141".to_owned()),
                    client_id,
                    id_mode,
                    expires_at: LATE,
                    ..NewExtension::default()
                };
                self.relay.extension_joined(socket, &new, now);
            }
        }
    }

    /// A socket says something, as a driver would hand it on.
    fn speak(&mut self, socket: SocketId, message: Message) {
        let now = self.now();
        if let Some(opening) = self.openings.get_mut(&socket) {
            match opening.message(&message) {
                AuthenticationStep::Wait(output) => self.note(socket, output),
                AuthenticationStep::Check(credentials) | AuthenticationStep::Begin(credentials) => {
                    self.admit(socket, &credentials)
                }
            }
            return;
        }
        match self.relay.renewal(socket, &message) {
            None => self.relay.message(socket, message, now),
            Some(Err(fault)) => {
                let answer = fault.answer(message.id().as_ref());
                self.relay.send_to_client(socket, answer, now);
            }
            Some(Ok(shown)) if shown.token == TOKEN => {
                self.relay.renewed(socket, &shown, LATE, now);
            }
            Some(Ok(shown)) => {
                let refusal = shown.refusal(TokenRefusal::Invalid("Invalid token"));
                self.relay.refused(socket, &refusal, now);
            }
        }
    }

    fn admit(&mut self, socket: SocketId, shown: &Credentials) {
        self.openings.remove(&socket);
        if shown.token != TOKEN {
            return self.note(
                socket,
                shown.refusal(TokenRefusal::Invalid("Invalid token")),
            );
        }
        let now = self.now();
        match shown.role {
            SocketRole::Client => {
                let new = NewClient::new(shown, LATE);
                self.relay.client_joined(socket, &new, now);
            }
            SocketRole::Extension => {
                let new = NewExtension::new(shown, LATE);
                self.relay.extension_joined(socket, &new, now);
            }
        }
    }

    /// A socket by its name.
    pub fn socket(&self, name: &str) -> SocketId {
        self.sockets[name]
    }

    /// Takes what is to be written, as a driver would.
    pub fn listen(&mut self) {
        let now = self.now();
        loop {
            let sockets = self.relay.take_sockets_with_output();
            if sockets.is_empty() {
                return;
            }
            for socket in sockets {
                if self.stuck.contains(&socket) {
                    continue;
                }
                let mut output = self.relay.take(socket, 1 << 20, now);
                if let Some(writable) = self.writable.get_mut(&socket) {
                    output.messages.truncate(*writable);
                    *writable -= output.messages.len();
                }
                *self.written.entry(socket).or_default() += output.messages.len() as u64;
                self.note(socket, output);
            }
        }
    }

    fn note(&mut self, socket: SocketId, output: SocketOutput) {
        let heard = self.heard.entry(socket).or_default();
        for message in output.messages {
            let value = serde_json::from_slice(message.raw()).expect("the relay writes JSON");
            heard.push_back(Heard::Message(value));
        }
        if let Some(close) = output.close
            && !matches!(heard.back(), Some(Heard::Closed(_)))
        {
            heard.push_back(Heard::Closed(close.code()));
        }
    }

    fn expect(&mut self, name: &str, expected: &str) {
        self.listen();
        let socket = self.sockets[name];
        if let Some(code) = expected.strip_prefix('!') {
            let heard = self.next_heard(socket, None);
            let code: u16 = code.trim().parse().unwrap();
            assert!(
                matches!(heard, Some(Heard::Closed(closed)) if closed == code),
                "{}: heard {heard:?}",
                self.line
            );
            return;
        }
        let (expected, is_exact) = match expected.strip_prefix('=') {
            Some(expected) => (expected.trim(), true),
            None => (expected, false),
        };
        let expected: Value =
            serde_json::from_str(expected).unwrap_or_else(|error| panic!("{}: {error}", self.line));
        match self.next_heard(socket, expected["method"].as_str()) {
            Some(Heard::Message(heard))
                if heard == expected || !is_exact && contains(&heard, &expected) => {}
            heard => panic!("{}\n  heard {heard:?}", self.line),
        }
    }

    /// The next that a socket heard, without notices that are not `wanted`.
    fn next_heard(&mut self, socket: SocketId, wanted: Option<&str>) -> Option<Heard> {
        let heard = self.heard.get_mut(&socket)?;
        loop {
            let next = heard.pop_front()?;
            if let Heard::Message(value) = &next
                && let Some(method) = value["method"].as_str()
                && ["connection_status", "status"].contains(&method)
                && wanted != Some(method)
            {
                continue;
            }
            return Some(next);
        }
    }
}

/// Whether a value has everything in it that another has.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|own| contains(own, value))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole
                    .iter()
                    .zip(part)
                    .all(|(own, value)| contains(own, value))
        }
        (whole, part) => whole == part,
    }
}
