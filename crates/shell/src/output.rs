//! Where commands print: results to one place, everything else to the person.

use std::io::Write;
use std::sync::Arc;

use serde_json::Value;

use crate::details::CommandForm;
use crate::failure::CommandFailure;

/// Who reads what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputReader {
    /// A terminal, which must not be given control characters.
    Terminal,
    /// A file or a pipe, which gets texts as they are.
    Program,
}

/// Says a line to the person.
pub type SayLine = Arc<dyn Fn(&str) + Send + Sync>;

/// Where commands print.
pub struct CommandOutput {
    /// Results.
    pub out: Box<dyn Write + Send>,
    /// Who reads them.
    pub reader: OutputReader,
    /// The width of the terminal, if it is one.
    pub width: Option<usize>,
    /// Says something to the person.
    pub say: SayLine,
    /// How commands are typed, for examples.
    pub form: CommandForm,
}

impl CommandOutput {
    /// Prints a text, which ends with a line break unless it is empty.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CommandFailure> {
        let written = self.out.write_all(text.as_bytes());
        written
            .and_then(|()| self.out.flush())
            .map_err(|error| cannot_print(&error))
    }

    /// Prints one JSON document: on a terminal for a person, otherwise on one line.
    pub(crate) fn print_json(&mut self, value: &Value) -> Result<(), CommandFailure> {
        let text = match self.reader {
            OutputReader::Terminal => {
                let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
                mcp_proxy_wire::terminal_text::sanitize_lines(&pretty)
            }
            OutputReader::Program => value.to_string(),
        };
        self.print(&format!("{text}\n"))
    }
}

/// Why results cannot be printed. A reader that has left is not worth a word.
pub(crate) fn cannot_print(error: &std::io::Error) -> CommandFailure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => CommandFailure::OutputClosed,
        _ => CommandFailure::Unwritten(format!("cannot print: {error}")),
    }
}
