//! `replay`: recorded clients before a live server, and what is answered differently.

mod report;
mod tools;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::replay::IgnoredPath;
use mcp_proxy_core::replay::{
    PlaybackOptions, RedactionFills, ReplayOutcome, ReplayPlan, ReplaySchedule, ReplayScript,
    player_link,
};
use mcp_proxy_core::{CarryEnd, Link, LinkEnd, ProxyRun, RunOptions, carry};
use mcp_proxy_session::{Filter, SessionRecord};
use tokio::sync::watch;
use tokio::task::JoinSet;

use report::{ReplayReport, ReportFormat};

use super::proxy::{HangupMeaning, RunEnd, RunSignals};
use super::sessions::{record_lookup, report_damage};
use super::tui::EditorFlag;
use super::{UsageError, proxy, runtime};
use crate::cli::replay::ReplayArgs;
use crate::config::Config;
use crate::printer::progress::{ProgressBar, REDRAW, ResultPlace};
use crate::printer::{self, stdout_writer};

/// It could not be played at all.
const UNPLAYED: u8 = 2;
/// How many redacted values an error names.
const MOST_PLACES: usize = 8;

/// Plays, compares, and says what it found. What could not be played at all does not count as a difference.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    replay_and_compare(args).or_else(|error| {
        printer::fail(&error);
        Ok(ExitCode::from(UNPLAYED))
    })
}

