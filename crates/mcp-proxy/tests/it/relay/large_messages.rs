//! Large messages between real sockets.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::{Peer, TestRelay};

/// The base64 of a large screenshot.
const SCREENSHOT: usize = 16_000_000;
/// What Chromium puts into a frame.
const FRAGMENT: usize = 131_000;

impl Peer {
    /// Says the parts of one message, in frames like Chromium's.
    fn say_fragments<'a>(&mut self, fragments: impl Iterator<Item = (&'a [u8], Data, bool)>) {
        for (bytes, kind, is_last) in fragments {
            let frame = Frame::message(bytes.to_vec(), OpCode::Data(kind), is_last);
            self.socket.send(Message::Frame(frame)).unwrap();
        }
    }

    /// The text of the next answer, as it came.
    fn hear_text(&mut self) -> String {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) if text.contains("\"method\"") => {}
                Message::Text(text) => return text.to_string(),
                Message::Ping(_) => {}
                other => panic!("heard {other:?}"),
            }
        }
    }
}

fn fragments(text: &str) -> impl Iterator<Item = (&[u8], Data, bool)> {
    let last = text.len().div_ceil(FRAGMENT) - 1;
    let fragments = text.as_bytes().chunks(FRAGMENT).enumerate();
    fragments.map(move |(place, bytes)| {
        let kind = match place {
            0 => Data::Text,
            _ => Data::Continue,
        };
        (bytes, kind, place == last)
    })
}

/// An answer as extension 1.5.0 writes it: the current tab last.
fn answer(id: &str, length: usize, tab: &str) -> String {
    let data: String = "iVBORw0KGgo+/Aa1".chars().cycle().take(length).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"data":"{data}","mimeType":"image/png","currentTab":{tab}}}}}"#
    )
}

/// A client that is connected to an extension and has the tab 7.
fn client_with_tab(relay: &TestRelay, extension: &mut Peer, name: &str) -> Peer {
    let mut client = relay.client("ada", name);
    client.connect(2, "ext-c");
    client.say(&json!({"id": "tab", "method": "createTab"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tab": {"id": 7, "title": "own"}}}));
    client.hear_answer(&json!("tab"));
    client
}

/// Sends a command, and returns the id that the extension knows it by.
fn ask(client: &mut Peer, extension: &mut Peer, id: u64) -> String {
    client.say(&json!({"id": id, "method": "screenshot"}));
    extension.hear_command()["id"].to_string()
}

#[test]
fn a_large_screenshot_crosses_and_others_are_served_meanwhile() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = client_with_tab(&relay, &mut extension, "laptop");
    let mut other_extension = relay.extension("ada", "other");
    let mut other_client = relay.client("ada", "desktop");
    other_client.connect(2, "ext-other");
    let own = r#"{"id":7,"title":"own"}"#;
    let foreign = r#"{"id":99,"title":"of somebody else"}"#;

    let id = ask(&mut client, &mut extension, 4);
    let reading = std::thread::spawn(move || client.hear_text());
    let text = answer(&id, SCREENSHOT, foreign);
    let mut fragments = fragments(&text);
    extension.say_fragments(fragments.by_ref().take(300));
    other_client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = other_extension.hear_command();
    other_extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    other_client.hear_answer(&json!(3));
    extension.say_fragments(fragments);
    let heard = reading.join().unwrap();
    let expected = answer("4", SCREENSHOT, own);
    assert!(heard == expected, "{} bytes", heard.len());
}

#[test]
fn an_answer_that_is_too_large_does_not_cost_the_extension_its_socket() {
    let relay = TestRelay::start(&["--no-record", "--max-message", "1M"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = client_with_tab(&relay, &mut extension, "laptop");
    let id = ask(&mut client, &mut extension, 3);
    extension.say_fragments(fragments(&answer(&id, 2_000_000, "null")));
    let refused = client.hear_answer(&json!(3));
    assert_eq!(refused["error"]["code"], -32007, "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "too_large");
    let id = ask(&mut client, &mut extension, 4);
    extension.say_text(&answer(&id, 500_000, "null"));
    assert!(client.hear_text() == answer("4", 500_000, "null"));
}

#[test]
fn a_client_that_reads_nothing_is_cut_with_1013_and_the_next_one_is_served() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = client_with_tab(&relay, &mut extension, "laptop");
    let mut other = relay.client("ada", "desktop");
    other.connect(2, "ext-c");
    let id = ask(&mut client, &mut extension, 3);
    other.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_method("getTabs");
    let sending = std::thread::spawn(move || {
        // More than the buffers of both sockets take.
        let text = answer(&id, 24_000_000, "null");
        extension.say_fragments(fragments(&text));
        extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
        extension
    });
    relay.until_counted("slow_readers", 1);
    assert_eq!(u16::from(client.hear_close().code), 1013);
    other.hear_answer(&json!(3));
    drop(sending.join().unwrap());
    assert_eq!(relay.health()["slow_readers"], 1);
}

#[test]
fn an_extension_that_reads_nothing_is_cut_with_1013() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = client_with_tab(&relay, &mut extension, "laptop");
    let script = "x".repeat(10 << 20);
    for id in 3..6 {
        client.say(&json!({"id": id, "method": "evaluate", "params": {"script": script}}));
    }
    relay.until_counted("slow_readers", 1);
    assert_eq!(u16::from(extension.hear_close().code), 1013);
    let failed = client.hear_answer(&json!(3));
    assert_eq!(failed["error"]["code"], -32004, "{failed}");
}

#[test]
fn a_client_that_leaves_before_its_answer_leaves_the_extension_alone() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = client_with_tab(&relay, &mut extension, "laptop");
    let id = ask(&mut client, &mut extension, 3);
    let text = answer(&id, 20_000_000, "null");
    let mut fragments = fragments(&text);
    extension.say_fragments(fragments.by_ref().take(10));
    drop(client);
    extension.say_fragments(fragments);
    let mut other = relay.client("ada", "desktop");
    other.connect(2, "ext-c");
    other.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_method("getTabs");
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    assert!(other.hear_answer(&json!(3))["result"].is_object());
}
