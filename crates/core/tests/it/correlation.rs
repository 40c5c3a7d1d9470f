//! Which answer belongs to which request.

use std::time::{Duration, SystemTime};

use mcp_proxy_core::{Correlation, Correlator, Observation};
use mcp_proxy_session::MessageId;
use mcp_proxy_wire::{Direction, ExchangeId, Message};

fn seen(direction: Direction, exchange: u64, sequence: u64) -> Observation {
    Observation {
        direction,
        stream: ExchangeId(exchange).into(),
        sequence,
        message: MessageId::new(SystemTime::UNIX_EPOCH, 7, sequence),
        at: Duration::from_millis(sequence),
        parent: None,
    }
}

struct CorrelationTalk {
    table: Correlator,
    sequence: u64,
}

impl CorrelationTalk {
    fn new() -> CorrelationTalk {
        CorrelationTalk {
            table: Correlator::default(),
            sequence: 0,
        }
    }

    fn up(&mut self, exchange: u64, text: &str) -> Option<Correlation> {
        self.sequence += 1;
        let message = Message::parse(text.to_owned());
        self.table.observe(
            seen(Direction::ClientToServer, exchange, self.sequence),
            &message,
        )
    }

    fn down(&mut self, exchange: u64, text: &str) -> Option<Correlation> {
        self.sequence += 1;
        let message = Message::parse(text.to_owned());
        self.table.observe(
            seen(Direction::ServerToClient, exchange, self.sequence),
            &message,
        )
    }
}

#[test]
fn ids_belong_to_their_sender_and_their_type() {
    let mut talk = CorrelationTalk::new();
    talk.up(0, r#"{"id":1,"method":"a"}"#);
    talk.up(0, r#"{"id":"1","method":"b"}"#);
    talk.up(0, r#"{"id":1.0,"method":"c"}"#);
    talk.down(0, r#"{"id":1,"method":"sampling/createMessage"}"#);
    assert_eq!(
        talk.down(0, r#"{"id":"1","result":{}}"#)
            .unwrap()
            .request
            .sequence,
        2
    );
    assert_eq!(
        talk.down(0, r#"{"id":1.0,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        3
    );
    assert_eq!(
        talk.down(0, r#"{"id":1,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        1
    );
    assert_eq!(
        talk.up(0, r#"{"id":1,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        4
    );
    assert!(talk.down(0, r#"{"id":99,"result":{}}"#).is_none());
}

#[test]
fn late_and_duplicate_answers_are_told_apart() {
    let mut talk = CorrelationTalk::new();
    talk.up(0, r#"{"id":1,"method":"a"}"#);
    talk.up(
        0,
        r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    let late = talk.down(0, r#"{"id":1,"result":{}}"#).unwrap();
    assert!(late.late && !late.duplicate);
    let again = talk.down(0, r#"{"id":1,"result":{}}"#).unwrap();
    assert!(again.duplicate && !again.late);
    assert_eq!(again.request.sequence, 1);
}

#[test]
fn sessionless_clients_may_use_the_same_id_at_once() {
    let mut talk = CorrelationTalk::new();
    talk.up(10, r#"{"id":1,"method":"a"}"#);
    talk.up(11, r#"{"id":1,"method":"b"}"#);
    assert_eq!(
        talk.down(11, r#"{"id":1,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        2
    );
    assert_eq!(
        talk.down(10, r#"{"id":1,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        1
    );
}

#[test]
fn a_reused_id_answers_its_newest_open_request() {
    let mut talk = CorrelationTalk::new();
    talk.up(0, r#"{"id":1,"method":"a"}"#);
    talk.down(0, r#"{"id":1,"result":{}}"#);
    talk.up(0, r#"{"id":1,"method":"b"}"#);
    assert_eq!(
        talk.down(0, r#"{"id":1,"result":{}}"#)
            .unwrap()
            .request
            .sequence,
        3
    );
}

#[test]
fn memory_stays_bounded() {
    let mut talk = CorrelationTalk::new();
    for id in 0..17_000 {
        talk.up(0, &format!(r#"{{"id":{id},"method":"a"}}"#));
    }
    assert!(talk.table.open_requests(Direction::ClientToServer).len() <= 16_384);
    assert!(talk.down(0, r#"{"id":16999,"result":{}}"#).is_some());
    assert!(talk.down(0, r#"{"id":5,"result":{}}"#).is_none());
}

#[test]
fn the_time_that_a_request_is_held_is_not_its_servers_time() {
    let mut talk = CorrelationTalk::new();
    talk.up(0, r#"{"id":1,"method":"a"}"#);
    let millis = Duration::from_millis;
    let id = Message::parse(r#"{"id":1}"#).id().unwrap();
    // Another request under the same id is another request.
    talk.table
        .note_released(Direction::ClientToServer, &id, 99, millis(3));
    talk.table
        .note_released(Direction::ClientToServer, &id, 1, millis(31));
    let answer = talk.down(0, r#"{"id":1,"result":{}}"#).unwrap();
    assert_eq!(answer.request.held, millis(30));
    assert_eq!(answer.request.latency(millis(36)), millis(5));
}

/// SDK servers answer what they cannot read, or refuse, with a null id.
#[test]
fn an_error_without_an_id_answers_the_only_request_of_its_exchange() {
    let mut talk = CorrelationTalk::new();
    talk.up(1, r#"{"id":1,"method":"a"}"#);
    talk.up(2, r#"{"id":2,"method":"b"}"#);
    talk.up(3, r#"{"id":3,"method":"c"}"#);
    talk.up(3, r#"{"id":4,"method":"d"}"#);
    let refusal = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}"#;
    let answered = talk.down(2, refusal).unwrap();
    assert_eq!((answered.request.sequence, answered.late), (2, false));
    assert!(talk.down(2, refusal).is_none(), "it is answered");
    assert!(talk.down(3, refusal).is_none(), "two are open");
    let named = talk.down(1, r#"{"id":1,"result":{}}"#).unwrap();
    assert_eq!((named.request.sequence, named.duplicate), (1, false));
}

#[test]
fn a_flood_of_requests_without_answers_costs_little_and_the_newest_are_known() {
    let mut talk = CorrelationTalk::new();
    // Looking at all open requests for each of these would take minutes.
    for id in 1..=200_000 {
        talk.up(0, &format!(r#"{{"id":{id},"method":"a"}}"#));
    }
    let answered = talk.down(0, r#"{"id":200000,"result":{}}"#);
    assert_eq!(answered.unwrap().request.sequence, 200_000);
    let answered = talk.down(0, r#"{"id":185000,"result":{}}"#);
    assert_eq!(answered.unwrap().request.sequence, 185_000);
    assert!(talk.down(0, r#"{"id":1,"result":{}}"#).is_none());
    // The same under one id.
    for _ in 0..50_000 {
        talk.up(0, r#"{"id":"x","method":"a"}"#);
    }
    assert!(talk.down(0, r#"{"id":"x","result":{}}"#).is_some());
}
