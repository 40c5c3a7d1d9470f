//! What the figures mean, in a few sentences.

use mcp_proxy_hub::savings::{BreakEven, ExposureReport, LookupAnswer};

use super::text::count_of;
use crate::run::sessions::formatting::grouped;

pub(super) fn sentences(report: &ExposureReport) -> Vec<String> {
    let evens = report.break_evens();
    let mut sentences = match evens.iter().all(|even| even.saved().is_none()) {
        true => vec![direct_is_cheapest(report, &evens)],
        false => evens.iter().map(|even| compared(report, even)).collect(),
    };
    let from: Vec<String> = evens
        .iter()
        .filter_map(|even| {
            let tools = count_of(even.pays_from_tools?, "tool");
            Some(format!("`{}` with {tools} or more", even.mode.as_str()))
        })
        .collect();
    if !from.is_empty() {
        sentences.push(format!(
            "For tools of this size, these lists are shorter than direct exposure: {}.",
            from.join(", ")
        ));
    }
    sentences.push(
        "What a model looks up stays in its context like the list. Calls through these tools are also a little longer \
         than direct ones; with a record, `savings` counts that too."
            .to_owned(),
    );
    sentences
}

fn direct_is_cheapest(report: &ExposureReport, evens: &[BreakEven]) -> String {
    let (these, them, cost) = match report.tools {
        1 => ("This tool".to_owned(), "it", "costs"),
        tools => (
            format!("These {}", count_of(tools as u64, "tool")),
            "them",
            "cost",
        ),
    };
    let alone: Vec<String> = evens
        .iter()
        .map(|even| format!("`{}` alone costs {}", even.mode.as_str(), grouped(even.own)))
        .collect();
    let direct = evens.first().map_or(0, |even| even.direct);
    format!(
        "{these} {cost} {} listed directly; {}: expose {them} directly (`--expose all`).",
        count_of(direct, "token"),
        alone.join(", ")
    )
}

fn compared(report: &ExposureReport, even: &BreakEven) -> String {
    let mode = even.mode.as_str();
    let Some(saved) = even.saved() else {
        return format!(
            "`{mode}` alone costs {}, no less than all tools listed directly ({}).",
            count_of(even.own, "token"),
            grouped(even.direct)
        );
    };
    let (paid, unpaid): (Vec<_>, Vec<_>) = even
        .lookups
        .iter()
        .copied()
        .partition(|(_, times)| *times > 0);
    let paid: Vec<String> = paid
        .into_iter()
        .map(|(answer, times)| {
            let each = grouped(tokens_of(report, answer));
            format!("{} `{}` ({each} each)", grouped(times), answer.action())
        })
        .collect();
    let mut sentence = format!("`{mode}` saves {}", count_of(saved, "token"));
    if !paid.is_empty() {
        sentence.push_str(&format!(": enough for {}", paid.join(" or ")));
    }
    sentence.push('.');
    for (answer, _) in unpaid {
        sentence.push_str(&format!(
            " One `{}` ({}) costs more than that, so direct exposure is cheaper for a model that needs one.",
            answer.action(),
            grouped(tokens_of(report, answer))
        ));
    }
    sentence
}

fn tokens_of(report: &ExposureReport, answer: LookupAnswer) -> u64 {
    let cost = report.lookups.iter().find(|cost| cost.answer == answer);
    cost.map_or(0, |cost| cost.size.tokens())
}
