//! How a server ended, as facts and as a sentence, and the agreement with the guard about commands that cannot run.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// What the guard's only own line on stderr begins with.
pub(super) const GUARD_PREFIX: &str = "mcp-proxy-guard: ";
/// The guard's exit code when the command does not exist, as in a shell.
pub(super) const NOT_FOUND: u8 = 127;
/// The guard's exit code when the command exists and cannot be run, as in a shell.
pub(super) const NOT_EXECUTABLE: u8 = 126;

/// How a server ended. `Display` gives the end of a sentence whose subject is the server: `exited with status 3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReport {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Its last lines on stderr, oldest first, cut to a length that is fit for an error text.
    pub last_stderr: Vec<String>,
    /// Why the command could not be run at all: `cannot run "foo": No such file or directory`.
    pub spawn_failure: Option<String>,
    /// What made it end.
    pub ended: EndCause,
    /// How long it ran; a restart policy tells by it a server that cannot start from one that failed after hours.
    pub ran: Duration,
}

/// What made a server end: the last thing the supervisor had done to it by then, in the order of hardness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndCause {
    /// Nothing; it ended by itself.
    ByItself,
    /// Its stdin was closed.
    StdinClosed,
    /// It was sent SIGTERM.
    Terminated,
    /// It was killed, with everything it had started.
    Killed,
}

impl ExitReport {
    /// `status` is `None` when the guard could not be waited for within the deadline.
    pub(super) fn new(
        status: Option<ExitStatus>,
        ended: EndCause,
        ran: Duration,
        last_stderr: Vec<String>,
        guard_line: Option<String>,
    ) -> Self {
        let code = status.and_then(|status| status.code());
        let is_guards_code = [NOT_FOUND, NOT_EXECUTABLE]
            .map(|code| Some(code.into()))
            .contains(&code);
        Self {
            code,
            signal: status.and_then(|status| status.signal()),
            last_stderr,
            spawn_failure: guard_line.filter(|_| is_guards_code),
            ended,
            ran,
        }
    }

    /// Whether the server exited by itself or when asked, with status 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(failure) = &self.spawn_failure {
            return write!(f, "could not be started: {failure}");
        }
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with status {code}"),
            (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            (None, None) => f.write_str("did not end when it was killed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(raw: i32, guard_line: Option<&str>) -> ExitReport {
        let status = Some(ExitStatus::from_raw(raw));
        ExitReport::new(
            status,
            EndCause::ByItself,
            Duration::ZERO,
            Vec::new(),
            guard_line.map(str::to_owned),
        )
    }

    #[test]
    fn says_how_it_ended() {
        let exited = report(3 << 8, None);
        assert_eq!((exited.code, exited.signal), (Some(3), None));
        let killed = report(9, None);
        assert_eq!((killed.code, killed.signal), (None, Some(9)));
        let unknown = ExitReport::new(None, EndCause::Killed, Duration::ZERO, Vec::new(), None);
        assert_eq!((unknown.code, unknown.signal), (None, None));
        let failed = report(127 << 8, Some("cannot run \"foo\""));
        let told = [exited, killed, report(40, None), unknown, failed];
        let told = told.map(|report| report.to_string());
        insta::assert_snapshot!("exit_reports", told.join("\n"));
    }

    #[test]
    fn a_failure_to_start_needs_the_line_and_the_code() {
        let line = "cannot run \"foo\": No such file or directory";
        let failed = report(127 << 8, Some(line));
        assert_eq!(failed.spawn_failure.as_deref(), Some(line));
        let without_line = report(127 << 8, None);
        assert_eq!(
            (without_line.code, without_line.spawn_failure),
            (Some(127), None)
        );
        assert_eq!(report(1 << 8, Some(line)).spawn_failure, None);
    }
}
