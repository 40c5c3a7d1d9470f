//! `markdown`: a report for people. What the session was, a table of its messages, what else happened, each message in full, and
//! last, folded, what the server wrote to stderr.
//!
//! Everything a peer sent is untrusted: in tables control characters and pipes are made harmless, and a body's fence is longer
//! than any run of backticks inside it. Long bodies are shown by their beginning.

mod stderr_block;

use super::body::missing;
use super::{SessionExporter, report_progress};
use crate::filter::is_http_error;
use crate::message::RawBody;
use crate::session_record::RecordedLine;
use crate::{
    Error, HttpHead, MessageWithContext, PeerInfo, ProxyMessage, SessionNote, SessionRecord,
    UNNAMED_SERVER, duration_text, timestamp,
};
use mcp_proxy_wire::{Direction, Kind};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use stderr_block::StderrBlock;

/// A body longer than this is shown by its beginning.
const LONGEST_BODY: usize = 64 * 1024;
const EXCERPT: usize = 8 * 1024;
/// How much of a server's error text stands in the table.
const ERROR_TEXT: usize = 100;

pub(super) const MARKDOWN: SessionExporter = SessionExporter {
    name: "markdown",
    extension: "md",
    about: "a report for people, with a table and every message",
    write,
};

/// What servers are called in the report: by their names if it has several.
struct ServerLabels<'s> {
    session: &'s SessionRecord,
    several: bool,
}

impl ServerLabels<'_> {
    /// `→ files`: the way of a message and its server.
    fn arrow(&self, message: &ProxyMessage) -> String {
        let name = self.session.server_name(message.connection);
        let name = name.filter(|_| self.several);
        let name = name.as_deref().unwrap_or(UNNAMED_SERVER);
        match message.direction {
            Direction::ClientToServer => format!("→ {}", cell(name)),
            Direction::ServerToClient => format!("← {}", cell(name)),
        }
    }
}

fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let put =
        |out: &mut dyn Write, text: &str| out.write_all(text.as_bytes()).map_err(Error::Output);
    let total = session.len() * 2;
    let servers = ServerLabels {
        session,
        several: session.has_several_servers(),
    };
    put(out, &head(session))?;
    put(
        out,
        "\n## Messages\n\n| # | direction | method | name | latency | size | remarks |\n|--:|---|---|---|--:|--:|---|\n",
    )?;
    for index in 0..session.len() {
        put(
            out,
            &table_row(&session.message_with_context(index)?, &servers),
        )?;
        report_progress(index + 1, total, progress);
    }
    let mut stderr = StderrBlock::default();
    let mut heading = "\n## What else happened\n\n";
    for record in session.records() {
        let record = record?;
        if !session.has_line(&record) {
            continue;
        }
        if stderr.notes(&record) {
            continue;
        }
        if let Some(line) = event_text(&record) {
            put(out, std::mem::take(&mut heading))?;
            put(out, &line)?;
        }
    }
    let notes = session.notes()?;
    put(out, "\n## Message bodies\n")?;
    for index in 0..session.len() {
        let told = session.message_with_context(index)?;
        let notes = notes.iter();
        let notes = notes.filter(|note| note.sequence == Some(told.message.sequence));
        write_body(out, &told, &servers, notes)?;
        report_progress(session.len() + index + 1, total, progress);
    }
    stderr.write(session, out)
}

