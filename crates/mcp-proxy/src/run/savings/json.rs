//! The same as one JSON object.

use std::io::Write;

use anyhow::Result;
use mcp_proxy_hub::config::ExposeMode;
use mcp_proxy_hub::savings::{
    BreakEven, CHARS_PER_TOKEN, EXAMPLE_QUESTION, ExposureReport, TextSize,
};
use serde_json::{Map, Value, json};

use super::record::{AnswerTotal, RecordFigures};
use super::servers::{AskedServer, ServerAnswer};
use super::{DefinitionSource, SavingsReport};
use crate::run::sessions::inspect::write_json;

pub(super) fn write(report: &SavingsReport, out: &mut impl Write) -> Result<()> {
    let mut whole = json!({
        "chars_per_token": CHARS_PER_TOKEN,
        "definitions_from": match report.source {
            DefinitionSource::Servers => "servers",
            DefinitionSource::Record => "record",
        },
        "servers": report.servers.iter().map(server).collect::<Vec<_>>(),
        "tools": report.exposures.as_ref().map_or(0, |exposures| exposures.tools),
        "record": report.record.as_ref().map(record),
    });
    if let (Some(exposures), Some(whole)) = (&report.exposures, whole.as_object_mut()) {
        whole.extend(measured(exposures));
    }
    write_json(out, whole.to_string().as_bytes())
}

fn server(server: &AskedServer) -> Value {
    match &server.answer {
        ServerAnswer::Ready { tools } => {
            json!({"name": server.name, "state": "ready", "tools": tools})
        }
        ServerAnswer::Failed(reason) => {
            json!({"name": server.name, "state": "failed", "error": reason})
        }
    }
}

fn measured(report: &ExposureReport) -> Map<String, Value> {
    let exposures = report.exposures.iter().map(|cost| {
        let expose: Vec<&str> = cost.expose.iter().map(|mode| mode.as_str()).collect();
        json!({
            "expose": expose,
            "pinned": cost.pinned,
            "tools": cost.tools,
            "bytes": cost.size.bytes,
            "tokens": cost.size.tokens(),
        })
    });
    let lookups = report.lookups.iter().map(|cost| {
        json!({
            "expose": cost.answer.mode().as_str(),
            "action": cost.answer.action(),
            "bytes": cost.size.bytes,
            "tokens": cost.size.tokens(),
            "samples": cost.samples,
        })
    });
    let evens = report.break_evens();
    let mut members = Map::new();
    members.insert("list_page_tools".to_owned(), json!(report.page_tools));
    members.insert("exposures".to_owned(), exposures.collect());
    members.insert("lookups".to_owned(), lookups.collect());
    if let Some(example) = report.example {
        let example = json!({
            "question": EXAMPLE_QUESTION,
            "expose": ExposeMode::Proxy.as_str(),
            "bytes": example.bytes,
            "tokens": example.tokens(),
        });
        members.insert("example".to_owned(), example);
    }
    members.insert(
        "break_even".to_owned(),
        evens.iter().map(break_even).collect(),
    );
    members
}

fn break_even(even: &BreakEven) -> Value {
    let lookups = even.lookups.iter();
    let lookups: Map<String, Value> = lookups
        .map(|(answer, times)| (answer.action().to_owned(), json!(times)))
        .collect();
    json!({
        "expose": even.mode.as_str(),
        "tokens": even.own,
        "direct_tokens": even.direct,
        "saved_tokens": even.saved(),
        "shorter_from_tools": even.pays_from_tools,
        "paid_lookups": lookups,
    })
}

fn record(record: &RecordFigures) -> Value {
    let spills = record.spills.iter().map(|spill| {
        json!({
            "threshold": spill.threshold,
            "results": spill.results,
            "kept_out": size(spill.kept_out),
        })
    });
    let exposed = record.exposed.iter().map(|(mode, total)| {
        json!({
            "expose": mode.as_str(),
            "calls": total.count,
            "bytes": total.size.bytes,
            "tokens": total.size.tokens(),
        })
    });
    json!({
        "id": record.id,
        "calls": record.calls,
        "tools_used": record.tools_used,
        "tools_list": total(record.lists),
        "results": total(record.results),
        "exposed_calls": exposed.collect::<Vec<_>>(),
        "spill": spills.collect::<Vec<_>>(),
        "unreadable": record.missing,
    })
}

fn total(total: AnswerTotal) -> Value {
    json!({"count": total.count, "bytes": total.size.bytes, "tokens": total.size.tokens()})
}

fn size(size: TextSize) -> Value {
    json!({"bytes": size.bytes, "tokens": size.tokens()})
}
