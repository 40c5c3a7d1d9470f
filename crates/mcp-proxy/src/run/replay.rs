//! `replay`: a recorded client before a live server, and what is answered differently.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::replay::diff::{Difference, Ignore, diff};
use mcp_proxy_core::replay::{Fills, Outcome, Pace, Plan, player};
use mcp_proxy_core::{CarryEnd, Link, Pipeline, PipelineOptions, carry};
use mcp_proxy_session::{Filter, Session};
use mcp_proxy_wire::{ErrorCode, Limits, Transport};

use super::{Usage, proxy, runtime, sessions::named};
use crate::cli::replay::ReplayArgs;
use crate::config::Config;
use crate::printer::progress::{Progress, REDRAW};
use crate::printer::{self, out};
use mcp_proxy_wire::visible::visible;

/// It could not be played at all.
const UNPLAYED: u8 = 2;
/// So many redacted values are named.
const MOST_PLACES: usize = 8;
/// Texts in the list of differences are cut here.
const SHOWN: usize = 60;

/// Plays, compares, and says what it found.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let config = Config::new(&args.proxy).map_err(|error| Usage(format!("{error:#}")))?;
    let filter = args.filter.as_deref().unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|error| Usage(format!("--filter: {error}")))?;
    let plan = plan(args, &filter)?;
    let ignored: Vec<Ignore> = args.ignore.iter().map(|path| Ignore::parse(path)).collect();
    let pace = Pace {
        concurrency: args.concurrency,
        speed: args.speed,
        timeout: args.answer_timeout,
    };
    let requests = plan.requests();
    let (end, outcomes, record) = runtime()
        .context("cannot start")?
        .block_on(play(&config, plan, pace))?;
    let mut report = Report::default();
    let mut sink = out();
    for outcome in &outcomes {
        report.add(outcome, &ignored, args.json, &mut sink)?;
    }
    if !args.json {
        let record = record.map_or(String::new(), |path| format!("; recorded to {path}"));
        writeln!(
            sink,
            "{requests} requests: {} same, {} different, {} unanswered{record}",
            report.same, report.different, report.unanswered
        )?;
    }
    sink.flush()?;
    if let CarryEnd::Failed(failure) = end
        && !outcomes.iter().any(is_answered)
    {
        printer::say(&format!("mcp-proxy: {}", failure.text));
        return Ok(ExitCode::from(UNPLAYED));
    }
    Ok(match report.different + report.unanswered {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Whether the server itself answered: an error of ours says that it did not.
fn is_answered(outcome: &Outcome) -> bool {
    let own = |code| ErrorCode::OWN.iter().any(|own| own.code.0 == code);
    let answer = outcome.now.as_ref();
    answer.is_some_and(|answer| !answer.error_code().is_some_and(own))
}

fn plan(args: &ReplayArgs, filter: &Filter) -> Result<Plan> {
    let path = named::find(&args.record)?;
    let cannot = || format!("cannot read {}", args.record);
    let session = Session::open(&path).with_context(cannot)?;
    let connections = Plan::connections(&session).with_context(cannot)?;
    let connection = match args.connection {
        Some(number) if connections.contains(&number) => number,
        Some(number) => {
            let known: Vec<String> = connections.iter().map(u32::to_string).collect();
            anyhow::bail!(
                "no client spoke on connection {number}; there are: {}",
                known.join(", ")
            )
        }
        None => *connections
            .first()
            .context("no client spoke in this record")?,
    };
    let mut fills = Fills::new();
    for fill in &args.fill {
        let values = fills.entry(fill.sequence).or_default();
        values.insert(fill.mark, fill.value.clone());
    }
    let plan = Plan::read(&session, connection, filter, &fills).with_context(cannot)?;
    if !plan.redacted.is_empty() {
        let places = plan.redacted.iter().flat_map(|(sequence, marks)| {
            marks
                .iter()
                .map(move |mark| format!("--fill {sequence}:{mark}=…"))
        });
        let places: Vec<String> = places.take(MOST_PLACES).collect();
        anyhow::bail!(
            "values of {} message(s) were redacted; give them ({}), or leave the messages out with --filter",
            plan.redacted.len(),
            places.join(" ")
        );
    }
    if plan.lines.is_empty() {
        anyhow::bail!("no message of the client matches");
    }
    Ok(plan)
}

async fn play(
    config: &Config,
    plan: Plan,
    pace: Pace,
) -> Result<(CarryEnd, Vec<Outcome>, Option<String>)> {
    let recording = proxy::open(config)?;
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
    let connection = pipeline.connect(Transport::Stdio, config.target.transport());
    let requests = plan.requests();
    let (client, player) = player(plan, pace);
    let server = match dial(Arc::clone(&connection)).await {
        Ok(link) => link,
        Err(end) => Link::dead(end),
    };
    let options = proxy::carry_options(config.limits);
    let (over, mut progress) = (Arc::clone(&player), Progress::new("replaying", true));
    let drawing = tokio::spawn(async move {
        loop {
            progress.tell(over.over() as u64, requests as u64);
            tokio::time::sleep(REDRAW).await;
        }
    });
    let end = carry(&connection, client, server, options, std::future::pending()).await;
    drawing.abort();
    // Its bar is gone once it is: results follow on the same screen.
    let _ = drawing.await;
    connection.close(end.text());
    pipeline.end(end.text());
    let record = recording.about.path.map(|path| path.display().to_string());
    Ok((end, player.outcomes(), record))
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
        ignored: &[Ignore],
        json: bool,
        sink: &mut impl Write,
    ) -> std::io::Result<()> {
        let differences = match (&outcome.then, &outcome.now) {
            (Some(then), Some(now)) => diff(then, now, ignored),
            _ => Vec::new(),
        };
        let verdict = match (&outcome.then, &outcome.now) {
            (None, None) => "same",
            (_, None) => "unanswered",
            (None, Some(_)) => "different",
            _ if differences.is_empty() => "same",
            _ => "different",
        };
        match verdict {
            "same" => self.same += 1,
            "different" => self.different += 1,
            _ => self.unanswered += 1,
        }
        if json {
            writeln!(sink, "{}", object(outcome, verdict, &differences))
        } else if verdict != "same" {
            print(outcome, verdict, &differences, sink)
        } else {
            Ok(())
        }
    }
}

fn print(
    outcome: &Outcome,
    verdict: &str,
    differences: &[Difference],
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let name = outcome
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" [{name}]"));
    let text = format!("#{} {}{name}: {verdict}", outcome.sequence, outcome.method);
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

fn object(outcome: &Outcome, verdict: &str, differences: &[Difference]) -> serde_json::Value {
    let differences: Vec<_> = differences
        .iter()
        .map(|it| serde_json::json!({"path": it.path, "then": it.then, "now": it.now}))
        .collect();
    serde_json::json!({
        "sequence": outcome.sequence,
        "method": outcome.method,
        "name": outcome.name,
        "verdict": verdict,
        "differences": differences,
    })
}