fn head(session: &SessionRecord) -> String {
    let facts = session.session();
    let header = session.header();
    let mut text = String::from("# MCP session\n\n| | |\n|---|---|\n");
    let mut row = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            let _ = writeln!(text, "| {name} | {} |", cell(value));
        }
    };
    row("session", Some(&facts.id));
    row("started", Some(&timestamp::to_text(facts.started_at)));
    row(
        "ended",
        Some(
            &facts
                .ended_at
                .map_or_else(|| "not recorded".to_owned(), timestamp::to_text),
        ),
    );
    row("reason", session.end().map(|end| end.why).as_deref());
    row("server side", Some(&session.server().to_string()));
    row("client side", Some(&header.client.to_string()));
    row("server command", facts.server_command.as_deref());
    row("server URL", facts.server_url.as_deref());
    row("proxy version", Some(&header.version));
    row("messages", Some(&session.len().to_string()));
    for (name, path) in [
        ("begins in (missing)", session.missing_beginning()),
        ("continues in (missing)", session.missing_continuation()),
    ] {
        let file = path.as_deref().and_then(Path::file_name);
        row(name, file.map(|file| file.to_string_lossy()).as_deref());
    }
    for (name, value) in &facts.metadata {
        row(&cell(name), Some(&value.to_string()));
    }
    text
}

/// Method and name; of an answer, those of its request.
fn subject(told: &MessageWithContext) -> (&str, &str) {
    let message = &told.message;
    let (method, name) = match &told.request {
        Some(asked) => (Some(asked.method.as_str()), asked.name.as_deref()),
        None => (message.method.as_deref(), message.name.as_deref()),
    };
    (method.unwrap_or(""), name.unwrap_or(""))
}

fn table_row(told: &MessageWithContext, servers: &ServerLabels<'_>) -> String {
    let message = &told.message;
    let mut remarks = Vec::new();
    if let Some(problem) = told.problem() {
        let text = problem.text.unwrap_or_default();
        let text = shortened(&text);
        let separator = if text.is_empty() { "" } else { ": " };
        remarks.push(format!("⚠ {}{separator}{}", problem.what, cell(&text)));
    }
    if message.method.is_none() && matches!(message.kind, Kind::Response | Kind::Batch) {
        remarks.push(message.kind.as_str().to_owned());
    }
    if let Some(request) = message.answers {
        remarks.push(format!("answers #{request}"));
    }
    remarks.extend(told.remarks());
    let (method, name) = subject(told);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        message.sequence,
        servers.arrow(message),
        cell(method),
        cell(name),
        message.latency.map_or_else(String::new, duration_text),
        message.len,
        remarks.join(", "),
    )
}

