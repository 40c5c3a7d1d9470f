//! The link of a recorded client: says its lines, hears the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_wire::{
    Body, ErrorCode, Field, Frame, Kind, Message, Origin, StreamId, error_response,
};
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ReplayOutcome;
use super::client_replies::ClientReplies;
use super::plan::{MessagePurpose, PlannedMessage, ReplayPlan, ReplayScript, with_replay_ids};
use super::schedule::{ReplaySchedule, Turn};
use super::server_handles::{self, ServerHandles};
use crate::link::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame};

/// A plan being played; shared by both halves of its link.
pub struct ReplayPlayer {
    state: Mutex<PlayerState>,
    stage: Arc<ReplaySchedule>,
}

struct PlayerState {
    script: Arc<ReplayScript>,
    connection: u32,
    lines: VecDeque<PlannedMessage>,
    /// The recorded client's answers.
    replies: ClientReplies,
    /// Answers of ours to what the server asked.
    said: VecDeque<Message>,
    /// Open requests by our number.
    open: FxHashMap<u64, (PlannedMessage, Instant)>,
    /// Our number of a recorded id.
    numbers: FxHashMap<Vec<u8>, u64>,
    /// What the server gives now where it gave something else then.
    handles: ServerHandles,
    next: u64,
    outcomes: Vec<ReplayOutcome>,
    ended: bool,
}

/// A link that plays, and where its outcome is found.
pub fn player_link(
    script: &Arc<ReplayScript>,
    plan: ReplayPlan,
    stage: &Arc<ReplaySchedule>,
) -> (Link, Arc<ReplayPlayer>) {
    let player = Arc::new(ReplayPlayer {
        state: Mutex::new(PlayerState {
            script: Arc::clone(script),
            connection: plan.connection,
            lines: plan.messages.into(),
            replies: plan.replies,
            said: VecDeque::new(),
            open: FxHashMap::default(),
            numbers: FxHashMap::default(),
            handles: ServerHandles::default(),
            next: 0,
            outcomes: Vec::new(),
            ended: false,
        }),
        stage: Arc::clone(stage),
    });
    let reader = PlayerReader(Arc::clone(&player));
    (Link::new(reader, PlayerWriter(Arc::clone(&player))), player)
}

impl ReplayPlayer {
    /// The requests that were played, in the order of the record. Those that are open have no answer, and what was not said
    /// is said no more.
    pub fn outcomes(&self) -> Vec<ReplayOutcome> {
        let mut state = self.state();
        let open: Vec<PlannedMessage> = state.open.drain().map(|(_, (line, _))| line).collect();
        let unsaid: Vec<PlannedMessage> = state.lines.drain(..).collect();
        self.stage.mark_finished(open.len());
        self.stage.skip_messages(&unsaid);
        let unanswered = open
            .iter()
            .chain(unsaid.iter().filter(|line| line.expects_answer()));
        let unanswered: Vec<_> = unanswered.map(|line| state.outcome(line, None)).collect();
        state.outcomes.extend(unanswered);
        state.outcomes.sort_by_key(|outcome| outcome.sequence);
        std::mem::take(&mut state.outcomes)
    }

    /// How many requests are over.
    pub fn finished_count(&self) -> usize {
        self.state().outcomes.len()
    }

    fn state(&self) -> MutexGuard<'_, PlayerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's half that speaks.
struct PlayerReader(Arc<ReplayPlayer>);

/// What to do next.
enum PlayerAction {
    Send(Message),
    /// Not before this.
    Later(Instant),
    /// When something has changed, or at this time an open request is given up.
    Wait(Option<Instant>),
    End,
}

impl PlayerReader {
    fn next(&mut self) -> PlayerAction {
        let stage = &self.0.stage;
        let mut state = self.0.state();
        let (now, timeout) = (Instant::now(), stage.pace.timeout);
        if let Some(reply) = state.said.pop_front() {
            return PlayerAction::Send(reply);
        }
        stage.mark_finished(state.give_up(now, timeout));
        let wait = PlayerAction::Wait(state.deadline(timeout));
        let Some(line) = state.lines.front() else {
            return match state.open.is_empty() || state.ended {
                true => PlayerAction::End,
                false => wait,
            };
        };
        if state.is_opening() || state.is_open(line.after) {
            return wait;
        }
        match stage.turn(line, now) {
            Turn::Later(when) => PlayerAction::Later(when),
            Turn::Wait => wait,
            Turn::Now => {
                let line = *line;
                stage.mark_sent(&line);
                let said = state.next_message();
                stage.mark_finished(state.cancel(&line, said.as_ref()));
                match said {
                    Some(message) => PlayerAction::Send(message),
                    None => {
                        stage.mark_finished(usize::from(line.expects_answer()));
                        PlayerAction::Later(now)
                    }
                }
            }
        }
    }
}

/// Who made a message that came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerSource {
    Server,
    /// The link could not ask the server.
    Link,
}

