//! `replay`: recorded clients before a live server, and what is answered differently.

mod tools;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::replay::diff::{Difference, Ignore};
use mcp_proxy_core::replay::{Fills, Outcome, Pace, Plan, Script, Stage, Verdict, player};
use mcp_proxy_core::{CarryEnd, Link, Pipeline, PipelineOptions, carry};
use mcp_proxy_session::{Filter, Session};
use mcp_proxy_wire::{Limits, Transport};
use tokio::task::JoinSet;

use super::sessions::{named, report_damage};
use super::{Usage, proxy, runtime};
use crate::cli::replay::ReplayArgs;
use crate::config::Config;
use crate::printer::progress::{Progress, REDRAW, Results};
use crate::printer::{self, out};
use mcp_proxy_wire::visible::visible;

/// It could not be played at all.
const UNPLAYED: u8 = 2;
/// So many redacted values are named.
const MOST_PLACES: usize = 8;
/// Texts in the list of differences are cut here.
const SHOWN: usize = 60;

/// Plays, compares, and says what it found. What could not be played at all is no difference.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    played(args).or_else(|error| {
        printer::fail(&error);
        Ok(ExitCode::from(UNPLAYED))
    })
}

fn played(args: &ReplayArgs) -> Result<ExitCode> {
    let config = Config::new(&args.proxy).map_err(|error| Usage(format!("{error:#}")))?;
    let filter = args.filter.as_deref().unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|error| Usage(format!("--filter: {error}")))?;
    let ignored = ignored(&args.ignore)?;
    let (script, plans) = plans(args, &filter, ignored)?;
    let pace = Pace {
        concurrency: args.concurrency,
        speed: args.speed,
        timeout: args.answer_timeout,
    };
    let form = match args.json {
        true => Form::Json,
        false if plans.len() > 1 => Form::TextOfSeveral,
        false => Form::Text,
    };
    let on = match plans.len() {
        1 => String::new(),
        count => format!(" on {count} connections"),
    };
    let requests: usize = plans.iter().map(Plan::requests).sum();
    tools::learn(&config.tools, script.session());
    let played = runtime()
        .context("cannot start")?
        .block_on(play(&config, &script, plans, pace))?;
    let mut report = Report::default();
    let mut sink = out();
    for outcome in &played.outcomes {
        report.add(outcome, script.session(), form, &mut sink)?;
    }
    if !args.json {
        let record = played.record;
        let record = record.map_or(String::new(), |path| format!("; recorded to {path}"));
        writeln!(
            sink,
            "{requests} requests{on}: {} same, {} different, {} unanswered{record}",
            report.same, report.different, report.unanswered
        )?;
    }
    sink.flush()?;
    for (connection, failure) in &played.failures {
        let of = match form {
            Form::Text => String::new(),
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
fn ignored(paths: &[String]) -> Result<Vec<Ignore>, Usage> {
    let paths = paths.iter().map(|path| {
        Ignore::parse(path).map_err(|why| {
            Usage(format!(
                "--ignore {path:?}: {why}; write a path as a difference shows it: $.result.content[*].text"
            ))
        })
    });
    paths.collect()
}

fn plans(
    args: &ReplayArgs,
    filter: &Filter,
    ignored: Vec<Ignore>,
) -> Result<(Arc<Script>, Vec<Plan>)> {
    let path = named::find(&args.record)?;
    let cannot = || format!("cannot read {}", args.record);
    let session = Session::open(&path).with_context(cannot)?;
    report_damage(&session);
    let known = Plan::connections(&session);
    if known.is_empty() {
        anyhow::bail!("no client spoke in this record");
    }
    if let Some(number) = args.connection.iter().find(|it| !known.contains(it)) {
        let known: Vec<String> = known.iter().map(|number| format!("c{number}")).collect();
        anyhow::bail!(
            "no client spoke on connection c{number}; there are: {}",
            known.join(", ")
        );
    }
    let connections = match args.connection.is_empty() {
        true => &known,
        false => &args.connection,
    };
    let mut fills = Fills::new();
    for fill in &args.fill {
        let values = fills.entry(fill.sequence).or_default();
        values.insert(fill.mark, fill.value.clone());
    }
    let script = Script::new(session, fills, ignored);
    let plans = Plan::read(&script, connections, filter).with_context(cannot)?;
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
struct Played {
    /// In the order of the old record.
    outcomes: Vec<Outcome>,
    /// Connections on which the server answered nothing, and why.
    failures: Vec<(u32, String)>,
    /// Where it was recorded.
    record: Option<String>,
}

async fn play(
    config: &Config,
    script: &Arc<Script>,
    plans: Vec<Plan>,
    pace: Pace,
) -> Result<Played> {
    let recording = proxy::open(config)?;
    if let Some(warning) = &recording.warning {
        printer::say(warning);
    }
    let pipeline = Pipeline::new(PipelineOptions {
        recorder: recording.recorder,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: false,
        hold: config.hold,
    });
    // The player reads whole messages, whatever their size.
    let limits = Limits {
        cut: usize::MAX,
        max: config.limits.message,
    };
    let dial = proxy::dial(config, limits)?;
    let options = proxy::carry_options(config.limits);
    let requests: usize = plans.iter().map(Plan::requests).sum();
    let stage = Stage::new(&plans, pace);
    let cast = plans.into_iter().map(|plan| {
        let (number, first) = (plan.connection, plan.lines.first());
        let first = first.map_or(0, |line| line.sequence);
        (number, first, player(script, plan, &stage))
    });
    let cast: Vec<_> = cast.collect();
    let players: Vec<_> = cast
        .iter()
        .map(|(.., (_, player))| Arc::clone(player))
        .collect();
    let mut progress = Progress::new("replaying", Results::Apart);
    let drawing = tokio::spawn(async move {
        loop {
            let over: usize = players.iter().map(|player| player.over()).sum();
            progress.tell(over as u64, requests as u64);
            tokio::time::sleep(REDRAW).await;
        }
    });
    let mut sessions = JoinSet::new();
    for (number, first, (client, player)) in cast {
        // A session is opened when its time has come, and ends after its last answer: no more are open than were then.
        stage.reaches(first).await;
        let connection = pipeline.connect(Transport::Stdio, config.target.transport());
        let dial = Arc::clone(&dial);
        sessions.spawn(async move {
            let server = match dial(Arc::clone(&connection)).await {
                Ok(link) => link,
                Err(end) => Link::dead(end),
            };
            let end = carry(&connection, client, server, options, std::future::pending()).await;
            connection.close(end.text());
            (number, end, player.outcomes())
        });
    }
    let mut ends: Vec<_> = sessions.join_all().await;
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
    pipeline.end("the replay is over");
    Ok(Played {
        outcomes,
        failures,
        record: recording.about.path.map(|path| path.display().to_string()),
    })
}

/// How outcomes are shown.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Text,
    /// With the connection of each.
    TextOfSeveral,
}

#[derive(Default)]
struct Report {
    same: usize,
    different: usize,
    unanswered: usize,
}

impl Report {
    fn add(
        &mut self,
        outcome: &Outcome,
        session: &Session,
        form: Form,
        sink: &mut impl Write,
    ) -> std::io::Result<()> {
        let count = match outcome.verdict {
            Verdict::Same => &mut self.same,
            Verdict::Different(_) => &mut self.different,
            Verdict::Unanswered => &mut self.unanswered,
        };
        *count += 1;
        let row = session.row(outcome.row);
        let about = About {
            method: row.and_then(|row| session.method(row)).unwrap_or_default(),
            name: row.and_then(|row| session.name(row)),
        };
        match form {
            Form::Json => writeln!(sink, "{}", object(outcome, &about)),
            _ if outcome.verdict == Verdict::Same => Ok(()),
            Form::Text => print(outcome, "", &about, sink),
            Form::TextOfSeveral => {
                let on = format!("c{} ", outcome.connection);
                print(outcome, &on, &about, sink)
            }
        }
    }
}

/// What a request was about.
struct About<'a> {
    method: &'a str,
    name: Option<&'a str>,
}

/// A verdict in a word, and what is different.
fn told(verdict: &Verdict) -> (&'static str, &[Difference]) {
    match verdict {
        Verdict::Same => ("same", &[]),
        Verdict::Different(differences) => ("different", differences),
        Verdict::Unanswered => ("unanswered", &[]),
    }
}

fn print(
    outcome: &Outcome,
    on: &str,
    about: &About<'_>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let name = about
        .name
        .map_or(String::new(), |name| format!(" [{name}]"));
    let (sequence, method) = (outcome.sequence, about.method);
    let (verdict, differences) = told(&outcome.verdict);
    let text = format!("#{sequence} {on}{method}{name}: {verdict}");
    writeln!(sink, "{}", visible(&text))?;
    for difference in differences {
        let side = |side: &Option<String>| match side {
            Some(text) => visible(&text.chars().take(SHOWN).collect::<String>()),
            None => "nothing".to_owned(),
        };
        let path = visible(&difference.path);
        let (then, now) = (side(&difference.then), side(&difference.now));
        writeln!(sink, "    {path}: {then} != {now}")?;
    }
    Ok(())
}

fn object(outcome: &Outcome, about: &About<'_>) -> serde_json::Value {
    let (verdict, differences) = told(&outcome.verdict);
    let differences: Vec<_> = differences
        .iter()
        .map(|it| serde_json::json!({"path": it.path, "then": it.then, "now": it.now}))
        .collect();
    serde_json::json!({
        "sequence": outcome.sequence,
        "conn": format!("c{}", outcome.connection),
        "method": about.method,
        "name": about.name,
        "verdict": verdict,
        "differences": differences,
    })
}
