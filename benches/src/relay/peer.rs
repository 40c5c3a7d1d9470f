//! A client or an extension of the relay, and what it says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use memchr::memmem;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// The expression that a command has the page evaluate: a command is about 200 bytes then.
const EXPRESSION_BYTES: usize = 80;

/// One user of a relay.
pub(super) struct RelayUser {
    pub token: String,
    /// Names its client and its extension.
    pub name: String,
}

/// One end of a WebSocket to the relay.
pub(super) struct Peer {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    /// An extension that was let in.
    pub async fn join_as_extension(address: SocketAddr, user: &RelayUser) -> Result<Peer> {
        let mut peer = Peer::open(address, "/extension").await?;
        let question = peer.hear("authenticate").await?;
        let id = command_id(&question).context("a question without an id")?;
        let RelayUser { token, name } = user;
        peer.say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"name":"Chrome","access_token":"{token}","client_id":"{name}"}}}}"#
        ))
        .await?;
        peer.hear(r#""authenticated""#).await?;
        Ok(peer)
    }

    /// A client that was let in and is connected to the extension of its user.
    pub async fn join_as_client(address: SocketAddr, user: &RelayUser) -> Result<Peer> {
        let mut peer = Peer::open(address, "/mcp").await?;
        let RelayUser { token, name } = user;
        let identity = format!(r#""access_token":"{token}","client_id":"{name}""#);
        peer.ask("mcp_handshake", &identity).await?;
        let extension = format!(r#""extension_id":"ext-{name}""#);
        peer.ask("connect", &extension).await?;
        Ok(peer)
    }

    /// Opens a tab: without one, a client's commands are refused.
    pub async fn open_tab(&mut self) -> Result<()> {
        self.ask("createTab", r#""url":"https://a.test/""#).await
    }

    /// Answers every command, until the socket ends.
    pub async fn answer_commands(&mut self, bytes: usize) -> Result<()> {
        let value = "x".repeat(bytes);
        loop {
            let command = self.receive().await?;
            // Notices have no id.
            if let Some(id) = command_id(&command) {
                self.say(format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tab":{{"id":1}},"currentTab":{{"id":1,"title":"A page","url":"https://a.test/"}},"result":{{"type":"string","value":"{value}"}}}}}}"#
                ))
                .await?;
            }
        }
    }

    /// Keeps commands in flight, until the socket ends. `answered` gets the latency of each.
    pub async fn send_commands(
        &mut self,
        in_flight: usize,
        mut answered: impl FnMut(Duration),
    ) -> Result<()> {
        let expression = "x".repeat(EXPRESSION_BYTES);
        let mut sent = VecDeque::new();
        let mut number = 0;
        loop {
            while sent.len() < in_flight {
                number += 1;
                sent.push_back(Instant::now());
                self.say(format!(
                    r#"{{"jsonrpc":"2.0","id":{number},"method":"forwardCDPCommand","params":{{"method":"Runtime.evaluate","params":{{"returnByValue":true,"expression":"{expression}"}}}}}}"#
                ))
                .await?;
            }
            let answer = self.receive().await?;
            let start = &answer.as_bytes()[..answer.len().min(128)];
            if memmem::find(start, br#""id":"#).is_none() {
                continue;
            }
            ensure!(
                memmem::find(start, br#""result":"#).is_some(),
                "a command was answered {answer}"
            );
            // Answers of one extension come in the order of its commands.
            if let Some(sent) = sent.pop_front() {
                answered(sent.elapsed());
            }
        }
    }

    async fn open(address: SocketAddr, path: &str) -> Result<Peer> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://localhost:{}{path}", address.port());
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
        Ok(Peer { socket })
    }

    async fn ask(&mut self, method: &str, params: &str) -> Result<()> {
        self.say(format!(
            r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}","params":{{{params}}}}}"#
        ))
        .await?;
        let answer = self.hear(&format!(r#""id":"{method}""#)).await?;
        ensure!(
            !answer.contains(r#""error""#),
            "{method} was answered {answer}"
        );
        Ok(())
    }

    async fn say(&mut self, text: String) -> Result<()> {
        Ok(self.socket.send(Message::text(text)).await?)
    }

    /// Waits for a message with this in it.
    async fn hear(&mut self, wanted: &str) -> Result<Utf8Bytes> {
        loop {
            let text = self.receive().await?;
            if text.contains(wanted) {
                return Ok(text);
            }
        }
    }

    async fn receive(&mut self) -> Result<Utf8Bytes> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(reason))) => bail!("closed: {reason:?}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("the relay has closed"),
            }
        }
    }
}

/// The id of a command as it stands there, with its quotes.
fn command_id(command: &str) -> Option<&str> {
    const KEY: &str = r#""id":"#;
    let rest = &command[command.find(KEY)? + KEY.len()..];
    let length = rest.strip_prefix('"')?.find('"')?;
    rest.get(..length + 2)
}
