//! A client of the relay.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::client_with_config;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocket, WebSocketConfig};

/// Longer than the relay is ever silent.
const SILENCE: Duration = Duration::from_secs(60);

pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A client that has shown its token, or needs none.
pub struct RelayClient {
    socket: WebSocket<Box<dyn Stream>>,
    next_id: u64,
}

impl RelayClient {
    pub fn open(url: &str, token: &str, client_id: &str) -> RelayClient {
        RelayClient::open_directly(url).join(token, client_id)
    }

    /// Without a token, as `--direct` lets it in.
    pub fn open_directly(url: &str) -> RelayClient {
        let address = url.strip_prefix("ws://").expect("a URL without TLS");
        RelayClient::on(Box::new(tcp(address)), url)
    }

    /// With TLS, trusting this certificate for `localhost`.
    pub fn open_tls(port: &str, trusted: CertificateDer<'static>, token: &str) -> RelayClient {
        let mut roots = RootCertStore::empty();
        roots.add(trusted).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = StreamOwned::new(tls, tcp(&format!("127.0.0.1:{port}")));
        let client = RelayClient::on(Box::new(stream), &format!("wss://localhost:{port}"));
        client.join(token, "laptop")
    }

    fn on(stream: Box<dyn Stream>, url: &str) -> RelayClient {
        let unlimited = WebSocketConfig::default()
            .max_frame_size(None)
            .max_message_size(None);
        let opened = client_with_config(format!("{url}/mcp"), stream, Some(unlimited));
        let Ok((socket, _)) = opened else {
            panic!("{url} does not speak WebSocket");
        };
        RelayClient { socket, next_id: 1 }
    }

    fn join(mut self, token: &str, client_id: &str) -> RelayClient {
        let params = json!({"access_token": token, "client_id": client_id});
        assert_eq!(self.ask("mcp_handshake", &params)["authenticated"], true);
        self
    }

    /// The result of a command that must succeed.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.say(method, params);
        self.hear(id)
    }

    /// The error of a command that must fail.
    pub fn ask_in_vain(&mut self, method: &str, params: &Value) -> Value {
        let id = self.say(method, params);
        let mut answer = self.hear_answer(id);
        assert!(answer["error"].is_object(), "{answer}");
        answer["error"].take()
    }

    /// Sends a command without waiting for its answer.
    pub fn say(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.socket
            .send(Message::text(message.to_string()))
            .unwrap();
        id
    }

    /// The result of a command that was sent.
    pub fn hear(&mut self, id: u64) -> Value {
        let mut answer = self.hear_answer(id);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }

    pub fn hear_notification(&mut self, method: &str) -> Value {
        loop {
            let heard = self.hear_message();
            if heard["method"] == method {
                return heard;
            }
        }
    }

    /// The close frame, after whatever else comes.
    pub fn hear_close(&mut self) -> CloseFrame {
        loop {
            if let Message::Close(Some(frame)) = self.socket.read().unwrap() {
                return frame;
            }
        }
    }

    fn hear_answer(&mut self, id: u64) -> Value {
        loop {
            let heard = self.hear_message();
            if heard["id"] == id && heard.get("method").is_none() {
                return heard;
            }
        }
    }

    fn hear_message(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

fn tcp(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    stream
}
