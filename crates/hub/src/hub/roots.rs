//! Servers that ask for roots before there is a client to ask.
//!
//! A server that starts with the hub asks as soon as it is open, when no client may have connected, or the only one still
//! waits for the answer to its `initialize`. The question waits for a client. If none comes, it is refused, and the server
//! is told that the roots have changed when one does.

use std::time::{Duration, Instant};

use mcp_proxy_wire::{Era, Message};

use super::asks::Addressee;
use super::servers::LinkOwner;
use super::{Hub, OpenLink};
use crate::server_link::{ClientId, LinkId};

/// How long a question for roots may wait for a client.
const PATIENCE: Duration = Duration::from_secs(5);

/// Questions of one server that may wait.
const QUESTIONS_MAX: usize = 16;

/// What became of a server's last question for roots.
#[derive(Debug, Default)]
pub(super) enum RootsQuestion {
    /// It has asked nothing, or a client was asked.
    #[default]
    Settled,
    /// There was no client to ask. The questions wait for one until then.
    Waiting {
        questions: Vec<Message>,
        until: Instant,
    },
    /// No client could answer it.
    Refused,
}

impl RootsQuestion {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            RootsQuestion::Waiting { until, .. } => Some(*until),
            RootsQuestion::Settled | RootsQuestion::Refused => None,
        }
    }
}

impl Hub {
    /// Lets a question for roots wait, if the client that it is for has not said hello yet.
    pub(super) fn keep_roots_question(
        &mut self,
        id: LinkId,
        question: &Message,
        addressee: &Addressee,
        now: Instant,
    ) -> bool {
        let may_come = match addressee {
            Addressee::Nobody => true,
            Addressee::Client(client) => {
                let client = self.clients.get(client);
                client.is_some_and(|client| !client.is_initialized && client.era() == Era::Legacy)
            }
            Addressee::Unclear => false,
        };
        let Some(link) = self.links.get_mut(&id).filter(|_| may_come) else {
            return false;
        };
        match &mut link.roots {
            RootsQuestion::Waiting { questions, .. } if questions.len() < QUESTIONS_MAX => {
                questions.push(question.clone());
            }
            RootsQuestion::Waiting { .. } => return false,
            RootsQuestion::Settled | RootsQuestion::Refused => {
                let until = now + PATIENCE;
                let questions = vec![question.clone()];
                link.roots = RootsQuestion::Waiting { questions, until };
                self.schedule(until);
            }
        }
        true
    }

    /// A client can be asked from now on. Servers that waited for one ask it, and those that were refused are told to ask
    /// again.
    pub(super) fn client_is_open(&mut self, client: ClientId, now: Instant) {
        let Some(can) = self.clients.get(&client).map(|client| client.can("roots")) else {
            return;
        };
        let view = self.view(client);
        let is_for_it = |(id, link): (&LinkId, &OpenLink)| {
            let shared = link.owner == LinkOwner::Everyone && view.shows_server(link.server);
            shared.then_some(*id)
        };
        let mut links: Vec<LinkId> = self.links.iter().filter_map(is_for_it).collect();
        links.sort_unstable();
        for id in links {
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            let server = link.server;
            match std::mem::take(&mut link.roots) {
                RootsQuestion::Waiting { questions, .. } => self.ask_for_roots(id, &questions, now),
                RootsQuestion::Refused
                    if can && self.owner_for(client, server) == LinkOwner::Everyone =>
                {
                    self.tell_roots_changed(id);
                }
                other => self.note_roots(id, other),
            }
        }
    }

    /// Questions for roots that have waited long enough are decided with the clients that there are.
    pub(super) fn wake_roots(&mut self, now: Instant) {
        let is_due = |link: &OpenLink| link.roots.deadline().is_some_and(|at| at <= now);
        let due = self.links.iter().filter(|(_, link)| is_due(link));
        let due: Vec<LinkId> = due.map(|(id, _)| *id).collect();
        for id in due {
            let link = self.links.get_mut(&id);
            if let Some(RootsQuestion::Waiting { questions, .. }) =
                link.map(|link| std::mem::take(&mut link.roots))
            {
                self.ask_for_roots(id, &questions, now);
            }
        }
    }

    /// Notes what became of a question, unless others wait.
    pub(super) fn note_roots(&mut self, id: LinkId, question: RootsQuestion) {
        let is_decided = |link: &&mut OpenLink| link.roots.deadline().is_none();
        if let Some(link) = self.links.get_mut(&id).filter(is_decided) {
            link.roots = question;
        }
    }

    fn ask_for_roots(&mut self, id: LinkId, questions: &[Message], now: Instant) {
        for question in questions {
            let addressee = self.addressee(id);
            self.ask_client(id, question, addressee, now);
        }
        self.flush_link(id, None);
    }

    fn tell_roots_changed(&mut self, id: LinkId) {
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
        if let Some(link) = self.links.get_mut(&id) {
            link.state.send(Message::parse(changed));
        }
        self.flush_link(id, None);
    }
}
