//! Conversations with the relay of one user, as text.
//!
//! | line | means |
//! |---|---|
//! | `A+ client alice` | a client whose `client_id` is alice joins as socket A; without a name it gave none |
//! | `E+ extension chrome` | an extension joins as socket E |
//! | `A> {…}` | A says this |
//! | `E>[ …`, `E>| …`, `E>] …` | E says the first, a further, the last piece of a long message |
//! | `A< {…}` | A hears a message that has all of this in it |
//! | `A<! 4409` | A is closed with this code |
//! | `A-` | A's socket is gone |
//! | `@ 31` | 31 seconds later |
//!
//! A long message is heard when its last piece is.
//!
//! At the end nobody may have heard anything more. `connection_status` and `status` are skipped unless they are expected.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mcp_proxy_relay::{
    AnswerPart, IdSource, MessagePiece, NewClient, NewExtension, PiecePlace, RelaySettings,
    RelayTime, SocketId, UserRelay,
};
use mcp_proxy_wire::{Id, Message};
use serde_json::Value;

/// A token that outlives every test.
pub const LATE: i64 = 4_000_000_000;
const START_MS: i64 = 1_760_989_433_163;

pub struct Conversation {
    pub relay: UserRelay,
    sockets: BTreeMap<String, SocketId>,
    heard: BTreeMap<SocketId, VecDeque<Heard>>,
    /// Long messages that are heard in pieces.
    begun: BTreeMap<SocketId, Vec<u8>>,
    /// Sockets that read nothing.
    pub deaf: Vec<SocketId>,
    /// What was not read because of that.
    missed: Vec<SocketId>,
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
            heard: BTreeMap::new(),
            begun: BTreeMap::new(),
            deaf: Vec::new(),
            missed: Vec::new(),
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
            .find(['+', '>', '<', '-'])
            .expect("a line of a transcript");
        let (name, rest) = line.split_at(at);
        let (sign, rest) = rest.split_at(1);
        match sign {
            "+" => self.join(name, rest.trim()),
            "-" => {
                let socket = self.sockets.remove(name).unwrap();
                let now = self.now();
                self.relay.left(socket, now);
            }
            ">" if rest.starts_with(['[', '|', ']']) => {
                let (sign, text) = rest.split_at(1);
                self.say_piece(name, sign, text.strip_prefix(' ').unwrap_or(text));
            }
            ">" => {
                let (socket, now) = (self.sockets[name], self.now());
                let message = Message::parse(rest.trim().to_owned());
                self.relay.message(socket, message, now);
            }
            _ => self.expect(name, rest.trim()),
        }
        self.listen();
    }

    fn say_piece(&mut self, name: &str, sign: &str, text: &str) {
        let place = match sign {
            "[" => PiecePlace::First { announced: 0 },
            "|" => PiecePlace::Middle,
            _ => PiecePlace::Last,
        };
        self.piece(name, text, place);
    }

    /// Says a piece as a driver would.
    pub fn piece(&mut self, name: &str, text: &str, place: PiecePlace) {
        let (socket, now) = (self.sockets[name], self.now());
        assert!(self.relay.has_room(socket), "{}: no room", self.line);
        let bytes = text.to_owned().into();
        let piece = MessagePiece { bytes, place };
        if let Some(whole) = self.relay.piece(socket, piece, now) {
            self.relay.message(socket, whole, now);
        }
    }

    fn join(&mut self, name: &str, what: &str) {
        let socket = SocketId(self.sockets.len() as u64 + 100 * self.heard.len() as u64 + 1);
        self.sockets.insert(name.to_owned(), socket);
        self.heard.insert(socket, VecDeque::new());
        let (kind, client_id) = what.split_once(' ').unwrap_or((what, ""));
        let client_id = (!client_id.is_empty()).then(|| client_id.to_owned());
        let now = self.now();
        match kind {
            "client" => {
                let new = NewClient {
                    client_id,
                    expires_at: LATE,
                    request: Some(Id::number(0)),
                };
                self.relay.client_joined(socket, &new, now);
            }
            _ => {
                let new = NewExtension {
                    name: Some("Chrome 141".to_owned()),
                    client_id,
                    expires_at: LATE,
                };
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
        let deaf = &self.deaf;
        let mut again: Vec<SocketId> = self
            .missed
            .extract_if(.., |socket| !deaf.contains(socket))
            .collect();
        loop {
            let mut woken = self.relay.woken();
            woken.append(&mut again);
            if woken.is_empty() {
                return;
            }
            for socket in woken {
                if self.deaf.contains(&socket) {
                    self.missed.push(socket);
                    continue;
                }
                let output = self.relay.take(socket, 1 << 20, now);
                if !output.pieces.is_empty() {
                    again.push(socket);
                }
                let heard = self.heard.entry(socket).or_default();
                for message in output.messages {
                    assert!(
                        !self.begun.contains_key(&socket),
                        "a message inside of another"
                    );
                    let value = serde_json::from_slice(&message).expect("the relay writes JSON");
                    heard.push_back(Heard::Message(value));
                }
                for piece in output.pieces {
                    let begun = match piece.part {
                        AnswerPart::First => {
                            assert_eq!(self.begun.insert(socket, Vec::new()), None);
                            self.begun.get_mut(&socket)
                        }
                        _ => self.begun.get_mut(&socket),
                    };
                    begun.expect("a first piece").extend(&piece.bytes);
                    if piece.part == AnswerPart::Last {
                        let message = self.begun.remove(&socket).unwrap();
                        let value =
                            serde_json::from_slice(&message).expect("the relay writes JSON");
                        heard.push_back(Heard::Message(value));
                    }
                }
                if let Some(close) = output.close
                    && !matches!(heard.back(), Some(Heard::Closed(_)))
                {
                    heard.push_back(Heard::Closed(close.code()));
                }
            }
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
        let expected: Value =
            serde_json::from_str(expected).unwrap_or_else(|error| panic!("{}: {error}", self.line));
        match self.next_heard(socket, expected["method"].as_str()) {
            Some(Heard::Message(heard)) if contains(&heard, &expected) => {}
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

/// A client with a connection to an extension and a tab of its own.
pub const CONNECTED: &str = r#"
    E+ extension chrome
    E< {"method":"authenticated"}
    A+ client alice
    A< {"id":0,"result":{"authenticated":true}}
    A> {"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}
    A< {"id":1,"result":{"connection_id":"conn-1"}}
"#;

/// The same, with a tab.
pub const WITH_TAB: &str = r#"
    A> {"id":2,"method":"createTab","params":{"url":"https://a.test"}}
    E< {"id":"conn-1:2","method":"createTab"}
    E> {"id":"conn-1:2","result":{"success":true,"tab":{"id":11,"title":"a"}}}
    A< {"id":2,"result":{"tab":{"id":11}}}
"#;
