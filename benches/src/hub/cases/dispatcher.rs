//! The cases of the tool `proxy-dispatch`: its calls, results that it keeps in files, and parts of them that are read.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::{goals, load_plan, measure_call_through, run_calls, weighed};
use crate::canned::AnswerSize;
use crate::contender::ContenderKind;
use crate::hub::setup::{HubSetup, RunningHub, ServerTools};
use crate::hub::{HubPlan, calls};
use crate::load::{
    self, KeptResult, LoadPlan, Measurement, OtherHabit, OtherSession, PacedTransfers, ResultPart,
};
use crate::rounds::{CaseResults, in_rounds};

/// Sessions with small calls next to the one with large results. Few, so that they do not fill the machine by themselves.
const SMALL_SESSIONS: usize = 4;

/// How often a server next to the hub sends a large result, where that is all that disturbs: less often than the hub keeps
/// them in files.
const TRANSFER_PERIOD: Duration = Duration::from_millis(100);

pub(super) fn measure_calls(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let call = calls::through_dispatcher();
    let through = ContenderKind::Dispatcher;
    measure_call_through(goals::DISPATCHER, setup, plan, through, &call)
}

/// `Proxy` is the small calls while the session with the large results rests.
pub(super) fn measure_spills(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let who = [
        ContenderKind::ServerAlone,
        ContenderKind::Spilling,
        ContenderKind::Proxy,
        ContenderKind::DuringSpills,
        ContenderKind::DuringTransfers,
    ];
    let large = LoadPlan {
        size: AnswerSize::TenMegabytesOfRecords,
        ..load_plan(plan, 1)
    };
    let spilled = calls::to_file(large.size);
    in_rounds(goals::SPILL, plan.rounds, who.into_iter(), |who| {
        if who == ContenderKind::ServerAlone {
            return setup.measure_server(&large);
        }
        let hub = start(setup)?;
        let transfers = match who {
            ContenderKind::DuringTransfers => Some(setup.start_transfers(&large, TRANSFER_PERIOD)?),
            _ => None,
        };
        let habit = match who {
            ContenderKind::DuringSpills => OtherHabit::Calls,
            ContenderKind::Proxy | ContenderKind::DuringTransfers => OtherHabit::Rests,
            _ => {
                let idle_mb = weighed(&hub).idle_mb;
                let sample = run_calls(&hub, &large, std::slice::from_ref(&spilled))?;
                return Ok(Measurement { idle_mb, ..sample });
            }
        };
        let other = OtherSession {
            call: &spilled,
            size: large.size,
            habit,
        };
        let small = load_plan(plan, SMALL_SESSIONS);
        let calls = calls::of_other_servers();
        let measured = load::measure_calls_next_to(other, &hub.target, &small, &calls)
            .with_context(|| format!("measurement failed{}", hub.last_words()));
        transfers.map_or(Ok(()), PacedTransfers::finish)?;
        measured
    })
}

/// One result for all rounds.
pub(super) fn measure_readings(setup: &HubSetup, plan: &HubPlan) -> CaseResults {
    let size = AnswerSize::HundredMegabytesOfRecords;
    let made = start(setup).and_then(|hub| {
        let kept = KeptResult::make(&hub.target, &calls::to_file(size), size)
            .with_context(|| format!("the result cannot be made{}", hub.last_words()))?;
        Ok((hub, kept))
    });
    let mut made = made.map_err(|error| format!("{error:#}"));
    let load = load_plan(plan, 1);
    let who = ResultPart::ALL.into_iter().map(ContenderKind::Reading);
    in_rounds(goals::READ_RESULT, plan.rounds, who, |who| {
        let (hub, kept) = made.as_mut().map_err(|text| anyhow!("{text}"))?;
        let ContenderKind::Reading(part) = who else {
            return Err(anyhow!("{} reads no part of a result", who.name()));
        };
        kept.measure(part, &load)
            .with_context(|| format!("measurement failed{}", hub.last_words()))
    })
}

fn start(setup: &HubSetup) -> Result<RunningHub> {
    setup.start(ContenderKind::Dispatcher, ServerTools::Short)
}
