//! Any interleaving of clients that use the same ids, checked against a plain list of what is open.

use mcp_proxy_core::{Delivery, MultiplexerError, MultiplexerLimits, RequestMultiplexer};
use mcp_proxy_wire::{Field, Id, Message};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{message, text};

const CLIENTS: u8 = 4;
/// Colliding ids: the third and the fourth are the same string, all others are different.
const IDS: &[&str] = &[
    "1",
    "1.0",
    r#""1""#,
    r#""\u0031""#,
    "2",
    "3",
    "null",
    r#""é""#,
    "1e0",
];
const LIMITS: MultiplexerLimits = MultiplexerLimits {
    open: 12,
    open_per_client: 5,
    asked: 6,
    asked_per_client: 3,
};

#[derive(Clone, Debug)]
enum Step {
    Request {
        client: u8,
        id: &'static str,
        token: Option<&'static str>,
    },
    Cancel {
        client: u8,
        id: &'static str,
    },
    Answer(Index),
    AnswerAgain(Index),
    Progress(Index),
    Broadcast,
    Ask {
        client: u8,
        id: &'static str,
    },
    AnswerFrom {
        client: u8,
        asked: Index,
    },
    WithdrawAsked(Index),
    Close(u8),
}

/// A request that the other side has not answered.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    client: u8,
    id: &'static str,
    token: Option<&'static str>,
    cancelled: bool,
}

struct Model {
    multiplexer: RequestMultiplexer<u8>,
    open: Vec<Pending>,
    over: Vec<u64>,
    asked: Vec<Pending>,
    last_open: u64,
    last_asked: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    let id = || select(IDS);
    let token = proptest::option::of(select(IDS));
    prop_oneof![
        6 => (client(), id(), token).prop_map(|(client, id, token)| Step::Request { client, id, token }),
        2 => (client(), id()).prop_map(|(client, id)| Step::Cancel { client, id }),
        3 => any::<Index>().prop_map(Step::Answer),
        1 => any::<Index>().prop_map(Step::AnswerAgain),
        2 => any::<Index>().prop_map(Step::Progress),
        1 => Just(Step::Broadcast),
        2 => (client(), id()).prop_map(|(client, id)| Step::Ask { client, id }),
        3 => (client(), any::<Index>()).prop_map(|(client, asked)| Step::AnswerFrom { client, asked }),
        1 => any::<Index>().prop_map(Step::WithdrawAsked),
        1 => client().prop_map(Step::Close),
    ]
}

fn request(id: &str, token: Option<&str>) -> String {
    match token {
        Some(token) => format!(
            "{{\"id\" : {id},\"method\":\"tools/call\", \"params\":{{\"name\":\"1\",\"_meta\":{{\"progressToken\": {token} }}}} }}"
        ),
        None => {
            format!("{{\"id\" : {id},\"method\":\"tools/call\", \"params\":{{\"name\":\"1\"}} }}")
        }
    }
}

fn answer(id: &str) -> String {
    format!("{{\"result\": {{\"id\":1}} ,\"id\": {id}}} ")
}

fn progress(token: &str) -> String {
    format!(
        "{{\"method\":\"notifications/progress\",\"params\":{{ \"progressToken\":{token}, \"progress\":1}}}}"
    )
}

fn cancel(id: &str) -> String {
    format!("{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\" :{id} }}}}")
}

fn same_id(one: &str, other: &str) -> bool {
    Id::from_token(one.as_bytes()).key() == Id::from_token(other.as_bytes()).key()
}

fn named(message: &Message) -> u64 {
    let span = message.span(Field::RequestId).unwrap();
    std::str::from_utf8(message.slice(span))
        .unwrap()
        .parse()
        .unwrap()
}

/// The limit that one more request of this client meets, after a cancelled one has made room if there is any.
fn make_room(
    table: &mut Vec<Pending>,
    client: u8,
    limit: usize,
    limit_per_client: usize,
) -> Option<MultiplexerError> {
    let of_client = |pending: &Pending| pending.client == client;
    if table.iter().filter(|pending| of_client(pending)).count() >= limit_per_client {
        let place = table
            .iter()
            .position(|pending| of_client(pending) && pending.cancelled);
        match place {
            Some(place) => drop(table.remove(place)),
            None => return Some(MultiplexerError::ClientLimit(limit_per_client)),
        }
    }
    if table.len() >= limit {
        match table.iter().position(|pending| pending.cancelled) {
            Some(place) => drop(table.remove(place)),
            None => return Some(MultiplexerError::TotalLimit(limit)),
        }
    }
    None
}

impl Model {
    fn new() -> Model {
        Model {
            multiplexer: RequestMultiplexer::new(LIMITS),
            open: Vec::new(),
            over: Vec::new(),
            asked: Vec::new(),
            last_open: 0,
            last_asked: 0,
        }
    }

