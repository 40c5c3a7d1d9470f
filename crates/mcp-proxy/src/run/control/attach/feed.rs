//! What is shown as it comes: from the record while there is one, else from the proxy's ring.

use std::io::Write as _;

use anyhow::{Result, anyhow};
use bytes::Bytes;
use mcp_proxy_control::{GetRequest, HelloResult};
use mcp_proxy_session::Told;
use mcp_proxy_transport::control::Client;

use crate::cli::sessions::InspectArgs;
use crate::printer;
use crate::run::sessions::inspect::View;
use crate::run::sessions::table::Table;
use mcp_proxy_wire::visible::visible;

/// Where rows come from.
pub enum Feed<'a> {
    /// The record, read here: the proxy has no work with it.
    Record(Box<View<'a>>),
    /// A run without a record: the proxy is asked.
    Ring {
        /// The table.
        table: Table,
        /// The next row.
        next: u64,
    },
}

impl<'a> Feed<'a> {
    /// Shows the last of what is there.
    pub async fn open(
        args: &'a InspectArgs,
        hello: &HelloResult,
        last: usize,
        client: &mut Client,
    ) -> Result<Feed<'a>> {
        let mut out = printer::out();
        if let Some(record) = &hello.record {
            let mut view = View::open(args, record)?;
            view.title(&mut out)?;
            let left_out = view.skip_to_last(last);
            if left_out > 0 {
                writeln!(
                    out,
                    "({left_out} earlier: mcp-proxy inspect {})\n",
                    visible(&record.to_string_lossy())
                )?;
            }
            out.flush()?;
            return Ok(Feed::Record(Box::new(view)));
        }
        writeln!(
            out,
            "{}  {} ► {}  {}  (no record: the newest 16 MiB can be seen)\n",
            visible(&hello.session),
            visible(&hello.client),
            visible(&hello.server),
            visible(&hello.target)
        )?;
        out.flush()?;
        let request = GetRequest {
            limit: Some(1),
            ..GetRequest::default()
        };
        let upto = client.call(&request).await?.upto;
        Ok(Feed::Ring {
            table: Table::new(printer::colours()),
            next: (upto + 1).saturating_sub(last as u64).max(1),
        })
    }

    /// Shows what is new.
    pub async fn show(&mut self, client: &mut Client) -> Result<()> {
        let mut out = printer::out();
        match self {
            Feed::Record(view) => view.take_in(&mut out)?,
            Feed::Ring { table, next } => loop {
                let request = GetRequest {
                    from: Some(*next),
                    raw: true,
                    limit: Some(200),
                    ..GetRequest::default()
                };
                let page = client.call(&request).await?;
                for row in page.rows {
                    let line = Bytes::from(String::from(Box::<str>::from(row)));
                    let told = Told::from_json(&line).map_err(|why| anyhow!("a row: {why}"))?;
                    *next = (*next).max(told.message.sequence + 1);
                    table.told(&told, &mut out)?;
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
        let mut out = printer::out();
        match self {
            Feed::Record(view) => {
                view.take_in(&mut out)?;
                view.finish(&mut out)?;
            }
            Feed::Ring { .. } => writeln!(out, "\nthe proxy has ended")?,
        }
        Ok(out.flush()?)
    }
}