fn replay_and_compare(args: &ReplayArgs) -> Result<ExitCode> {
    if !args.proxy.names_server() {
        let record = &args.record;
        let text = format!(
            "which server? Give a URL (mcp-proxy replay {record} http://localhost:3000/mcp) or a command (mcp-proxy replay {record} -- python server.py)"
        );
        return Err(UsageError(text).into());
    }
    let mut config = Config::new(&args.proxy).map_err(|error| UsageError(format!("{error:#}")))?;
    let filter = args.filter.as_deref().unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|error| UsageError(format!("--filter: {error}")))?;
    let ignored = ignored(&args.ignore)?;
    let (script, plans) = plans(args, &filter, ignored)?;
    config.replay_of = Some(script.session().header().id.clone());
    let pace = PlaybackOptions {
        concurrency: args.concurrency,
        speed: args.speed,
        timeout: args.answer_timeout,
    };
    let form = match args.json {
        true => ReportFormat::Json,
        false if plans.len() > 1 => ReportFormat::TextWithConnection,
        false => ReportFormat::Text,
    };
    let on = match plans.len() {
        1 => String::new(),
        count => format!(" on {count} connections"),
    };
    let requests: usize = plans.iter().map(ReplayPlan::requests).sum();
    tools::learn(&config.tools, script.session());
    let played = runtime()
        .context("cannot start")?
        .block_on(play(&config, &script, plans, pace))?;
    let mut report = ReplayReport::default();
    let mut sink = stdout_writer();
    for outcome in &played.outcomes {
        report.add(outcome, script.session(), form, &mut sink)?;
    }
    if !args.json {
        let record = played.record;
        let record = record.map_or(String::new(), |path| format!("; recorded to {path}"));
        let unplayed = match &played.stopped {
            Some(_) => format!(", {} not played", requests - played.outcomes.len()),
            None => String::new(),
        };
        writeln!(
            sink,
            "{requests} requests{on}: {} same, {} different, {} unanswered{unplayed}{record}",
            report.same, report.different, report.unanswered
        )?;
    }
    sink.flush()?;
    if let Some(end) = played.stopped {
        let of = played.outcomes.len();
        let text = format!("{}: {of} of {requests} requests were played", end.why);
        printer::say(&format!("mcp-proxy: {text}"));
        return Ok(end.code);
    }
    for (connection, failure) in &played.failures {
        let of = match form {
            ReportFormat::Text => String::new(),
            _ => format!("connection c{connection}: "),
        };
        printer::say(&format!("mcp-proxy: {of}{failure}"));
    }
    if !played.failures.is_empty() && !played.outcomes.iter().any(|outcome| outcome.is_answered) {
        return Ok(ExitCode::from(UNPLAYED));
    }
    Ok(match report.different + report.unanswered {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The paths of `--ignore`.
fn ignored(paths: &[String]) -> Result<Vec<IgnoredPath>, UsageError> {
    let paths = paths.iter().map(|path| {
        IgnoredPath::parse(path).map_err(|why| {
            UsageError(format!(
                "--ignore {path:?}: {why}; write a path as a difference shows it: $.result.content[*].text"
            ))
        })
    });
    paths.collect()
}

fn plans(
    args: &ReplayArgs,
    filter: &Filter,
    ignored: Vec<IgnoredPath>,
) -> Result<(Arc<ReplayScript>, Vec<ReplayPlan>)> {
    let path = record_lookup::find(&args.record)?;
    let cannot = || format!("cannot read {}", args.record);
    let session = SessionRecord::open(&path).with_context(cannot)?;
    report_damage(&session);
    let known = ReplayPlan::connections(&session);
    if known.is_empty() {
        anyhow::bail!("this record has no messages of a client");
    }
    if let Some(number) = args.connection.iter().find(|it| !known.contains(it)) {
        let known: Vec<String> = known.iter().map(|number| format!("c{number}")).collect();
        anyhow::bail!(
            "connection c{number} has no messages of a client; there are: {}",
            known.join(", ")
        );
    }
    let connections = match args.connection.is_empty() {
        true => &known,
        false => &args.connection,
    };
    let mut fills = RedactionFills::new();
    for fill in &args.fill {
        let values = fills.entry(fill.sequence).or_default();
        values.insert(fill.mark, fill.value.clone());
    }
    let script = ReplayScript::new(session, fills, ignored);
    let plans = ReplayPlan::read(&script, connections, filter).with_context(cannot)?;
    let redacted: Vec<_> = plans.iter().flat_map(|plan| &plan.redacted).collect();
    if !redacted.is_empty() {
        let places = redacted.iter().flat_map(|(sequence, marks)| {
            marks
                .iter()
                .map(move |mark| format!("--fill {sequence}:{mark}=…"))
        });
        let places: Vec<String> = places.take(MOST_PLACES).collect();
        anyhow::bail!(
            "values of {} message(s) were redacted; give them ({}), or leave the messages out with --filter",
            redacted.len(),
            places.join(" ")
        );
    }
    if plans.is_empty() {
        anyhow::bail!("no message of a client matches");
    }
    Ok((script, plans))
}

/// What came of it.
struct ReplaySummary {
    /// In the order of the old record.
    outcomes: Vec<ReplayOutcome>,
    /// Connections on which the server answered nothing, and why.
    failures: Vec<(u32, String)>,
    /// Where it was recorded.
    record: Option<String>,
    /// What stopped it before its end.
    stopped: Option<RunEnd>,
}

async fn play(
    config: &Config,
    script: &Arc<ReplayScript>,
    plans: Vec<ReplayPlan>,
    pace: PlaybackOptions,
) -> Result<ReplaySummary> {
    let signals = RunSignals::new(HangupMeaning::Stop).context("cannot watch for signals")?;
    let mut stop = signals.into_stop_request(None, EditorFlag::default());
    let recording = proxy::open(config)?;
    if let Some(warning) = &recording.warning {
        printer::say(warning);
    }
    let run = ProxyRun::new(RunOptions {
        recorder: recording.recorder,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: false,
        hold: config.hold,
    });
    run.memory().set_limit(config.limits.memory);
    let dial = proxy::dial(config).inspect_err(|_| run.discard_empty_record())?;
    let options = proxy::carry_options(config.limits);
    let requests: usize = plans.iter().map(ReplayPlan::requests).sum();
    let stage = ReplaySchedule::new(&plans, pace);
    let cast = plans.into_iter().map(|plan| {
        let (number, first) = (plan.connection, plan.messages.first());
        let first = first.map_or(0, |line| line.sequence);
        (number, first, player_link(script, plan, &stage))
    });
    let cast: Vec<_> = cast.collect();
    let players: Vec<_> = cast
        .iter()
        .map(|(.., (_, player))| Arc::clone(player))
        .collect();
    let mut progress = ProgressBar::new("replaying", ResultPlace::Elsewhere);
    let drawing = tokio::spawn(async move {
        loop {
            let over: usize = players.iter().map(|player| player.finished_count()).sum();
            progress.tell(over as u64, requests as u64);
            tokio::time::sleep(REDRAW).await;
        }
    });
    let mut sessions = JoinSet::new();
    let (halt, halted) = watch::channel(());
    let mut halt = Some(halt);
    let mut stopped = None;
    for (number, first, (client, player)) in cast {
        // A session is opened when its time has come, and ends after its last answer: no more are open than were then.
        tokio::select! {
            () = stage.wait_until_reached(first) => {}
            end = stop.wait() => {
                stopped = Some(end);
                break;
            }
        }
        let connection = run.connect(config.client(), config.target.peer());
        let dial = Arc::clone(&dial);
        let mut halted = halted.clone();
        sessions.spawn(async move {
            let server = tokio::select! {
                dialed = dial(Arc::clone(&connection)) => dialed.unwrap_or_else(Link::dead),
                () = gone(&mut halted) => Link::dead(LinkEnd::Closed),
            };
            let end = carry(&connection, client, server, options, gone(&mut halted)).await;
            connection.close(end.text());
            (number, end, player.outcomes())
        });
    }
    let mut ends = Vec::new();
    while !sessions.is_empty() {
        if stopped.is_some() && halt.take().is_some() {
            // What is open now is not awaited; servers are stopped as when a proxy ends.
            stage.stop();
        }
        tokio::select! {
            Some(ended) = sessions.join_next() => ends.push(ended.context("a session broke off")?),
            end = stop.wait(), if stopped.is_none() => stopped = Some(end),
        }
    }
    ends.sort_by_key(|(number, ..)| *number);
    drawing.abort();
    // Its bar is gone once it is: results follow on the same screen.
    let _ = drawing.await;
    let mut outcomes = Vec::new();
    let mut failures = Vec::new();
    for (number, end, mut of_one) in ends {
        if let CarryEnd::Failed(failure) = end
            && !of_one.iter().any(|outcome| outcome.is_answered)
        {
            failures.push((number, failure.text));
        }
        outcomes.append(&mut of_one);
    }
    outcomes.sort_by_key(|outcome| outcome.sequence);
    if stopped.is_some() {
        outcomes.retain(|outcome| stage.was_played(outcome.sequence));
    }
    let why = stopped.as_ref().map(|end| end.why.as_str());
    run.end(why.unwrap_or("the replay is over"));
    Ok(ReplaySummary {
        outcomes,
        failures,
        record: recording.about.path.map(|path| path.display().to_string()),
        stopped,
    })
}

/// Resolves when the other end of the channel is gone.
async fn gone(halted: &mut watch::Receiver<()>) {
    while halted.changed().await.is_ok() {}
}
