//! `rules check`: reads a file of rules, and shows what it would have done to a record.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Error, Result};
use mcp_proxy_core::rules::{RuleEffect, RuleName, RuleOutcome, RuleVerdict, Rules};
use mcp_proxy_session::{MessageFacts, SessionRecord};
use mcp_proxy_wire::{Direction, Message, Origin, flatten};
use serde_json::{Value, json};

use super::table::MessageTable;
use super::{count_of, ignore_broken_pipe, record_lookup, report_damage};
use crate::cli::rules::{CheckArgs, RulesCommand};
use crate::printer;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};

/// Runs one of the commands.
pub fn run(command: &RulesCommand) -> Result<ExitCode> {
    match command {
        RulesCommand::Check(args) => ignore_broken_pipe(check(args)),
    }
}

fn check(args: &CheckArgs) -> Result<ExitCode> {
    let rules = Rules::read(&args.file).map_err(Error::msg)?;
    let mut out = printer::stdout_writer();
    let Some(record) = &args.record else {
        list(&rules, args, &mut out)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    };
    let session = SessionRecord::open(record_lookup::find(record)?)?;
    let header = session.header();
    let target = header
        .server_command
        .as_ref()
        .or(header.server_url.as_ref());
    let server = args.server.as_ref().or(target);
    let rules = rules.for_server(server.map_or("", String::as_str));
    let mut tally = RuleTally::default();
    let mut table = MessageTable::new(printer::colours());
    let own = own_connections(&session);
    for index in 0..session.len() {
        let verdict = session.with_facts(index, |facts| {
            // Rules never see what the proxy makes, nor what it asks and hears on a session of its own.
            let of_peer = facts.origin == Origin::from(facts.direction.from());
            let unseen = !of_peer || own.contains(&facts.connection);
            let verdict = (!unseen).then(|| rules.judge(facts)).flatten();
            let line = args.json.then(|| described(facts, verdict.as_ref()));
            (verdict, line)
        })?;
        tally.add(verdict.0.as_ref());
        match verdict {
            (None, _) if !args.all => {}
            (_, Some(line)) => write_json(&mut out, &line)?,
            (verdict, None) => {
                table.row(&session, index, &mut out)?;
                for text in verdict.iter().flat_map(verdict_lines) {
                    writeln!(out, "       {}", sanitize(&text))?;
                }
            }
        }
    }
    if !args.json {
        tally.write(&rules, session.len() as u64, &mut out)?;
    }
    out.flush()?;
    report_damage(&session);
    Ok(ExitCode::from(u8::from(tally.failed)))
}

/// The connections that the proxy opened by itself, for a replay or a redirect: no client has said anything there.
fn own_connections(session: &SessionRecord) -> BTreeSet<u32> {
    let mut own = BTreeSet::new();
    let mut of_clients = BTreeSet::new();
    let rows = (0..session.len()).filter_map(|index| session.row(index));
    for row in rows.filter(|row| row.direction() == Direction::ClientToServer) {
        match row.is_from_peer() {
            true => of_clients.insert(row.connection()),
            false => own.insert(row.connection()),
        };
    }
    &own - &of_clients
}

/// The rules themselves.
fn list(rules: &Rules, args: &CheckArgs, out: &mut impl Write) -> Result<()> {
    for rule in rules.list() {
        if args.json {
            let line = json!({
                "rule": rule.name.number,
                "name": rule.name.name,
                "line": rule.line,
                "does": rule.to_string(),
            });
            write_json(out, &line.to_string())?;
        } else {
            writeln!(
                out,
                "{}: {}",
                sanitize(&rule.name.to_string()),
                sanitize(&rule.to_string())
            )?;
        }
    }
    if !args.json {
        let number = count_of(rules.list().len() as u64, "rule", "rules");
        writeln!(out, "\n{number}, and nothing is wrong")?;
    }
    Ok(())
}

