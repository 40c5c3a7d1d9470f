//! The two loads. Closed: every client has a number of commands in flight, and the rate is what comes out. Paced: commands
//! are sent by the clock, and their time counts from when they were due, so that a delay is not hidden by waiting for it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::task::{JoinSet, yield_now};

use super::peers::{self, BenchUser, Dialogue, Heard};
use super::socket::{PeerSocket, SocketTarget};
use crate::load::Measurement;
use crate::usage;

/// How long the last answers of a paced load may take.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What to send, to whom and how long.
pub struct RelayLoad {
    pub target: SocketTarget,
    pub dialogue: Rc<Dialogue>,
    /// A pair of a client and an extension for each.
    pub users: Vec<BenchUser>,
    /// The process that is measured.
    pub process: u32,
    pub warm_up: Duration,
    pub time: Duration,
}

#[derive(Default)]
struct LoadCounts {
    answers: Cell<u64>,
    refusal: RefCell<Option<String>>,
}

impl RelayLoad {
    /// Opens everything: the clients, while the extensions answer in tasks of their own.
    async fn open(&self, tasks: &mut JoinSet<Result<()>>) -> Result<Vec<PeerSocket>> {
        let mut clients = Vec::new();
        for user in &self.users {
            if matches!(*self.dialogue, Dialogue::Echo { .. }) {
                clients.push(PeerSocket::open(&self.target, "/").await?);
                continue;
            }
            let socket = PeerSocket::open(&self.target, "/extension").await?;
            let mut extension = peers::join_extension(socket, user).await?;
            let dialogue = Rc::clone(&self.dialogue);
            tasks.spawn_local(async move {
                extension
                    .serve(|text, out| dialogue.push_answer(text, out))
                    .await
            });
            let mut client = peers::join_client(&self.target, user).await?;
            peers::open_tab(&mut client).await?;
            clients.push(client);
        }
        Ok(clients)
    }

    /// Keeps commands in flight, for each client as many as `in_flight`.
    pub async fn measure_closed(&self, in_flight: u64) -> Result<Measurement> {
        let mut tasks = JoinSet::new();
        let counts = Rc::new(LoadCounts::default());
        for client in self.open(&mut tasks).await? {
            let (dialogue, counts) = (Rc::clone(&self.dialogue), Rc::clone(&counts));
            tasks.spawn_local(keep_in_flight(client, in_flight, dialogue, counts));
        }
        tokio::time::sleep(self.warm_up).await;
        let own = std::process::id();
        let cpu = || [self.process, own].map(|process| usage::of_process(process).cpu_seconds);
        let (start, answers, before) = (Instant::now(), counts.answers.get(), cpu());
        tokio::time::sleep(self.time).await;
        let (seconds, after) = (start.elapsed().as_secs_f64(), cpu());
        let messages = (counts.answers.get() - answers) * self.dialogue.messages();
        if let Some(refusal) = counts.refusal.take() {
            bail!("a command was answered {refusal}");
        }
        if let Some(ended) = tasks.try_join_next() {
            bail!("a peer has ended: {ended:?}");
        }
        if messages == 0 {
            bail!("nothing was answered");
        }
        let messages = messages as f64;
        let spent = |at: usize| Some((after[at] - before[at]) * 1e6 / messages);
        Ok(Measurement {
            per_second: Some(messages / seconds),
            cpu_us: spent(0),
            driver_cpu_us: spent(1),
            ..Measurement::default()
        })
    }

    /// Sends `per_second` requests a second, by turns from every client.
    pub async fn measure_paced(&self, per_second: f64) -> Result<Measurement> {
        let mut tasks = JoinSet::new();
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let mut clients = Vec::new();
        let opened = self.open(&mut tasks).await?;
        let counted_from = Instant::now() + self.warm_up;
        for client in opened {
            let PeerSocket { mut reader, writer } = client;
            let due = Rc::new(RefCell::new(VecDeque::<Instant>::new()));
            clients.push((writer, Rc::clone(&due)));
            let (dialogue, latencies) = (Rc::clone(&self.dialogue), Rc::clone(&latencies));
            tasks.spawn_local(async move {
                reader
                    .watch(|text| {
                        if !matches!(dialogue.heard(text), Heard::Notice)
                            && let Some(due) = due.borrow_mut().pop_front()
                            && due >= counted_from
                        {
                            latencies.borrow_mut().push(due.elapsed());
                        }
                    })
                    .await
            });
        }
        let interval = Duration::from_secs_f64(1.0 / per_second);
        let mut due = Instant::now();
        let end = due + self.warm_up + self.time;
        for number in 1.. {
            if due > end {
                break;
            }
            // Timers are too coarse for this, so the clock is watched. Answers are read in between.
            while Instant::now() < due {
                yield_now().await;
            }
            let at = number as usize % clients.len();
            let (writer, waiting) = &mut clients[at];
            waiting.borrow_mut().push_back(due);
            self.dialogue.push_request(number, &mut writer.output);
            writer.flush().await?;
            due += interval;
        }
        let all_heard = async {
            while clients.iter().any(|(_, due)| !due.borrow().is_empty()) {
                yield_now().await;
            }
        };
        if tokio::time::timeout(LAST_ANSWERS, all_heard).await.is_err() {
            bail!("some commands have no answer");
        }
        let mut latencies = latencies.take();
        latencies.sort_unstable();
        let at = |share: f64| {
            let index = (latencies.len() as f64 * share) as usize;
            latencies.get(index).map(|time| time.as_secs_f64() * 1e6)
        };
        Ok(Measurement {
            per_second: Some(per_second),
            p50_us: at(0.50),
            p99_us: at(0.99),
            ..Measurement::default()
        })
    }
}

async fn keep_in_flight(
    mut client: PeerSocket,
    in_flight: u64,
    dialogue: Rc<Dialogue>,
    counts: Rc<LoadCounts>,
) -> Result<()> {
    for number in 1..=in_flight {
        dialogue.push_request(number, &mut client.writer.output);
    }
    let mut number = in_flight;
    client
        .serve(|text, out| match dialogue.heard(text) {
            Heard::Answer => {
                counts.answers.set(counts.answers.get() + 1);
                number += 1;
                dialogue.push_request(number, out);
            }
            Heard::Refusal(text) => {
                counts.refusal.replace(Some(text));
            }
            Heard::Notice => {}
        })
        .await
}

/// Runs something on one thread, with its tasks.
pub fn on_one_thread<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}
