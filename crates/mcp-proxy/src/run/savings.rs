//! `savings`: what each exposure costs, from real definitions, and what a record's results cost.

mod json;
mod record;
mod servers;
mod text;
mod verdict;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_hub::ViewFilter;
use mcp_proxy_hub::dispatch_tool::DispatchToolOptions;
use mcp_proxy_hub::proxy_tool::ProxyToolOptions;
use mcp_proxy_hub::savings::{ExposureReport, MeasuredCatalog};

use super::sessions::ignore_broken_pipe;
use crate::cli::savings::SavingsArgs;
use crate::printer;
use record::RecordFigures;
use servers::{AskedServer, ServerAnswer};

/// Everything that is shown.
struct SavingsReport {
    /// The servers that were started; none for a record alone.
    servers: Vec<AskedServer>,
    source: DefinitionSource,
    /// `None` if there are no definitions.
    exposures: Option<ExposureReport>,
    record: Option<RecordFigures>,
}

/// Where definitions come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefinitionSource {
    Servers,
    Record,
}

/// Shows it.
pub fn run(args: &SavingsArgs) -> Result<ExitCode> {
    ignore_broken_pipe(show(args))
}

fn show(args: &SavingsArgs) -> Result<ExitCode> {
    // First, because a wrong name is told at once and servers take their time.
    let record = args
        .record
        .as_deref()
        .map(RecordFigures::read)
        .transpose()?;
    let report = match record {
        Some(record) if args.source.is_empty() => of_record(record),
        record => of_servers(args, record)?,
    };
    let mut out = printer::stdout_writer();
    match args.json {
        true => json::write(&report, &mut out)?,
        false => text::write(&report, &mut out)?,
    }
    out.flush()?;
    let is_answered = |server: &AskedServer| matches!(server.answer, ServerAnswer::Ready { .. });
    let is_read = report.source == DefinitionSource::Record;
    Ok(match is_read || report.servers.iter().any(is_answered) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn of_servers(args: &SavingsArgs, record: Option<RecordFigures>) -> Result<SavingsReport> {
    let (servers, measured) = servers::ask(&args.source, args.timeout)?;
    Ok(SavingsReport {
        servers,
        source: DefinitionSource::Servers,
        exposures: measure(&measured),
        record,
    })
}

fn of_record(record: RecordFigures) -> SavingsReport {
    let measured = MeasuredCatalog {
        servers: record.definitions.clone(),
        filter: ViewFilter::default(),
        proxy_tool: ProxyToolOptions::default(),
        dispatch_tool: DispatchToolOptions::default(),
    };
    SavingsReport {
        servers: Vec::new(),
        source: DefinitionSource::Record,
        exposures: measure(&measured),
        record: Some(record),
    }
}

fn measure(measured: &MeasuredCatalog) -> Option<ExposureReport> {
    let report = ExposureReport::measure(measured);
    (report.tools > 0).then_some(report)
}
