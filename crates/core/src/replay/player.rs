//! The link of a recorded client: says its lines, hears the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_wire::{
    Body, Carriage, ErrorCode, ExchangeId, Field, Frame, Kind, LineEnd, Message, error_response,
};
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Outcome;
use super::plan::{Line, Plan, own};
use super::stage::{Stage, Turn};
use crate::link::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd};

/// A plan being played; shared by both halves of its link.
pub struct Player {
    state: Mutex<State>,
    stage: Arc<Stage>,
}

struct State {
    connection: u32,
    lines: VecDeque<Line>,
    replies: FxHashMap<String, VecDeque<Message>>,
    /// Answers of ours to what the server asked.
    said: VecDeque<Message>,
    /// Open requests by our number.
    open: FxHashMap<u64, (Line, Instant)>,
    /// Our number of a recorded id.
    numbers: FxHashMap<Vec<u8>, u64>,
    next: u64,
    outcomes: Vec<Outcome>,
    ended: bool,
}

/// A link that plays, and where its outcome is found.
pub fn player(plan: Plan, stage: &Arc<Stage>) -> (Link, Arc<Player>) {
    let player = Arc::new(Player {
        state: Mutex::new(State {
            connection: plan.connection,
            lines: plan.lines.into(),
            replies: plan.replies,
            said: VecDeque::new(),
            open: FxHashMap::default(),
            numbers: FxHashMap::default(),
            next: 0,
            outcomes: Vec::new(),
            ended: false,
        }),
        stage: Arc::clone(stage),
    });
    let reader = Says(Arc::clone(&player));
    (Link::new(reader, Hears(Arc::clone(&player))), player)
}