impl PlayerState {
    /// The next line; nothing if it cannot be read any more.
    fn next_message(&mut self) -> Option<Message> {
        let line = self.lines.pop_front()?;
        let Some(message) = self.script.client_message(line.row) else {
            if line.expects_answer() {
                self.outcomes.push(self.outcome(&line, None));
            }
            return None;
        };
        self.next += 1;
        let number = self.next;
        let own = with_replay_ids(&message, number, &self.numbers, &self.handles);
        if line.expects_answer() {
            if let Some(token) = message.id_token() {
                self.numbers.insert(token.to_vec(), number);
            }
            self.open.insert(number, (line, Instant::now()));
        }
        Some(own)
    }

    /// A cancelled request that had no answer then waits for none now. How many requests are over with that.
    fn cancel(&mut self, line: &PlannedMessage, said: Option<&Message>) -> usize {
        let named = said.filter(|_| line.purpose == MessagePurpose::Cancel);
        let number = named.and_then(|said| {
            let token = said.slice(said.span(Field::RequestId)?);
            std::str::from_utf8(token).ok()?.parse::<u64>().ok()
        });
        let was_unanswered = |(line, _): &(PlannedMessage, Instant)| line.answer.is_none();
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
        self.open
            .values()
            .any(|(line, _)| line.purpose == MessagePurpose::Initialize)
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

    fn outcome(&self, line: &PlannedMessage, now: Option<&Message>) -> ReplayOutcome {
        let own = |code| ErrorCode::OWN.iter().any(|own| own.code.0 == code);
        ReplayOutcome {
            sequence: line.sequence,
            connection: self.connection,
            row: line.row,
            comparison: self.script.compare(line.answer, now),
            is_answered: now.is_some_and(|answer| !answer.error_code().is_some_and(own)),
        }
    }

    fn receive(&mut self, message: Message, whose: AnswerSource) {
        match message.kind() {
            Kind::Response | Kind::Error => {
                let number = message
                    .id_token()
                    .and_then(|token| std::str::from_utf8(token).ok()?.parse().ok());
                if let Some((line, _)) = number.and_then(|number: u64| self.open.remove(&number)) {
                    let answer = (whose == AnswerSource::Server).then_some(&message);
                    self.outcomes.push(self.outcome(&line, answer));
                    self.learn(&line, &message);
                }
            }
            Kind::Request => self.reply(&message),
            Kind::Batch => message
                .parts()
                .unwrap_or_default()
                .into_iter()
                .for_each(|part| self.receive(part, whose)),
            _ => {}
        }
    }

    /// Notes what the client will have to hand back.
    fn learn(&mut self, line: &PlannedMessage, now: &Message) {
        if server_handles::issued_handles(now).next().is_none() {
            return;
        }
        if let Some(then) = line.answer.and_then(|row| self.script.server_answer(row)) {
            self.handles.learn(&then, now);
        }
    }

    /// What the recorded client answered to such a request.
    fn reply(&mut self, request: &Message) {
        let method = request.method().unwrap_or_default();
        let recorded = self.replies.take(request);
        let recorded = recorded.and_then(|row| self.script.client_message(row));
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

impl FrameReader for PlayerReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let stage = Arc::clone(&self.0.stage);
            loop {
                let changed = stage.changed();
                match self.next() {
                    PlayerAction::Send(message) => {
                        into.push(Frame::message(StreamId::Only, Origin::Client, message));
                        return Ok(());
                    }
                    PlayerAction::Later(when) => tokio::select! {
                        () = sleep_until(when) => {}
                        () = changed => {}
                    },
                    PlayerAction::Wait(Some(until)) => drop(timeout_at(until, changed).await),
                    PlayerAction::Wait(None) => changed.await,
                    PlayerAction::End => return Err(LinkEnd::Closed),
                }
            }
        })
    }
}

/// The client's half that listens.
struct PlayerWriter(Arc<ReplayPlayer>);

impl FrameWriter for PlayerWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let mut state = self.0.state();
        let before = state.open.len();
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            let whose = match frame.is_injected() {
                true => AnswerSource::Link,
                false => AnswerSource::Server,
            };
            if let Body::Message(message) = frame.body {
                state.receive(message, whose);
            }
        }
        self.0.stage.mark_finished(before - state.open.len());
        if !state.said.is_empty() {
            self.0.stage.notify_players();
        }
        drop(state);
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.state().ended = true;
        self.0.stage.notify_players();
        Box::pin(std::future::ready(()))
    }
}
