//! The link of a recorded client: says its lines, hears the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_wire::{
    Body, ErrorCode, Field, Frame, Kind, Message, Origin, StreamId, error_response,
};
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Outcome;
use super::handles::{self, Handles};
use super::plan::{Line, Plan, Says, Script, own};
use super::replies::Replies;
use super::stage::{Stage, Turn};
use crate::link::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, Outgoing};

/// A plan being played; shared by both halves of its link.
pub struct Player {
    state: Mutex<State>,
    stage: Arc<Stage>,
}

struct State {
    script: Arc<Script>,
    connection: u32,
    lines: VecDeque<Line>,
    /// The recorded client's answers.
    replies: Replies,
    /// Answers of ours to what the server asked.
    said: VecDeque<Message>,
    /// Open requests by our number.
    open: FxHashMap<u64, (Line, Instant)>,
    /// Our number of a recorded id.
    numbers: FxHashMap<Vec<u8>, u64>,
    /// What the server gives now where it gave something else then.
    handles: Handles,
    next: u64,
    outcomes: Vec<Outcome>,
    ended: bool,
}

/// A link that plays, and where its outcome is found.
pub fn player(script: &Arc<Script>, plan: Plan, stage: &Arc<Stage>) -> (Link, Arc<Player>) {
    let player = Arc::new(Player {
        state: Mutex::new(State {
            script: Arc::clone(script),
            connection: plan.connection,
            lines: plan.lines.into(),
            replies: plan.replies,
            said: VecDeque::new(),
            open: FxHashMap::default(),
            numbers: FxHashMap::default(),
            handles: Handles::default(),
            next: 0,
            outcomes: Vec::new(),
            ended: false,
        }),
        stage: Arc::clone(stage),
    });
    let reader = Voice(Arc::clone(&player));
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
        let unanswered = open.iter().chain(unsaid.iter().filter(|line| line.asks()));
        let unanswered: Vec<_> = unanswered.map(|line| state.outcome(line, None)).collect();
        state.outcomes.extend(unanswered);
        state.outcomes.sort_by_key(|outcome| outcome.sequence);
        std::mem::take(&mut state.outcomes)
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
struct Voice(Arc<Player>);

/// What to do next.
enum Next {
    Say(Message),
    /// Not before this.
    Later(Instant),
    /// When something has changed, or at this time an open request is given up.
    Wait(Option<Instant>),
    End,
}

impl Voice {
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
        if state.is_opening() || state.is_open(line.after) {
            return wait;
        }
        match stage.turn(line, now) {
            Turn::Later(when) => Next::Later(when),
            Turn::Wait => wait,
            Turn::Now => {
                let line = *line;
                stage.said(&line);
                let said = state.say();
                stage.over(state.cancel(&line, said.as_ref()));
                match said {
                    Some(message) => Next::Say(message),
                    None => {
                        stage.over(usize::from(line.asks()));
                        Next::Later(now)
                    }
                }
            }
        }
    }
}

/// Who made a message that came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Server,
    /// The link could not ask the server.
    Ours,
}

impl State {
    /// The next line; nothing if it cannot be read any more.
    fn say(&mut self) -> Option<Message> {
        let line = self.lines.pop_front()?;
        let Some(message) = self.script.said(line.row) else {
            if line.asks() {
                self.outcomes.push(self.outcome(&line, None));
            }
            return None;
        };
        self.next += 1;
        let number = self.next;
        let own = own(&message, number, &self.numbers, &self.handles);
        if line.asks() {
            if let Some(token) = message.id_token() {
                self.numbers.insert(token.to_vec(), number);
            }
            self.open.insert(number, (line, Instant::now()));
        }
        Some(own)
    }

    /// A cancelled request that had no answer then waits for none now. How many requests are over with that.
    fn cancel(&mut self, line: &Line, said: Option<&Message>) -> usize {
        let named = said.filter(|_| line.says == Says::Cancels);
        let number = named.and_then(|said| {
            let token = said.slice(said.span(Field::RequestId)?);
            std::str::from_utf8(token).ok()?.parse::<u64>().ok()
        });
        let was_unanswered = |(line, _): &(Line, Instant)| line.answer.is_none();
        let Some(number) =
            number.filter(|number| self.open.get(number).is_some_and(was_unanswered))
        else {
            return 0;
        };
        let Some((line, _)) = self.open.remove(&number) else {
            return 0;
        };
        self.outcomes.push(self.outcome(&line, None));
        1
    }

    /// `initialize` is alone: nothing may be said before its answer.
    fn is_opening(&self) -> bool {
        self.open.values().any(|(line, _)| line.says == Says::Opens)
    }

    /// Whether this request of the record waits for its answer: what that gives is still to be known.
    fn is_open(&self, asked: Option<u64>) -> bool {
        asked.is_some_and(|asked| self.open.values().any(|(line, _)| line.sequence == asked))
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

    fn outcome(&self, line: &Line, now: Option<&Message>) -> Outcome {
        let own = |code| ErrorCode::OWN.iter().any(|own| own.code.0 == code);
        Outcome {
            sequence: line.sequence,
            connection: self.connection,
            row: line.row,
            verdict: self.script.compare(line.answer, now),
            is_answered: now.is_some_and(|answer| !answer.error_code().is_some_and(own)),
        }
    }

    fn hear(&mut self, message: Message, whose: Whose) {
        match message.kind() {
            Kind::Response | Kind::Error => {
                let number = message
                    .id_token()
                    .and_then(|token| std::str::from_utf8(token).ok()?.parse().ok());
                if let Some((line, _)) = number.and_then(|number: u64| self.open.remove(&number)) {
                    let answer = (whose == Whose::Server).then_some(&message);
                    self.outcomes.push(self.outcome(&line, answer));
                    self.learn(&line, &message);
                }
            }
            Kind::Request => self.reply(&message),
            Kind::Batch => message
                .parts()
                .unwrap_or_default()
                .into_iter()
                .for_each(|part| self.hear(part, whose)),
            _ => {}
        }
    }

    /// Notes what the client will have to hand back.
    fn learn(&mut self, line: &Line, now: &Message) {
        if handles::given(now).next().is_none() {
            return;
        }
        if let Some(then) = line.answer.and_then(|row| self.script.answered(row)) {
            self.handles.learn(&then, now);
        }
    }

    /// What the recorded client answered to such a request.
    fn reply(&mut self, request: &Message) {
        let method = request.method().unwrap_or_default();
        let recorded = self.replies.take(request);
        let recorded = recorded.and_then(|row| self.script.said(row));
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

impl FrameReader for Voice {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let stage = Arc::clone(&self.0.stage);
            loop {
                let changed = stage.changed();
                match self.next() {
                    Next::Say(message) => {
                        into.push(Frame::message(StreamId::Only, Origin::Client, message));
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
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<Outgoing>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let mut state = self.0.state();
        let before = state.open.len();
        for frame in frames.drain(..).filter_map(Outgoing::into_written) {
            let whose = match frame.is_injected() {
                true => Whose::Ours,
                false => Whose::Server,
            };
            if let Body::Whole(message) = frame.body {
                state.hear(message, whose);
            }
        }
        self.0.stage.over(before - state.open.len());
        if !state.said.is_empty() {
            self.0.stage.touch();
        }
        drop(state);
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.state().ended = true;
        self.0.stage.touch();
        Box::pin(std::future::ready(()))
    }
}
