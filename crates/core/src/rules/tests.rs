//! Which rules apply to a message. The rest is in `tests/it/rules.rs`.

use super::*;
use mcp_proxy_session::{EnvelopeFacts, MessageFlags};
use mcp_proxy_wire::Transport;
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
fn rules_apply_in_the_order_of_the_file() {
    let text = "[[rule]]\ntool = \"a\"\ndelay = \"1s\"\n[[rule]]\ndelay = \"1s\"\n[[rule]]\nmethod = \"tools/call\"\ndelay = \"1s\"\n[[rule]]\ntool = \"b\"\ndelay = \"1s\"";
    let rules = Rules::parse(text, Path::new(".")).unwrap();
    let message = Message::parse(r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#);
    let facts = facts(&message, Direction::ClientToServer, 1);
    let verdict = rules.judge(&facts).unwrap();
    let applied = verdict.applied.iter().map(|applied| applied.rule.number);
    assert_eq!(applied.collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(verdict.delay, Duration::from_secs(3));
}