impl Player {
    /// The requests that were played, in the order of the record. Those that are open have no answer, and what was not said
    /// is said no more.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let mut state = self.state();
        let open: Vec<Line> = state.open.drain().map(|(_, (line, _))| line).collect();
        let unsaid: Vec<Line> = state.lines.drain(..).collect();
        self.stage.over(open.len());
        self.stage.leave(&unsaid);
        let asks = |line: &&Line| line.message.kind() == Kind::Request;
        let unanswered = open.iter().chain(unsaid.iter().filter(asks));
        let unanswered: Vec<_> = unanswered.map(|line| state.outcome(line, None)).collect();
        state.outcomes.extend(unanswered);
        state.outcomes.sort_by_key(|outcome| outcome.sequence);
        state.outcomes.clone()
    }

    /// How many requests are over.
    pub fn over(&self) -> usize {
        self.state().outcomes.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's half that speaks.
struct Says(Arc<Player>);

/// What to do next.
enum Next {
    Say(Message),
    /// Not before this.
    Later(Instant),
    /// When something has changed, or at this time an open request is given up.
    Wait(Option<Instant>),
    End,
}

impl Says {
    fn next(&mut self) -> Next {
        let stage = &self.0.stage;
        let mut state = self.0.state();
        let (now, timeout) = (Instant::now(), stage.pace.timeout);
        if let Some(reply) = state.said.pop_front() {
            return Next::Say(reply);
        }
        stage.over(state.give_up(now, timeout));
        let wait = Next::Wait(state.deadline(timeout));
        let Some(line) = state.lines.front() else {
            return match state.open.is_empty() || state.ended {
                true => Next::End,
                false => wait,
            };
        };
        if state.is_opening() {
            return wait;
        }
        match stage.turn(line, now) {
            Turn::Later(when) => Next::Later(when),
            Turn::Wait => wait,
            Turn::Now => {
                stage.said(line);
                state.say()
            }
        }
    }
}

impl State {
    fn say(&mut self) -> Next {
        let Some(line) = self.lines.pop_front() else {
            return Next::End;
        };
        self.next += 1;
        let number = self.next;
        let message = own(&line, number, &self.numbers);
        if line.message.kind() == Kind::Request {
            if let Some(token) = line.message.id_token() {
                self.numbers.insert(token.to_vec(), number);
            }
            self.open.insert(number, (line, Instant::now()));
        }
        Next::Say(message)
    }

    /// `initialize` is alone: nothing may be said before its answer.
    fn is_opening(&self) -> bool {
        let opens = |line: &Line| line.message.method().as_deref() == Some("initialize");
        self.open.values().any(|(line, _)| opens(line))
    }

    fn deadline(&self, timeout: Duration) -> Option<Instant> {
        let oldest = self.open.values().map(|(_, since)| *since).min();
        oldest.map(|since| since + timeout)
    }

    /// How many requests are given up now.
    fn give_up(&mut self, now: Instant, timeout: Duration) -> usize {
        let late: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, (_, since))| now >= *since + timeout)
            .map(|(number, _)| *number)
            .collect();
        for number in &late {
            if let Some((line, _)) = self.open.remove(number) {
                self.outcomes.push(self.outcome(&line, None));
            }
        }
        late.len()
    }

    fn outcome(&self, line: &Line, now: Option<Message>) -> Outcome {
        let text = |field| line.message.text(field).map(|text| text.into_owned());
        Outcome {
            sequence: line.sequence,
            connection: self.connection,
            method: line.message.method().unwrap_or_default().into_owned(),
            name: text(Field::Name).or_else(|| text(Field::Uri)),
            then: line.answer.clone(),
            now,
        }
    }

    fn hear(&mut self, message: Message) {
        match message.kind() {
            Kind::Response | Kind::Error => {
                let number = message
                    .id_token()
                    .and_then(|token| std::str::from_utf8(token).ok()?.parse().ok());
                if let Some((line, _)) = number.and_then(|number: u64| self.open.remove(&number)) {
                    self.outcomes.push(self.outcome(&line, Some(message)));
                }
            }
            Kind::Request => self.reply(&message),
            Kind::Batch => message
                .parts()
                .unwrap_or_default()
                .into_iter()
                .for_each(|part| self.hear(part)),
            _ => {}
        }
    }

    /// What the recorded client answered to such a request, the next one if there were several.
    fn reply(&mut self, request: &Message) {
        let method = request.method().unwrap_or_default();
        let replies = self.replies.get_mut(method.as_ref());
        let recorded = replies.and_then(|replies| match replies.len() {
            0 | 1 => replies.front().cloned(),
            _ => replies.pop_front(),
        });
        let id = request.span(Field::Id).map(|span| request.slice(span));
        let reply = match (&recorded, id) {
            (Some(reply), Some(id)) => reply
                .span(Field::Id)
                .and_then(|span| reply.splice(&[(span, id)]).ok()),
            _ => None,
        };
        let reply = reply.unwrap_or_else(|| {
            let text = format!("the recorded client was not asked {method}");
            error_response(request.id().as_ref(), ErrorCode::NOT_RECORDED, &text, None)
        });
        self.said.push_back(reply);
    }
}

impl FrameReader for Says {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let stage = Arc::clone(&self.0.stage);
            loop {
                let changed = stage.changed();
                match self.next() {
                    Next::Say(message) => {
                        into.push(Frame {
                            exchange: ExchangeId(0),
                            carriage: Carriage::Line(LineEnd::Lf),
                            body: Body::Whole(message),
                        });
                        return Ok(());
                    }
                    Next::Later(when) => tokio::select! {
                        () = sleep_until(when) => {}
                        () = changed => {}
                    },
                    Next::Wait(Some(until)) => drop(timeout_at(until, changed).await),
                    Next::Wait(None) => changed.await,
                    Next::End => return Err(LinkEnd::Closed),
                }
            }
        })
    }
}

/// The client's half that listens.
struct Hears(Arc<Player>);

impl FrameWriter for Hears {
    fn write<'a>(&'a mut self, frames: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let mut state = self.0.state();
        let before = state.open.len();
        for frame in frames.drain(..) {
            if let Body::Whole(message) = frame.body {
                state.hear(message);
            }
        }
        self.0.stage.over(before - state.open.len());
        drop(state);
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.state().ended = true;
        self.0.stage.touch();
        Box::pin(std::future::ready(()))
    }
}