/// What the rules do with a message, a line for each.
fn verdict_lines(verdict: &RuleVerdict) -> Vec<String> {
    let mut lines: Vec<String> = verdict.applied.iter().map(ToString::to_string).collect();
    let text = |message: &Message| String::from_utf8_lossy(message.raw()).into_owned();
    match &verdict.outcome {
        RuleOutcome::Answer(answer) => lines.push(format!("back {}", text(answer))),
        RuleOutcome::Pass | RuleOutcome::Redirect(_) => {
            lines.extend(
                verdict
                    .message
                    .as_ref()
                    .map(|message| format!("on {}", text(message))),
            );
        }
        RuleOutcome::Drop => {}
    }
    lines
}

/// The same as JSON.
fn described(facts: &MessageFacts<'_>, verdict: Option<&RuleVerdict>) -> String {
    let applied = verdict.map_or(&[][..], |verdict| &verdict.applied);
    let rules: Vec<Value> = applied
        .iter()
        .map(|applied| {
            json!({
                "rule": applied.rule.number,
                "name": applied.rule.name,
                "does": applied.effect.verb(),
                "why": applied.effect.to_string(),
            })
        })
        .collect();
    let outcome = verdict.map(|verdict| &verdict.outcome);
    let (word, answer, server) = match outcome {
        None | Some(RuleOutcome::Pass) => ("pass", None, None),
        Some(RuleOutcome::Answer(answer)) => ("answer", Some(answer), None),
        Some(RuleOutcome::Drop) => ("drop", None, None),
        Some(RuleOutcome::Redirect(server)) => ("redirect", None, Some(server)),
    };
    let mut line = json!({
        "sequence": facts.sequence,
        "direction": facts.direction.as_str(),
        "method": facts.method(),
        "name": facts.name(),
        "rules": rules,
        "outcome": word,
        "delay_ms": verdict.map_or(0, |verdict| verdict.delay.as_millis() as u64),
        "server": server,
    })
    .to_string();
    // The forwarded message if it was changed, and what its sender gets: byte for byte, so they are put in last.
    let changed = verdict.and_then(|verdict| verdict.message.as_ref());
    for (key, message) in [("raw", changed), ("answer", answer)] {
        let Some(message) = message.filter(|message| message.is_json()) else {
            continue;
        };
        let message = flatten(message).unwrap_or_else(|| message.clone());
        line.pop();
        line.push_str(&format!(
            ",\"{key}\":{}}}",
            String::from_utf8_lossy(message.raw())
        ));
    }
    line
}

fn write_json(out: &mut impl Write, line: &str) -> Result<()> {
    if printer::stdout_is_terminal() {
        writeln!(out, "{}", sanitize_json(line))?;
    } else {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// How often each rule did something.
#[derive(Default)]
struct RuleTally {
    messages: u64,
    times: Vec<(RuleName, u64)>,
    failed: bool,
}

impl RuleTally {
    fn add(&mut self, verdict: Option<&RuleVerdict>) {
        let Some(verdict) = verdict else { return };
        self.messages += 1;
        for applied in &verdict.applied {
            self.failed |= matches!(applied.effect, RuleEffect::Failed(_) | RuleEffect::TooSlow);
            match self
                .times
                .iter_mut()
                .find(|(rule, _)| *rule == applied.rule)
            {
                Some((_, times)) => *times += 1,
                None => self.times.push((applied.rule.clone(), 1)),
            }
        }
    }

    fn write(&self, rules: &Rules, all: u64, out: &mut impl Write) -> Result<()> {
        if self.messages > 0 {
            writeln!(out)?;
        }
        writeln!(
            out,
            "{} of {}",
            self.messages,
            count_of(all, "message", "messages")
        )?;
        for rule in rules.list() {
            let times = self.times.iter().find(|(name, _)| *name == rule.name);
            let times = count_of(times.map_or(0, |(_, times)| *times), "time", "times");
            writeln!(out, "{}: {times}", sanitize(&rule.name.to_string()))?;
        }
        Ok(())
    }
}