/// A text that may be too long for the table.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(ERROR_TEXT) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn write_body<'n>(
    out: &mut dyn Write,
    told: &MessageWithContext,
    servers: &ServerLabels<'_>,
    notes: impl Iterator<Item = &'n SessionNote>,
) -> Result<(), Error> {
    let message = &told.message;
    let (method, name) = subject(told);
    let title = [method, name].map(cell).join(" ");
    let title = match (title.trim(), message.answers) {
        ("", _) => message.kind.as_str().to_owned(),
        (title, Some(_)) => format!("{title} ({})", message.kind.as_str()),
        (title, None) => title.to_owned(),
    };
    let mut text = format!(
        "\n### #{} {} {title}\n\n{}, {}, connection c{}",
        message.sequence,
        servers.arrow(message),
        timestamp::to_text(message.timestamp),
        message.transport,
        message.connection,
    );
    if let Some(problem) = told.problem() {
        let _ = write!(text, ", ⚠ {}", problem.what);
    }
    if let Some(held) = message.request_held {
        let _ = write!(text, ", its request was held {}", duration_text(held));
    }
    // A status that is a problem was said.
    let http = message.http.as_ref();
    if let Some(http) = http.filter(|http| !http.status.is_some_and(is_http_error)) {
        let _ = write!(text, ", {}", cell(&http_line(http)));
    }
    text.push_str("\n\n");
    let remarks = told.remarks();
    if !remarks.is_empty() {
        let _ = writeln!(text, "- {}", remarks.join(", "));
    }
    for verdict in &message.verdicts {
        let _ = write!(text, "- {}: {}", cell(&verdict.by), cell(&verdict.kind));
        let _ = match verdict.why.is_empty() {
            true => writeln!(text),
            false => writeln!(text, " ({})", cell(&verdict.why)),
        };
    }
    for note in notes {
        let _ = writeln!(text, "- note of {}: {}", cell(&note.by), cell(&note.text));
    }
    if text.ends_with("\n") && !text.ends_with("\n\n") {
        text.push('\n');
    }
    if let Some(original) = &message.original_raw {
        text.push_str("As received:\n\n");
        fenced(&mut text, original);
        text.push_str("\nAs forwarded:\n\n");
    }
    fenced(&mut text, &message.raw);
    out.write_all(text.as_bytes()).map_err(Error::Output)
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

/// The body between fences that it cannot close.
fn fenced(text: &mut String, raw: &RawBody) {
    let start = |bytes: &[u8]| {
        let shown = match bytes.len() > LONGEST_BODY {
            true => &bytes[..EXCERPT],
            false => bytes,
        };
        String::from_utf8_lossy(shown).into_owned()
    };
    let (language, body) = match (missing(raw), raw) {
        (Some(text), _) => ("text", text),
        (None, RawBody::NotStored { .. }) => ("text", String::new()),
        (None, RawBody::Json(bytes)) => ("json", start(bytes)),
        (None, RawBody::Text(body)) => ("text", start(body.as_bytes())),
        (None, RawBody::Binary(bytes)) => {
            ("text", format!("{} bytes that are not text", bytes.len()))
        }
    };
    let fence = "`".repeat(longest_run(&body).max(2) + 1);
    let _ = writeln!(text, "{fence}{language}\n{body}\n{fence}");
    let bytes = raw.bytes().unwrap_or_default().len();
    if bytes > LONGEST_BODY && !matches!(raw, RawBody::Binary(_)) {
        let _ = writeln!(text, "\n… and {} more bytes.", bytes - EXCERPT);
    }
}

/// One line of the list of everything that is not a message.
fn event_text(record: &RecordedLine) -> Option<String> {
    let what = match record.kind() {
        "io" => record.member::<String>("kind")?,
        "note" => "note".to_owned(),
        _ => return None,
    };
    let mut line = format!(
        "- {} {}",
        record.member::<String>("timestamp").unwrap_or_default(),
        cell(&what)
    );
    if let Some(connection) = record.member::<String>("conn") {
        let _ = write!(line, " {}", cell(&connection));
    }
    if let Some(http) = record.member::<HttpHead>("http") {
        let _ = write!(line, ": {}", cell(&http_line(&http)));
    }
    for key in ["client", "server"] {
        if let Some(peer) = record.member::<PeerInfo>(key) {
            let _ = write!(line, " {key} {}", cell(&peer.to_string()));
        }
    }
    if let Some(parent) = record.member::<u64>("parent") {
        let _ = write!(line, " caused by #{parent}");
    }
    for key in ["sequence", "code", "signal", "lost"] {
        if let Some(number) = record.member::<i64>(key) {
            let _ = write!(line, " {key} {number}");
        }
    }
    if let Some(by) = record.member::<String>("by") {
        let _ = write!(line, " by {}", cell(&by));
    }
    for key in ["text", "why"] {
        if let Some(text) = record.member::<String>(key) {
            let _ = write!(line, ": {}", cell(&text));
        }
    }
    line.push('\n');
    Some(line)
}

fn http_line(http: &HttpHead) -> String {
    match (&http.method, &http.target, http.status) {
        (Some(method), Some(target), _) => format!("{method} {target}"),
        (_, _, Some(status)) => format!("HTTP {status}"),
        _ => "HTTP".to_owned(),
    }
}

/// Characters that change the direction of text, or have no shape.
fn is_deceiving(character: char) -> bool {
    matches!(
        character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Text inside a table or a line: no control characters, nothing that Markdown or HTML would act on.
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                safe.push('\\');
                safe.push(character);
            }
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            deceiving if is_deceiving(deceiving) => safe.push('\u{fffd}'),
            control if control.is_control() => safe.push(' '),
            plain => safe.push(plain),
        }
    }
    safe
}
