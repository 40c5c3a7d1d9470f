//! The case `start`: how long from starting a process to its first answered `initialize`, and what it then weighs.

use std::time::Instant;

use anyhow::{Context, Result};

use super::Plan;
use super::rounds::medians;
use crate::canned::{Era, Size};
use crate::cases::{GUARD_MB, IDLE_MB, START, START_MS, STARTERS};
use crate::contender::{Setup, Shape, Who};
use crate::load::{self, Sample};
use crate::report::{Figure, Report, Row, Verdict};
use crate::usage;

pub fn measure(setup: &Setup, plan: &Plan, report: &mut Report) {
    for shape in Shape::ALL {
        let mut figures = measure_shape(setup, plan, shape);
        let median_of = |who: Who| {
            figures
                .iter()
                .find(|figure| figure.who == who.name())
                .map(|figure| figure.median)
        };
        let own = median_of(Who::Proxy).unwrap_or_default();
        let floor = median_of(Who::Floor).unwrap_or_default();
        let failure = figures
            .iter()
            .find(|figure| figure.who == Who::Proxy.name())
            .and_then(|own| own.failure.clone());
        let mut row = |what: &str, unit, value: Option<f64>, most: f64, floor: Option<f64>| {
            report.rows.push(Row {
                case: format!("{START} {}", shape.name()),
                what: what.to_owned(),
                unit,
                value,
                goal: format!("≤ {most:.0} {unit}"),
                floor: floor.map(|floor| format!("{floor:.1} {unit}")),
                verdict: Verdict::from(value.is_some_and(|value| value <= most)),
                note: failure.clone(),
                ..Row::default()
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

fn measure_shape(setup: &Setup, plan: &Plan, shape: Shape) -> Vec<Figure> {
    let takes_part = |who: Who| {
        setup.has(who, shape, Era::Legacy) && !(who == Who::Direct && shape.client_is_http())
    };
    let blank = |who: &Who| Figure {
        case: format!("{START} {}", shape.name()),
        who: who.name(),
        ..Figure::default()
    };
    let starters: Vec<Who> = STARTERS
        .iter()
        .copied()
        .filter(|who| takes_part(*who))
        .collect();
    let mut figures: Vec<Figure> = starters.iter().map(blank).collect();
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

fn start_once(setup: &Setup, who: Who, shape: Shape) -> Result<Sample> {
    let start = Instant::now();
    let mut contender = setup.start(who, shape, Size::Small)?;
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
    Ok(Sample {
        start_ms: Some(start_ms),
        idle_mb: (who != Who::Direct).then_some(usage.proxy.resident_megabytes),
        guard_private_mb: usage.guard.map(|guard| guard.private_megabytes),
        ..Sample::default()
    })
}
