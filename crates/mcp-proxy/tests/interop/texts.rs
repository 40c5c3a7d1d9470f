//! Words of the program that tests wait for: each in one place, so that new wording is a change of one line.
//!
//! Where a screen shows something that is no prose (a number, a method, `[INTERCEPT]`), tests wait for that instead.

/// What comes before the URL in the first line of a program that listens.
pub const LISTENING_ON: &str = "listening on ";
/// What comes before the id of a run in the line that tells it.
pub const ATTACH_WITH: &str = "mcp-proxy attach ";

/// The heading of the list.
pub const LIST: &str = "Messages";
/// The list before the first message.
pub const EMPTY_LIST: &str = "Waiting for a client";
/// The list when the filter hides all of it.
pub const EMPTY_FILTERED_LIST: &str = "nothing matches the filter";
/// A heading in the help.
pub const HELP: &str = "Holding and deciding";
/// The label of the filter's line.
pub const FILTER: &str = " Filter:";
/// A filter that cannot be read.
pub const WRONG_FILTER: &str = "! not a filter";

/// How a row is marked whose message was modified.
pub const MODIFIED: &str = "modified";
/// How a row is marked whose message was dropped.
pub const DROPPED: &str = "dropped";
/// What counts the held messages.
pub const HELD: &str = " held";
/// The heading of the editor for a held message.
pub const EDITOR: &str = ", held: ";
/// What the editor says of a text that can be sent.
pub const VALID: &str = "JSON is valid";
/// What is said when the editor is left without sending.
pub const NOT_SENT: &str = "nothing was sent";
/// What is said of a new breakpoint.
pub const BREAKPOINT_ADDED: &str = "breakpoint set";
/// A question: the run ends with this UI.
pub const CONFIRM_END: &str = "y: end it";
/// A question: messages are held.
pub const CONFIRM_RELEASE: &str = "c: forward all";
/// A question: a breakpoint would hold messages.
pub const CONFIRM_BREAKPOINT: &str = "1 breakpoint";

/// The headings of a comparison: a message that was modified,
pub const RECEIVED: &str = "received";
/// and what was forwarded in its place;
pub const SENT_ON: &str = "forwarded";
/// a message that was replayed,
pub const FIRST: &str = " first ";
/// and its replay.
pub const SENT_AGAIN: &str = " replayed ─";
/// What is said of a replay.
pub const REPLAYED: &str = " was replayed as #";
/// How a replay can be compared.
pub const COMPARE: &str = "(D compares";

/// What is said of a copied message.
pub const COPIED: &str = "copied (";
/// What is said of an export.
pub const EXPORTED: &str = "exported: ";
/// What is said of a saved record.
pub const SAVED: &str = "saved: ";

/// The demo has played everything.
pub const DEMO_OVER: &str = "the demo's session is over";
/// What is said when the proxy has ended.
pub const RECORD_STAYS: &str = "what was recorded stays on the screen";
/// What is said to whoever wants something of a proxy that has ended.
pub const PROXY_GONE: &str = "the proxy is gone";
