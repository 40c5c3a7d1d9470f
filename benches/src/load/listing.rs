//! The load of lists: each client reads all pages of `tools/list`, again and again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memchr::memmem;
use tokio::task::JoinSet;

use super::http::LoadSession;
use super::{LoadTarget, MeasuredWindow, Measurement, PATIENCE, within};
use crate::canned::{self, AnswerSize, BenchEra, FIRST_ID};
use crate::usage::{self, TreeUsage};

/// What is in every definition once.
const SCHEMA_KEY: &[u8] = br#""inputSchema""#;
/// How long a start may take.
const START_WITHIN: Duration = Duration::from_secs(20);

/// How many clients read lists, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct ListPlan {
    pub sessions: usize,
    pub warm_up: Duration,
    pub time: Duration,
}

/// A client and the size of the whole list, which every later reading must have too.
struct ListClient {
    session: LoadSession,
    bytes: usize,
}

/// What one client read in a window.
#[derive(Default)]
struct ListReadings {
    lists: usize,
    pages: Vec<u32>,
}

/// Lists per second of all clients together. The latencies are those of single pages.
pub fn measure_lists(target: &LoadTarget, plan: &ListPlan) -> Result<Measurement> {
    let limit = plan.warm_up + plan.time + PATIENCE;
    within(limit, async {
        let read_usage = || target.process.map(usage::of_tree).unwrap_or_default();
        let mut clients = Vec::new();
        for _ in 0..plan.sessions {
            clients.push(ListClient::open(target).await?);
        }
        let (clients, ..) = loop_for(clients, target, plan.warm_up).await?;
        let before: TreeUsage = read_usage();
        let (clients, readings, elapsed) = loop_for(clients, target, plan.time).await?;
        let after = read_usage();
        for client in clients {
            client.session.close(target).await?;
        }
        let window = MeasuredWindow {
            latencies: readings.pages,
            elapsed,
        };
        let is_proxy = target.process.is_some();
        let mut sample = window.sample(AnswerSize::Small, &before, &after, is_proxy);
        sample.per_second = Some(readings.lists as f64 / elapsed.as_secs_f64());
        sample.megabytes_per_second = None;
        Ok(sample)
    })
}

/// Opens a session and reads the list until it has at least `tools`: the end of a hub's start.
pub fn list_once(target: &LoadTarget, tools: usize) -> Result<()> {
    within(START_WITHIN, async {
        let mut session = LoadSession::open(target, BenchEra::Legacy).await?;
        while session.count_tools(target).await? < tools {}
        session.close(target).await
    })
}

/// Opens idle sessions that have each read the list once, and calls `then` while they are open.
pub fn open_and_list<T>(
    target: &LoadTarget,
    sessions: usize,
    then: impl FnOnce() -> T,
) -> Result<T> {
    within(START_WITHIN * 3, async {
        let mut open = Vec::new();
        for _ in 0..sessions {
            let mut session = LoadSession::open(target, BenchEra::Legacy).await?;
            session.read_list(target, |_| {}).await?;
            open.push(session);
        }
        let outcome = then();
        for session in open {
            session.close(target).await?;
        }
        Ok(outcome)
    })
}

async fn loop_for(
    clients: Vec<ListClient>,
    target: &LoadTarget,
    time: Duration,
) -> Result<(Vec<ListClient>, ListReadings, Duration)> {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(client.read_until(target.clone(), start + time));
    }
    let mut clients = Vec::new();
    let mut all = ListReadings::default();
    while let Some(finished) = tasks.join_next().await {
        let (client, mut own) = finished??;
        clients.push(client);
        all.lists += own.lists;
        all.pages.append(&mut own.pages);
    }
    Ok((clients, all, start.elapsed()))
}

impl ListClient {
    async fn open(target: &LoadTarget) -> Result<ListClient> {
        let mut session = LoadSession::open(target, BenchEra::Legacy).await?;
        let bytes = session.read_list(target, |_| {}).await?;
        Ok(ListClient { session, bytes })
    }

    async fn read_until(
        mut self,
        target: LoadTarget,
        end: Instant,
    ) -> Result<(ListClient, ListReadings)> {
        let mut own = ListReadings::default();
        while Instant::now() < end {
            let page = |latency: Duration| {
                own.pages
                    .push(u32::try_from(latency.as_nanos()).unwrap_or(u32::MAX));
            };
            let bytes = self.session.read_list(&target, page).await?;
            ensure!(
                bytes == self.bytes,
                "a list of {bytes} bytes, and before one of {}",
                self.bytes
            );
            own.lists += 1;
        }
        Ok((self, own))
    }
}

impl LoadSession {
    /// Reads all pages and gives their bytes; `page` gets the latency of each.
    async fn read_list(
        &mut self,
        target: &LoadTarget,
        mut page: impl FnMut(Duration),
    ) -> Result<usize> {
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        loop {
            let request = self.request(target, &canned::list(cursor.as_deref()));
            let sent = Instant::now();
            let answer = self.connection.exchange(&request).await?;
            page(sent.elapsed());
            let body = &self.connection.body;
            let right = answer.status == 200 && body.id() == Some(FIRST_ID);
            ensure!(
                right && body.is_whole(AnswerSize::Small),
                "tools/list was answered {}: {}",
                answer.status,
                body.shown()
            );
            bytes += body.length();
            match body.next_cursor() {
                Some(next) => cursor = Some(next),
                None => return Ok(bytes),
            }
        }
    }

    async fn count_tools(&mut self, target: &LoadTarget) -> Result<usize> {
        let mut cursor: Option<String> = None;
        let mut count = 0;
        loop {
            self.connection.body.keep_whole();
            let request = self.request(target, &canned::list(cursor.as_deref()));
            let status = self.connection.exchange(&request).await?.status;
            let body = &mut self.connection.body;
            ensure!(
                status == 200,
                "tools/list was answered {status}: {}",
                body.shown()
            );
            count += memmem::find_iter(&body.take_whole(), SCHEMA_KEY).count();
            match body.next_cursor() {
                Some(next) => cursor = Some(next),
                None => return Ok(count),
            }
        }
    }
}
