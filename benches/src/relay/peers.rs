//! Clients and extensions of the relay, and what they say.

use anyhow::{Context, Result};
use memchr::memmem;

use super::frames;
use super::socket::{PeerSocket, SocketTarget};

/// Bytes of a command and of an answer, about; a message of the bare echo is as long as the two on average.
const COMMAND_BYTES: usize = 200;
const ANSWER_BYTES: usize = 1000;
const ECHO_BYTES: usize = 600;

const ANSWER_START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// One user of a relay.
#[derive(Clone)]
pub struct BenchUser {
    pub token: String,
    /// Names its client and its extension.
    pub name: String,
}

/// What clients and extensions say in a load.
pub enum Dialogue {
    /// Commands to an extension and their answers.
    Relay {
        command_end: Vec<u8>,
        answer_end: Vec<u8>,
    },
    /// The same message to and from the bare echo.
    Echo { text: Vec<u8> },
}

/// What a message to a client is.
pub enum Heard {
    Answer,
    Refusal(String),
    Notice,
}

impl Dialogue {
    pub fn with_relay() -> Dialogue {
        let mut command_end = br#","method":"forwardCDPCommand","params":{"method":"Runtime.evaluate","params":{"returnByValue":true,"expression":""#.to_vec();
        pad(&mut command_end, COMMAND_BYTES, br#""}}}"#);
        let mut answer_end =
            br#","result":{"tab":{"id":1},"currentTab":{"id":1,"title":"A page","url":"https://a.test/"},"result":{"type":"string","value":""#
                .to_vec();
        pad(&mut answer_end, ANSWER_BYTES, br#""}}}"#);
        Dialogue::Relay {
            command_end,
            answer_end,
        }
    }

    pub fn with_echo() -> Dialogue {
        let mut text = ANSWER_START.to_vec();
        pad(&mut text, ECHO_BYTES, b"}");
        Dialogue::Echo { text }
    }

    /// Appends the request of this number.
    pub fn push_request(&self, number: u64, out: &mut Vec<u8>) {
        match self {
            Dialogue::Relay { command_end, .. } => {
                let number = number.to_string();
                frames::push_text(out, &[ANSWER_START, number.as_bytes(), command_end]);
            }
            Dialogue::Echo { text } => frames::push_text(out, &[text]),
        }
    }

    /// Appends an extension's answer to a command. Notices have none.
    pub fn push_answer(&self, command: &[u8], out: &mut Vec<u8>) {
        let Dialogue::Relay { answer_end, .. } = self else {
            return;
        };
        if let Some(id) = command_id(command) {
            frames::push_text(out, &[ANSWER_START, id, answer_end]);
        }
    }

    pub fn heard(&self, text: &[u8]) -> Heard {
        if matches!(self, Dialogue::Echo { .. }) {
            return Heard::Answer;
        }
        if !text.starts_with(ANSWER_START) {
            return Heard::Notice;
        }
        let start = &text[..text.len().min(64)];
        match memmem::find(start, br#""result""#) {
            Some(_) => Heard::Answer,
            None => Heard::Refusal(String::from_utf8_lossy(text).into_owned()),
        }
    }

    /// Messages that cross for one request.
    pub fn messages(&self) -> u64 {
        match self {
            Dialogue::Relay { .. } => 2,
            Dialogue::Echo { .. } => 1,
        }
    }
}

/// The id of a command as it stands there, with its quotes.
pub fn command_id(command: &[u8]) -> Option<&[u8]> {
    let start = memmem::find(command, br#""id":""#)? + br#""id":"#.len();
    let length = memchr::memchr(b'"', &command[start + 1..])?;
    Some(&command[start..start + length + 2])
}

fn pad(text: &mut Vec<u8>, to: usize, end: &[u8]) {
    let length = to.saturating_sub(end.len()).max(text.len());
    text.resize(length, b'x');
    text.extend_from_slice(end);
}

/// An extension that was let in.
pub async fn join_extension(mut socket: PeerSocket, user: &BenchUser) -> Result<PeerSocket> {
    let asked = socket.hear("authenticate").await?;
    let id = command_id(asked.as_bytes()).context("a question without an id")?;
    let id = String::from_utf8_lossy(id);
    let BenchUser { token, name } = user;
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"name":"Chrome","access_token":"{token}","client_id":"{name}"}}}}"#
    );
    socket.say(&answer).await?;
    socket.hear(r#""authenticated""#).await?;
    Ok(socket)
}

/// A client that was let in and is connected to the extension of its user.
pub async fn join_client(target: &SocketTarget, user: &BenchUser) -> Result<PeerSocket> {
    let mut socket = PeerSocket::open(target, "/mcp").await?;
    let BenchUser { token, name } = user;
    let requests = [
        (
            "mcp_handshake",
            format!(r#""access_token":"{token}","client_id":"{name}""#),
        ),
        ("connect", format!(r#""extension_id":"ext-{name}""#)),
    ];
    for (method, params) in requests {
        ask(&mut socket, method, &params).await?;
    }
    Ok(socket)
}

/// Opens a tab: without one, a client's commands are refused.
pub async fn open_tab(socket: &mut PeerSocket) -> Result<()> {
    ask(socket, "createTab", r#""url":"https://a.test/""#).await
}

async fn ask(socket: &mut PeerSocket, method: &str, params: &str) -> Result<()> {
    let request =
        format!(r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}","params":{{{params}}}}}"#);
    socket.say(&request).await?;
    let answer = socket.hear(&format!(r#""id":"{method}""#)).await?;
    match answer.contains(r#""error""#) {
        true => anyhow::bail!("{method} was answered {answer}"),
        false => Ok(()),
    }
}
