//! What is shown as it comes: from the record while there is one, else from the proxy's ring.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use mcp_proxy_session::Told;
use mcp_proxy_transport::control::Client;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

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

/// An answer to `get`.
#[derive(Deserialize)]
struct Rows<'a> {
    #[serde(borrow)]
    rows: Vec<&'a RawValue>,
    next: Option<u64>,
    upto: u64,
}

impl<'a> Feed<'a> {
    /// Shows the last of what is there.
    pub async fn open(
        args: &'a InspectArgs,
        hello: &Value,
        last: usize,
        client: &mut Client,
    ) -> Result<Feed<'a>> {
        let mut out = printer::out();
        if let Some(record) = hello["record"].as_str() {
            let mut view = View::open(args, Path::new(record))?;
            view.title(&mut out)?;
            let left_out = view.skip_to_last(last);
            if left_out > 0 {
                writeln!(
                    out,
                    "({left_out} earlier: mcp-proxy inspect {})\n",
                    visible(record)
                )?;
            }
            out.flush()?;
            return Ok(Feed::Record(Box::new(view)));
        }
        let word = |name: &str| visible(hello[name].as_str().unwrap_or("?"));
        writeln!(
            out,
            "{}  {} ► {}  {}  (no record: the newest 16 MiB can be seen)\n",
            word("session"),
            word("client"),
            word("server"),
            word("target")
        )?;
        out.flush()?;
        let upto = client.ask("get", r#"{"limit":1}"#).await?;
        let upto = serde_json::from_slice::<Rows<'_>>(&upto)?.upto;
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
                let params = format!("{{\"from\":{next},\"raw\":true,\"limit\":200}}");
                let answer: Bytes = client.ask("get", &params).await?;
                let rows: Rows<'_> =
                    serde_json::from_slice(&answer).context("the proxy answers no rows")?;
                for row in rows.rows {
                    let line = answer.slice_ref(row.get().as_bytes());
                    let told = Told::from_json(&line).map_err(|why| anyhow!("a row: {why}"))?;
                    *next = (*next).max(told.message.sequence + 1);
                    table.told(&told, &mut out)?;
                }
                out.flush()?;
                match rows.next {
                    Some(more) => *next = more,
                    None => {
                        *next = (*next).max(rows.upto + 1);
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
