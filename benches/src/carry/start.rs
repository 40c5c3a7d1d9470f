//! The case `start`: how long from starting a process to its first answered `initialize`, and what it then weighs.

use std::time::Instant;

use anyhow::{Context, Result};

use super::MeasurePlan;
use crate::canned::{AnswerSize, BenchEra};
use crate::cases::{GUARD_MB, IDLE_MB, START, START_MS, STARTERS};
use crate::contender::{BenchSetup, ContenderKind, TransportPair};
use crate::load::{self, Measurement};
use crate::report::{BenchReport, ContenderFigures, GoalRow, GoalVerdict};
use crate::rounds::medians;
use crate::usage;

pub fn measure(setup: &BenchSetup, plan: &MeasurePlan, report: &mut BenchReport) {
    for shape in TransportPair::ALL {
        let mut figures = measure_shape(setup, plan, shape);
        let median_of = |who: ContenderKind| {
            figures
                .iter()
                .find(|figure| figure.who == who.name())
                .map(|figure| figure.median)
        };
        let own = median_of(ContenderKind::Proxy).unwrap_or_default();
        let floor = median_of(ContenderKind::Floor).unwrap_or_default();
        let failure = figures
            .iter()
            .find(|figure| figure.who == ContenderKind::Proxy.name())
            .and_then(|own| own.failure.clone());
        let mut row = |what: &str, unit, value: Option<f64>, most: f64, floor: Option<f64>| {
            report.rows.push(GoalRow {
                case: format!("{START} {}", shape.name()),
                what: what.to_owned(),
                unit,
                value,
                goal: format!("≤ {most:.0} {unit}"),
                floor: floor.map(|floor| format!("{floor:.1} {unit}")),
                verdict: GoalVerdict::from(value.is_some_and(|value| value <= most)),
                note: failure.clone(),
                ..GoalRow::default()
            });
        };
        row(
            "start to first answer",
            "ms",
            own.start_ms,
            START_MS,
            floor.start_ms,
        );
        row("idle memory", "MB", own.idle_mb, IDLE_MB, floor.idle_mb);
        if own.guard_private_mb.is_some() {
            row(
                "guard's private memory",
                "MB",
                own.guard_private_mb,
                GUARD_MB,
                None,
            );
        }
        report.figures.append(&mut figures);
    }
}

fn measure_shape(
    setup: &BenchSetup,
    plan: &MeasurePlan,
    shape: TransportPair,
) -> Vec<ContenderFigures> {
    let takes_part = |who: ContenderKind| {
        setup.has(who, shape, BenchEra::Legacy)
            && !(who == ContenderKind::Direct && shape.client_is_http())
    };
    let blank = |who: &ContenderKind| ContenderFigures {
        case: format!("{START} {}", shape.name()),
        who: who.name(),
        ..ContenderFigures::default()
    };
    let starters: Vec<ContenderKind> = STARTERS
        .iter()
        .copied()
        .filter(|who| takes_part(*who))
        .collect();
    let mut figures: Vec<ContenderFigures> = starters.iter().map(blank).collect();
    for _ in 0..plan.starts {
        for (who, figure) in starters.iter().zip(&mut figures) {
            match start_once(setup, *who, shape) {
                Ok(sample) => figure.samples.push(sample),
                Err(error) => {
                    eprintln!("{} {}: {error:#}", figure.case, figure.who);
                    figure.failure = Some(format!("{error:#}"));
                }
            }
        }
    }
    for figure in &mut figures {
        figure.median = medians(&figure.samples);
        eprintln!(
            "{} {}: {:.2} ms",
            figure.case,
            figure.who,
            figure.median.start_ms.unwrap_or(f64::NAN)
        );
    }
    figures
}

fn start_once(setup: &BenchSetup, who: ContenderKind, shape: TransportPair) -> Result<Measurement> {
    let start = Instant::now();
    let mut contender = setup.start(who, shape, AnswerSize::Small)?;
    let running = contender
        .running
        .as_mut()
        .context("a contender that starts has a process")?;
    match &contender.target {
        Some(target) => load::open_once(target)?,
        None => load::open_once_stdio(running)?,
    }
    let start_ms = start.elapsed().as_secs_f64() * 1000.0;
    let usage = usage::of_tree(running.child.id());
    Ok(Measurement {
        start_ms: Some(start_ms),
        idle_mb: (who != ContenderKind::Direct).then_some(usage.proxy.resident_megabytes),
        guard_private_mb: usage.guard.map(|guard| guard.private_megabytes),
        ..Measurement::default()
    })
}
