//! The table of messages: one line each, made to be scanned by eye, written as it comes.

use std::io::Write;

use anyhow::Result;
use mcp_proxy_session::{MessageWithContext, ProxyMessage, RequestSummary, Row, SessionRecord};
use mcp_proxy_wire::{Direction, Kind};

use super::formatting;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_bytes};

/// Columns of fixed width; what has no limit comes last.
const WHAT: usize = 40;
const ID: usize = 10;
const SERVER: usize = 14;
/// A server's error text is shown up to here.
const ERROR_TEXT: usize = 100;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const GREY: &str = "90";

/// A table on its way to the screen.
pub struct MessageTable {
    coloured: bool,
    head: TableHeader,
}

/// What the head of the table says, and with it every row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TableHeader {
    NotYet,
    OneConnection,
    Connections,
    /// Connections to several servers.
    Servers,
}

impl MessageTable {
    /// An empty table; see [`crate::printer::colours`].
    pub fn new(coloured: bool) -> MessageTable {
        MessageTable {
            coloured,
            head: TableHeader::NotYet,
        }
    }

    /// Writes the message of row `index`.
    pub fn row(
        &mut self,
        session: &SessionRecord,
        index: usize,
        out: &mut impl Write,
    ) -> Result<()> {
        let told = session.message_with_context(index)?;
        let server = told.server.as_deref();
        self.head(session, (told.message.connection, server), out)?;
        self.line(&told, out)
    }

    fn line(&self, told: &MessageWithContext, out: &mut impl Write) -> Result<()> {
        let message = &told.message;
        let (trouble, remarks) = remarks(told);
        let colour = match message.direction {
            Direction::ClientToServer => CYAN,
            Direction::ServerToClient => GREEN,
        };
        let what = formatting::cut(&message_title(message, told.request.as_ref()), WHAT);
        let id = message
            .jsonrpc_id
            .as_deref()
            .map(|id| formatting::cut(&sanitize(id), ID))
            .unwrap_or_default();
        let latency = message.latency.map(formatting::span).unwrap_or_default();
        writeln!(
            out,
            "{:>6} {} {} {}{} {:<ID$} {:>9} {:>8}{}{}",
            message.sequence,
            self.paint(GREY, &formatting::time_of_day(message.timestamp)),
            self.paint(colour, formatting::arrow(message.direction)),
            self.connection(message.connection, told.server.as_deref()),
            format_args!("{what:<WHAT$}"),
            id,
            latency,
            formatting::size(message.len),
            spaced(&self.paint(RED, &trouble)),
            spaced(&self.paint(YELLOW, &remarks)),
        )?;
        Ok(())
    }

    /// Writes a line about something that is not a message. `text` is harmless already.
    pub fn event(
        &mut self,
        session: &SessionRecord,
        happening: &super::inspect::EventLine,
        out: &mut impl Write,
    ) -> Result<()> {
        let connection = happening.connection.unwrap_or(0);
        let server = session.server_name(connection);
        self.head(session, (connection, server.as_deref()), out)?;
        writeln!(
            out,
            "{:>6} {} · {}{}",
            "",
            self.paint(GREY, &happening.time),
            self.connection(connection, server.as_deref()),
            self.paint(if happening.trouble { RED } else { GREY }, &happening.text),
        )?;
        Ok(())
    }

    /// The head, once; and once more when a second connection or server turns up in a record that is being followed.
    fn head(
        &mut self,
        session: &SessionRecord,
        (connection, server): (u32, Option<&str>),
        out: &mut impl Write,
    ) -> Result<()> {
        let wanted = match self.head {
            TableHeader::NotYet if !session.is_empty() => needed_header(session),
            _ => header_with(session, connection, server),
        };
        if wanted <= self.head {
            return Ok(());
        }
        self.head = wanted;
        let columns = match wanted {
            TableHeader::Servers => format!("conn {:<SERVER$} ", "server"),
            TableHeader::Connections => "conn ".to_owned(),
            _ => String::new(),
        };
        let head = format!(
            "{:>6} {:<12}   {columns}{:<WHAT$} {:<ID$} {:>9} {:>8}",
            "#", "time (UTC)", "message", "id", "latency", "size"
        );
        writeln!(out, "{}", self.paint(GREY, head.trim_end()))?;
        Ok(())
    }

    /// The columns that say where a message belongs.
    fn connection(&self, connection: u32, server: Option<&str>) -> String {
        let number = match connection {
            0 => String::new(),
            number => format!("c{number}"),
        };
        match self.head {
            TableHeader::Servers => {
                let server = formatting::cut(&sanitize(server.unwrap_or_default()), SERVER);
                format!("{number:<5}{server:<SERVER$} ")
            }
            TableHeader::Connections => format!("{number:<5}"),
            _ => String::new(),
        }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("\x1b[{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The head that one more line needs, compared with the first message.
fn header_with(session: &SessionRecord, connection: u32, server: Option<&str>) -> TableHeader {
    let first = session.row(0).map_or(connection, Row::connection);
    match (server, session.server_name(first).as_deref()) {
        (Some(server), Some(first)) if server != first => TableHeader::Servers,
        _ if connection != 0 && connection != first => TableHeader::Connections,
        _ => TableHeader::OneConnection,
    }
}

/// The head that all messages of a record need.
fn needed_header(session: &SessionRecord) -> TableHeader {
    let rows = session.rows();
    let first = rows.first().map(Row::connection);
    if session.has_several_servers() {
        TableHeader::Servers
    } else if rows.iter().any(|row| Some(row.connection()) != first) {
        TableHeader::Connections
    } else {
        TableHeader::OneConnection
    }
}

/// What a message says or asks; for an answer, what it answers.
pub fn message_title(message: &ProxyMessage, asked: Option<&RequestSummary>) -> String {
    if let Some(asked) = asked {
        return format!("↩ {}", titled(&asked.method, asked.name.as_deref()));
    }
    if let Some(method) = &message.method {
        return titled(method, message.name.as_deref());
    }
    // As many bytes as surely fill the column.
    let start = message.raw.bytes().unwrap_or_default();
    let excerpt = || sanitize_bytes(&start[..start.len().min(4 * WHAT)]);
    match message.kind {
        Kind::Malformed => excerpt(),
        Kind::Other if message.len == 0 => "empty line".to_owned(),
        Kind::Other => excerpt(),
        Kind::Batch if !message.parts.is_empty() => {
            let parts = message
                .parts
                .iter()
                .map(|part| part.method.as_deref().unwrap_or(&part.kind));
            format!(
                "batch of {}: {}",
                message.parts.len(),
                sanitize(&parts.collect::<Vec<_>>().join(", "))
            )
        }
        // `[]`; of a large one the parts are not known.
        Kind::Batch if start.len() == 2 => "empty batch".to_owned(),
        other => other.as_str().to_owned(),
    }
}

fn titled(method: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{} {}", sanitize(method), sanitize(name)),
        None => sanitize(method),
    }
}

/// What is wrong with a message, and what else is to be said about it.
pub fn remarks(told: &MessageWithContext) -> (String, String) {
    let problem = told.problem().map(|problem| {
        let text = problem
            .text
            .map(|text| format!(": {}", formatting::cut(&sanitize(&text), ERROR_TEXT)));
        format!("⚠ {}{}", problem.what, text.unwrap_or_default())
    });
    (problem.unwrap_or_default(), told.remarks().join(", "))
}

fn spaced(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("  {text}")
    }
}
