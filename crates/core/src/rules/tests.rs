//! Which rules are looked at for a message. The rest is in `tests/it/rules.rs`.

use super::*;
use mcp_proxy_session::{EnvelopeFacts, MessageFlags};
use mcp_proxy_wire::Transport;
use std::fmt::Write as _;
use std::time::SystemTime;

fn facts<'a>(message: &'a Message, direction: Direction, sequence: u64) -> MessageFacts<'a> {
    MessageFacts {
        sequence,
        time: SystemTime::UNIX_EPOCH,
        direction,
        origin: direction.from().into(),
        parent: None,
        transport: Transport::Stdio,
        connection: 1,
        server: None,
        exchange: 0,
        message,
        partial_head: None,
        request: None,
        envelope: EnvelopeFacts::Plain,
        flags: MessageFlags::default(),
    }
}

#[test]
fn a_thousand_rules_for_others_are_not_even_looked_at() {
    let mut text = String::new();
    for number in 0..1000 {
        let head = match number % 3 {
            0 => format!("method = \"method/{number}\""),
            1 => format!("tool = \"tool_{number}\""),
            _ => format!("method = \"method/{number}\"\ntool = \"tool_{number}\""),
        };
        writeln!(text, "[[rule]]\n{head}\nfilter = 'x'\ndrop = true").unwrap();
    }
    let rules = Rules::parse(&text, Path::new(".")).unwrap();
    assert!(rules.to_server.is_empty() && rules.to_client.is_empty());
    let message = Message::parse(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{}}}"#,
    );
    let facts = facts(&message, Direction::ClientToServer, 1);
    assert_eq!(rules.candidates(&facts, 0).count(), 0);
    assert!(rules.judge(&facts).is_none());
    let all = MessageFacts {
        direction: Direction::ServerToClient,
        ..facts
    };
    assert_eq!(rules.candidates(&all, 0).count(), 0);
}

#[test]
fn candidates_come_in_the_order_of_the_file() {
    let text = "[[rule]]\ntool = \"a\"\ndelay = \"1s\"\n[[rule]]\ndelay = \"1s\"\n[[rule]]\nmethod = \"tools/call\"\ndelay = \"1s\"\n[[rule]]\ntool = \"a\"\ndelay = \"1s\"";
    let rules = Rules::parse(text, Path::new(".")).unwrap();
    let message = Message::parse(r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#);
    let facts = facts(&message, Direction::ClientToServer, 1);
    assert_eq!(
        rules.candidates(&facts, 0).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(rules.candidates(&facts, 2).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(rules.judge(&facts).unwrap().delay, Duration::from_secs(4));
}
