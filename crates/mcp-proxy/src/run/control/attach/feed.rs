//! What is shown as it comes: from the record while there is one, else from the proxy's ring.

use std::io::Write as _;

use anyhow::{Result, anyhow};
use bytes::Bytes;
use mcp_proxy_control::{GetRequest, HelloResult};
use mcp_proxy_session::MessageWithContext;
use mcp_proxy_transport::control::ControlClient;

use crate::cli::sessions::InspectArgs;
use crate::printer;
use crate::run::control::short_id;
use crate::run::sessions::inspect::RecordPrinter;
use crate::run::sessions::table::MessageTable;
use mcp_proxy_wire::terminal_text::sanitize;

/// Where rows come from.
pub enum RowFeed<'a> {
    /// The record, read here: the proxy has no work with it.
    Record(Box<RecordPrinter<'a>>),
    /// A run without a record: the proxy is asked.
    Ring {
        /// The table.
        table: MessageTable,
        /// The next row.
        next: u64,
    },
}

impl<'a> RowFeed<'a> {
    /// Shows the last of what is there.
    pub async fn open(
        args: &'a InspectArgs,
        hello: &HelloResult,
        last: usize,
        client: &mut ControlClient,
    ) -> Result<RowFeed<'a>> {
        let mut out = printer::stdout_writer();
        if let Some(record) = &hello.record {
            let mut view = RecordPrinter::open(args, record)?;
            view.title(&mut out)?;
            let left_out = view.skip_to_last(last);
            if left_out > 0 {
                writeln!(
                    out,
                    "({left_out} earlier: mcp-proxy inspect {})\n",
                    sanitize(&record.to_string_lossy())
                )?;
            }
            out.flush()?;
            return Ok(RowFeed::Record(Box::new(view)));
        }
        writeln!(
            out,
            "{}  {} ► {}  {}  (no record: the newest 16 MiB can be seen)\n",
            short_id(&hello.session),
            sanitize(&hello.client),
            sanitize(&hello.server),
            sanitize(&hello.target)
        )?;
        out.flush()?;
        let request = GetRequest {
            limit: Some(1),
            ..GetRequest::default()
        };
        let upto = client.call(&request).await?.upto;
        Ok(RowFeed::Ring {
            table: MessageTable::new(printer::colours()),
            next: (upto + 1).saturating_sub(last as u64).max(1),
        })
    }

    /// Shows what is new.
    pub async fn show(&mut self, client: &mut ControlClient) -> Result<()> {
        let mut out = printer::stdout_writer();
        match self {
            RowFeed::Record(view) => {
                view.print_new_lines(&mut out)?;
            }
            RowFeed::Ring { table, next } => loop {
                let request = GetRequest {
                    from: Some(*next),
                    raw: true,
                    limit: Some(200),
                    ..GetRequest::default()
                };
                let page = client.call(&request).await?;
                for row in page.rows {
                    let line = Bytes::from(String::from(Box::<str>::from(row)));
                    let told = MessageWithContext::from_json(&line)
                        .map_err(|why| anyhow!("a row: {why}"))?;
                    *next = (*next).max(told.message.sequence + 1);
                    table.fetched_message(&told, &mut out)?;
                }
                out.flush()?;
                match page.next {
                    Some(more) => *next = more,
                    None => {
                        *next = (*next).max(page.upto + 1);
                        break;
                    }
                }
            },
        }
        Ok(out.flush()?)
    }

    /// The end of it, once the proxy is gone.
    pub fn finish(&mut self) -> Result<()> {
        let mut out = printer::stdout_writer();
        match self {
            RowFeed::Record(view) => {
                view.print_new_lines(&mut out)?;
                view.finish(&mut out)?;
            }
            RowFeed::Ring { .. } => writeln!(out, "\nthe proxy has ended")?,
        }
        Ok(out.flush()?)
    }
}
