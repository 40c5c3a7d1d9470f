//! Who gets what under which id, byte for byte.

mod limits;
mod property;
mod server_requests;

use mcp_proxy_core::{Delivery, MultiplexerError, Recipient, RequestMultiplexer};
use mcp_proxy_wire::{Kind, Message};
use serde_json::{Value, json};

type Multiplexer = RequestMultiplexer<&'static str>;

const CANCEL_1: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;

fn message(text: &str) -> Message {
    Message::parse(text.to_owned())
}

fn text(message: &Message) -> String {
    String::from_utf8(message.raw().to_vec()).unwrap()
}

/// Short names for the conversations below: `send` from a client to the server, `receive` from the server.
trait Conversation {
    fn send(&mut self, client: &'static str, message: &str) -> Result<String, MultiplexerError>;
    fn receive(&mut self, message: &str) -> String;
    fn ask(&mut self, client: &'static str, message: &str) -> Result<String, MultiplexerError>;
    fn told_on_close(&mut self, client: &'static str) -> Vec<String>;
}

impl Conversation for Multiplexer {
    fn send(&mut self, client: &'static str, sent: &str) -> Result<String, MultiplexerError> {
        self.to_server(&client, &message(sent))
            .map(|sent| text(&sent))
    }

    fn receive(&mut self, received: &str) -> String {
        let received = message(received);
        let recipient = self.recipient(&received);
        let delivery = self.to_client(&received);
        // Both must agree.
        match (&recipient, &delivery) {
            (Recipient::Client(expected, _), Delivery::To(client, _)) if expected == client => {}
            (Recipient::AnyClient, Delivery::ToAny(_))
            | (Recipient::Everyone, Delivery::Everyone(_))
            | (Recipient::Nobody, Delivery::Nobody) => {}
            other => panic!("{other:?}"),
        }
        match delivery {
            Delivery::To(client, message) => format!("{client}< {}", text(&message)),
            Delivery::ToAny(message) => format!("one< {}", text(&message)),
            Delivery::Everyone(message) => format!("all< {}", text(&message)),
            Delivery::Nobody => "nobody".to_owned(),
        }
    }

    fn ask(&mut self, client: &'static str, asked: &str) -> Result<String, MultiplexerError> {
        self.ask_client(&client, &message(asked))
            .map(|asked| text(&asked))
    }

    fn told_on_close(&mut self, client: &'static str) -> Vec<String> {
        self.close(&client).iter().map(text).collect()
    }
}

#[test]
fn equal_ids_of_several_clients_and_of_one_are_told_apart() {
    let mut multiplexer = Multiplexer::default();
    let sent = [
        ("ann", "1", r#"{"id":1,"method":"m"}"#),
        ("ben", "1", r#"{"id":2,"method":"m"}"#),
        ("ann", "1.0", r#"{"id":3,"method":"m"}"#),
        ("ann", r#""1""#, r#"{"id":4,"method":"m"}"#),
        ("ben", r#""\u0031""#, r#"{"id":5,"method":"m"}"#),
        ("ben", "null", r#"{"id":6,"method":"m"}"#),
        (
            "ann",
            "100000000000000000000000000001",
            r#"{"id":7,"method":"m"}"#,
        ),
        ("ben", r#"{"odd":[1]}"#, r#"{"id":8,"method":"m"}"#),
    ];
    for (client, id, expected) in sent {
        let request = format!(r#"{{"id":{id},"method":"m"}}"#);
        assert_eq!(multiplexer.send(client, &request).unwrap(), expected);
    }
    assert_eq!(multiplexer.open_count(), sent.len());
    for (place, (client, id, _)) in sent.iter().enumerate().rev() {
        let number = place + 1;
        assert_eq!(
            multiplexer.receive(&format!(r#"{{"id":{number},"result":{{}}}}"#)),
            format!(r#"{client}< {{"id":{id},"result":{{}}}}"#)
        );
    }
    assert_eq!(multiplexer.open_count(), 0);
    assert!(!multiplexer.is_open(&"ann") && !multiplexer.is_open(&"ben"));
}

#[test]
fn only_the_ids_change() {
    let mut multiplexer = Multiplexer::default();
    let request = " {\"params\" : {\"_meta\":{ \"progressToken\" :\t\"t\\u00e9\" , \"x\":1e2}, \"a\" :[ 1.50 ]},\"method\":\"tools\\/call\" , \"id\": \"x\\n\" ,\"jsonrpc\":\"2.0\"}  ";
    assert_eq!(
        multiplexer.send("ann", request).unwrap(),
        " {\"params\" : {\"_meta\":{ \"progressToken\" :\t1 , \"x\":1e2}, \"a\" :[ 1.50 ]},\"method\":\"tools\\/call\" , \"id\": 1 ,\"jsonrpc\":\"2.0\"}  "
    );
    assert_eq!(
        multiplexer.receive("{ \"params\":{ \"progress\" : 0.10, \"progressToken\" : 1 },\"method\":\"notifications\\/progress\"} "),
        "ann< { \"params\":{ \"progress\" : 0.10, \"progressToken\" : \"t\\u00e9\" },\"method\":\"notifications\\/progress\"} "
    );
    assert_eq!(
        multiplexer
            .receive("{ \"error\" :{\"code\":-1,\"message\":\"\\ud83d\\ude00\"} , \"id\" : 1 } "),
        "ann< { \"error\" :{\"code\":-1,\"message\":\"\\ud83d\\ude00\"} , \"id\" : \"x\\n\" } "
    );
}

#[test]
fn the_second_answer_and_one_to_an_unknown_id_are_nobodys() {
    let mut multiplexer = Multiplexer::default();
    multiplexer.send("ann", r#"{"id":7,"method":"m"}"#).unwrap();
    assert_eq!(
        multiplexer.receive(r#"{"id":1,"result":1}"#),
        r#"ann< {"id":7,"result":1}"#
    );
    for answer in [
        r#"{"id":1,"result":1}"#,
        r#"{"id":7,"result":1}"#,
        r#"{"id":null,"error":{}}"#,
        r#"{"id":1.0,"result":1}"#,
        r#"{"result":1}"#,
        r#"[{"id":1,"result":1}]"#,
        "{",
        "17",
    ] {
        assert_eq!(multiplexer.receive(answer), "nobody", "{answer}");
    }
}

#[test]
fn an_id_that_comes_back_as_a_string_is_recognised() {
    let mut multiplexer = Multiplexer::default();
    multiplexer.send("ann", r#"{"id":7,"method":"m"}"#).unwrap();
    assert_eq!(
        multiplexer.receive(r#"{"id":"1","result":1}"#),
        r#"ann< {"id":7,"result":1}"#
    );
}

#[test]
fn subscriptions_are_known_by_the_clients_id() {
    let mut multiplexer = Multiplexer::default();
    let listen = r#"{"id":"L","method":"subscriptions/listen"}"#;
    multiplexer.send("ann", listen).unwrap();
    multiplexer.send("ben", listen).unwrap();
    let tagged = |method: &str, id: &str| {
        format!(
            r#"{{"method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
    };
    let updated = "notifications/resources/updated";
    let expected = tagged(updated, r#""L""#);
    assert_eq!(
        multiplexer.receive(&tagged(updated, "2")),
        format!("ben< {expected}")
    );
    assert_eq!(
        multiplexer.receive(&tagged(updated, r#""1""#)),
        format!("ann< {expected}")
    );
    assert_eq!(multiplexer.receive(&tagged(updated, "3")), "nobody");
    let result = r#"{"id":2,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#;
    assert_eq!(
        multiplexer.receive(result),
        r#"ben< {"id":"L","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}"#
    );
    assert_eq!(multiplexer.receive(&tagged(updated, "2")), "nobody");
}

#[test]
fn a_server_ends_a_subscription_with_a_cancel() {
    let mut multiplexer = Multiplexer::default();
    let listen = r#"{"id":"L","method":"subscriptions/listen"}"#;
    multiplexer.send("ann", listen).unwrap();
    let both = r#"{"method":"notifications/cancelled","params":{"requestId":1,"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#;
    assert_eq!(
        multiplexer.receive(both),
        r#"ann< {"method":"notifications/cancelled","params":{"requestId":"L","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}"#
    );
    assert!(!multiplexer.is_open(&"ann"));
    assert_eq!(multiplexer.receive(both), "nobody");
}

#[test]
fn a_notification_that_names_two_requests_is_nobodys() {
    let mut multiplexer = Multiplexer::default();
    multiplexer.send("ann", r#"{"id":1,"method":"m"}"#).unwrap();
    multiplexer.send("ben", r#"{"id":1,"method":"m"}"#).unwrap();
    let two = r#"{"method":"n","params":{"progressToken":1,"requestId":2}}"#;
    assert_eq!(multiplexer.receive(two), "nobody");
}

/// Otherwise a server could report progress on a request that another client has under that very token.
#[test]
fn progress_under_a_foreign_token_is_nobodys() {
    let mut multiplexer = Multiplexer::default();
    let request = r#"{"id":1,"method":"m","params":{"_meta":{"progressToken":"t"}}}"#;
    multiplexer.send("ann", request).unwrap();
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"t"}}"#;
    assert_eq!(multiplexer.receive(progress), "nobody");
}

#[test]
fn notifications_without_a_request_are_for_everyone() {
    let mut multiplexer = Multiplexer::default();
    let notifications = [
        r#"{"method":"notifications/tools/list_changed"}"#,
        r#"{"method":"notifications/resources/updated","params":{"uri":"file:///1"}}"#,
        r#"{"method":"notifications/message","params":{"level":"info","data":{"requestId":1}}}"#,
    ];
    for notification in notifications {
        assert_eq!(
            multiplexer.receive(notification),
            format!("all< {notification}")
        );
    }
    assert_eq!(multiplexer.oldest_open(), None);
}

#[test]
fn the_oldest_open_request_is_one_that_asked_for_logs() {
    let mut multiplexer = Multiplexer::default();
    let plain = r#"{"id":1,"method":"m"}"#;
    let logs =
        r#"{"id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}}"#;
    multiplexer.send("ann", plain).unwrap();
    multiplexer.send("ben", plain).unwrap();
    assert_eq!(multiplexer.oldest_open(), Some("ann"));
    multiplexer.send("cid", logs).unwrap();
    multiplexer.send("dot", logs).unwrap();
    assert_eq!(multiplexer.oldest_open(), Some("cid"));
    multiplexer.receive(r#"{"id":3,"result":{}}"#);
    assert_eq!(multiplexer.oldest_open(), Some("dot"));
    multiplexer.told_on_close("dot");
    multiplexer.told_on_close("ann");
    assert_eq!(multiplexer.oldest_open(), Some("ben"));
}

#[test]
fn a_cancel_reaches_the_request_of_its_sender() {
    let mut multiplexer = Multiplexer::default();
    for client in ["ann", "ben"] {
        multiplexer
            .send(client, r#"{"id":1,"method":"m"}"#)
            .unwrap();
    }
    multiplexer
        .send("ann", r#"{"id":"1","method":"m"}"#)
        .unwrap();
    assert_eq!(
        multiplexer.send("ben", CANCEL_1).unwrap(),
        r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#
    );
    let escaped = r#"{"method":"notifications/cancelled","params":{"requestId":"\u0031"}}"#;
    assert_eq!(
        multiplexer.send("ann", escaped).unwrap(),
        r#"{"method":"notifications/cancelled","params":{"requestId":3}}"#
    );
    let unknown = Err(MultiplexerError::UnknownRequest);
    assert_eq!(multiplexer.send("ben", escaped), unknown);
    assert_eq!(multiplexer.send("cid", CANCEL_1), unknown);
    // The number that the server knows a request by says nothing on the client's side.
    let by_number = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(multiplexer.send("ann", by_number), unknown);
}

#[test]
fn a_late_answer_to_a_cancelled_request_still_has_an_owner() {
    let mut multiplexer = Multiplexer::default();
    multiplexer.send("ann", r#"{"id":1,"method":"m"}"#).unwrap();
    multiplexer.send("ann", CANCEL_1).unwrap();
    assert!(multiplexer.is_open(&"ann"));
    assert_eq!(
        multiplexer.receive(r#"{"id":1,"result":{}}"#),
        r#"ann< {"id":1,"result":{}}"#
    );
    assert!(!multiplexer.is_open(&"ann"));
}

#[test]
fn an_id_used_twice_at_once_is_cancelled_one_by_one() {
    let mut multiplexer = Multiplexer::default();
    multiplexer.send("ann", r#"{"id":1,"method":"m"}"#).unwrap();
    multiplexer.send("ann", r#"{"id":1,"method":"m"}"#).unwrap();
    for number in [1, 2, 1] {
        let expected =
            format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{number}}}}}"#);
        assert_eq!(multiplexer.send("ann", CANCEL_1).unwrap(), expected);
    }
    for number in [1, 2] {
        assert_eq!(
            multiplexer.receive(&format!(r#"{{"id":{number},"result":{{}}}}"#)),
            r#"ann< {"id":1,"result":{}}"#
        );
    }
}

#[test]
fn a_cancel_from_an_unknown_client_means_the_only_request_under_its_id() {
    let mut multiplexer = Multiplexer::default();
    let cancel = message(CANCEL_1);
    let unknown = MultiplexerError::UnknownRequest;
    assert_eq!(multiplexer.cancel_any(&cancel).unwrap_err(), unknown);
    multiplexer.send("cid", r#"{"id":2,"method":"m"}"#).unwrap();
    multiplexer.send("ann", r#"{"id":1,"method":"m"}"#).unwrap();
    assert_eq!(
        text(&multiplexer.cancel_any(&cancel).unwrap()),
        r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#
    );
    multiplexer.send("ben", r#"{"id":1,"method":"m"}"#).unwrap();
    assert_eq!(multiplexer.cancel_any(&cancel).unwrap_err(), unknown);
    // A client that has closed its stream also sends the cancel: the first one is about its own request.
    multiplexer.told_on_close("ben");
    assert_eq!(multiplexer.cancel_any(&cancel).unwrap_err(), unknown);
    assert!(multiplexer.cancel_any(&cancel).is_ok());
    let other = message(r#"{"method":"notifications/roots/list_changed"}"#);
    assert_eq!(text(&multiplexer.cancel_any(&other).unwrap()), text(&other));
}

#[test]
fn a_closed_client_is_forgotten_and_the_server_told() {
    let mut multiplexer = Multiplexer::default();
    for id in ["1", "2", "3"] {
        let request = format!(r#"{{"id":{id},"method":"m"}}"#);
        multiplexer.send("ann", &request).unwrap();
        multiplexer.send("ben", &request).unwrap();
    }
    multiplexer.receive(r#"{"id":3,"result":{}}"#);
    multiplexer.send("ann", CANCEL_1).unwrap();
    multiplexer
        .ask("ann", r#"{"id":"s","method":"roots/list"}"#)
        .unwrap();
    let told = multiplexer.told_on_close("ann");
    let told: Vec<Value> = told
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let [cancelled, refused] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], 5);
    let code = &refused["error"]["code"];
    assert_eq!((&refused["id"], code), (&json!("s"), &json!(-31004)));
    assert!(multiplexer.told_on_close("ann").is_empty());
    assert!(!multiplexer.is_open(&"ann"));
    assert_eq!(multiplexer.open_count(), 3);
    assert_eq!(multiplexer.receive(r#"{"id":5,"result":{}}"#), "nobody");
    assert_eq!(
        multiplexer.receive(r#"{"id":4,"result":{}}"#),
        r#"ben< {"id":2,"result":{}}"#
    );
    assert!(multiplexer.send("ann", r#"{"id":1,"result":{}}"#).is_err());
}

#[test]
fn what_is_not_one_message_is_refused() {
    let mut multiplexer = Multiplexer::default();
    for (sent, kind) in [
        (r#"[{"id":1,"method":"m"}]"#, Kind::Batch),
        ("{}", Kind::Other),
        (r#"{"id":1,"method":"m""#, Kind::Malformed),
    ] {
        let wrong_kind = Err(MultiplexerError::WrongKind(kind));
        assert_eq!(multiplexer.send("ann", sent), wrong_kind);
        assert_eq!(multiplexer.ask("ann", sent), wrong_kind);
    }
    let notification = r#"{"method":"notifications/roots/list_changed"}"#;
    assert_eq!(multiplexer.send("ann", notification).unwrap(), notification);
    assert_eq!(
        multiplexer.ask("ann", notification),
        Err(MultiplexerError::WrongKind(Kind::Notification))
    );
    assert!(
        multiplexer
            .answer_from_client(&"ann", &message(notification))
            .is_none()
    );
    assert_eq!(multiplexer.open_count(), 0);
}