    /// What a server's message becomes, for whom.
    fn receive(&mut self, received: &str) -> Option<(u8, String)> {
        match self.multiplexer.to_client(&message(received)) {
            Delivery::To(client, message) => Some((client, text(&message))),
            Delivery::Nobody => None,
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Request { client, id, token } => self.request(client, id, token),
            Step::Cancel { client, id } => self.cancel(client, id),
            Step::Answer(place) if !self.open.is_empty() => {
                let pending = self.open.remove(place.index(self.open.len()));
                self.over.push(pending.number);
                let delivered = self.receive(&answer(&pending.number.to_string()));
                assert_eq!(delivered, Some((pending.client, answer(pending.id))));
            }
            Step::AnswerAgain(place) if !self.over.is_empty() => {
                let number = *place.get(&self.over);
                assert_eq!(self.receive(&answer(&number.to_string())), None);
                assert_eq!(self.receive(&progress(&number.to_string())), None);
            }
            Step::Progress(place) if !self.open.is_empty() => {
                let pending = place.get(&self.open).clone();
                let delivered = self.receive(&progress(&pending.number.to_string()));
                let theirs = pending.token.unwrap_or(pending.id);
                assert_eq!(delivered, Some((pending.client, progress(theirs))));
            }
            Step::Broadcast => {
                let changed = "{\"method\" : \"notifications/tools/list_changed\"}";
                let delivery = self.multiplexer.to_client(&message(changed));
                assert!(matches!(delivery, Delivery::Everyone(same) if text(&same) == changed));
            }
            Step::Ask { client, id } => self.ask(client, id),
            Step::AnswerFrom { client, asked } if !self.asked.is_empty() => {
                self.answer_from(client, asked);
            }
            Step::WithdrawAsked(place) if !self.asked.is_empty() => {
                let id = place.get(&self.asked).id;
                let oldest = self.asked.iter().position(|asked| same_id(asked.id, id));
                let pending = self.asked.remove(oldest.unwrap());
                let expected = cancel(&pending.number.to_string());
                assert_eq!(self.receive(&cancel(id)), Some((pending.client, expected)));
            }
            Step::Close(client) => self.close(client),
            _ => {}
        }
        let open = self.open.len();
        let clients: Vec<u8> = self.open.iter().map(|pending| pending.client).collect();
        let multiplexer = &self.multiplexer;
        assert_eq!(multiplexer.open_count(), open);
        assert_eq!(multiplexer.oldest_open(), clients.first().copied());
        for client in 0..CLIENTS {
            assert_eq!(multiplexer.is_open(&client), clients.contains(&client));
        }
    }

    fn request(&mut self, client: u8, id: &'static str, token: Option<&'static str>) {
        let refused = make_room(&mut self.open, client, LIMITS.open, LIMITS.open_per_client);
        let sent = self
            .multiplexer
            .to_server(&client, &message(&request(id, token)));
        if let Some(refused) = refused {
            assert_eq!(sent.unwrap_err(), refused);
            return;
        }
        self.last_open += 1;
        let number = self.last_open;
        let ours = number.to_string();
        let expected = request(&ours, token.map(|_| ours.as_str()));
        assert_eq!(text(&sent.unwrap()), expected);
        self.open.push(Pending {
            number,
            client,
            id,
            token,
            cancelled: false,
        });
    }

    fn cancel(&mut self, client: u8, id: &str) {
        let sent = self.multiplexer.to_server(&client, &message(&cancel(id)));
        let is_meant = |pending: &&mut Pending| pending.client == client && same_id(pending.id, id);
        match sent {
            Ok(sent) => {
                let number = named(&sent);
                assert_eq!(text(&sent), cancel(&number.to_string()));
                let mut meant = self.open.iter_mut().filter(is_meant);
                let pending = meant.find(|pending| pending.number == number).unwrap();
                pending.cancelled = true;
            }
            Err(error) => {
                assert_eq!(error, MultiplexerError::UnknownRequest);
                assert!(self.open.iter_mut().find(is_meant).is_none());
            }
        }
    }

    fn ask(&mut self, client: u8, id: &'static str) {
        let refused = make_room(
            &mut self.asked,
            client,
            LIMITS.asked,
            LIMITS.asked_per_client,
        );
        let asked = message(&request(id, None));
        let sent = self.multiplexer.ask_client(&client, &asked);
        if let Some(refused) = refused {
            assert_eq!(sent.unwrap_err(), refused);
            return;
        }
        self.last_asked += 1;
        let number = self.last_asked;
        assert_eq!(text(&sent.unwrap()), request(&number.to_string(), None));
        self.asked.push(Pending {
            number,
            client,
            id,
            token: None,
            cancelled: false,
        });
    }

    fn answer_from(&mut self, client: u8, asked: Index) {
        let place = asked.index(self.asked.len());
        let pending = self.asked[place].clone();
        let given = message(&answer(&pending.number.to_string()));
        let sent = self.multiplexer.answer_from_client(&client, &given);
        if client == pending.client {
            self.asked.remove(place);
            assert_eq!(text(&sent.unwrap()), answer(pending.id));
        } else {
            assert!(sent.is_none());
        }
    }

    fn close(&mut self, client: u8) {
        let told = self.multiplexer.close(&client);
        let of_client = |pending: &&Pending| pending.client == client;
        let cancelled: Vec<u64> = told
            .iter()
            .filter(|one| one.id().is_none())
            .map(named)
            .collect();
        let open = self.open.iter().filter(of_client);
        let expected: Vec<u64> = open
            .clone()
            .filter(|pending| !pending.cancelled)
            .map(|pending| pending.number)
            .collect();
        assert_eq!(cancelled, expected);
        let answered: Vec<Id> = told.iter().filter_map(Message::id).collect();
        let asked = self.asked.iter().filter(of_client);
        let expected: Vec<Id> = asked
            .map(|pending| Id::from_token(pending.id.as_bytes()))
            .collect();
        assert_eq!(answered, expected);
        self.over.extend(open.map(|pending| pending.number));
        self.open.retain(|pending| pending.client != client);
        self.asked.retain(|pending| pending.client != client);
    }
}

proptest! {
    #[test]
    fn every_client_has_its_own_ids_back(steps in prop::collection::vec(step(), 1..120)) {
        let mut model = Model::new();
        for step in steps {
            model.take(step);
        }
    }
}
