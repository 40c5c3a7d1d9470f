//! Answers the UI when there is no proxy: a record can still be copied and exported.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use mcp_proxy_control::{Fault, FileResult, Method};
use mcp_proxy_session::export::exporter;
use mcp_proxy_session::{copy_record, exporters};
use mcp_proxy_tui::{ProxyEvent, ProxyPortPeer, ProxyRequest};
use serde::Deserialize;

use crate::run::proxy;
use crate::run::sessions::export::file::{ExistingFile, RENAME};

#[derive(Deserialize)]
struct FileParams {
    format: Option<String>,
    output: String,
    /// The record that is meant, if it is not the first that was opened.
    record: Option<PathBuf>,
}

/// Answers until the UI has ended.
pub fn serve(far: ProxyPortPeer, record: PathBuf) {
    // Ends with the UI, and the program with that.
    std::thread::spawn(move || {
        while let Ok(ask) = far.asks.recv() {
            let result = answer(&ask, &record).map_err(|why| Fault::new(Fault::FAILED, why));
            let news = ProxyEvent::Answer { id: ask.id, result };
            if far.news.send(news).is_err() {
                return;
            }
        }
    });
}

fn answer(ask: &ProxyRequest, record: &Path) -> Result<Bytes, String> {
    if !matches!(ask.method, Method::Save | Method::Export) {
        return Err("this is a record, and only a running proxy can do that".to_owned());
    }
    let wanted: FileParams =
        serde_json::from_str(&ask.params).map_err(|error| error.to_string())?;
    let record = wanted.record.as_deref().unwrap_or(record);
    let output = Path::new(&wanted.output);
    let bytes = match &wanted.format {
        None => copy_record(record, output).map_err(|error| error.chain())?,
        Some(format) => {
            let Some(exporter) = exporter(format) else {
                let known: Vec<_> = exporters().iter().map(|one| one.name()).collect();
                return Err(format!("`{format}` is not known: {}", known.join(", ")));
            };
            let existing = ExistingFile::Keep(RENAME);
            proxy::export(record, exporter, output, existing)
                .map_err(|error| format!("{error:#}"))?
        }
    };
    let told = serde_json::to_vec(&FileResult {
        output: wanted.output,
        bytes: Some(bytes),
    });
    told.map(Bytes::from).map_err(|error| error.to_string())
}
