//! What went wrong while recording, shared between the recorder and the thread that syncs.
//!
//! Under `warn` the first failure is kept until someone asks for it, once; later ones are the same trouble and stay silent until
//! recording works again.

use crate::{Error, RecordErrorPolicy};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct RecorderFaults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// In trouble, and already said so.
    said: bool,
    warning: Option<String>,
}

impl RecorderFaults {
    /// Returns the error or swallows it into a warning, as the policy says.
    pub(super) fn by_policy(&self, policy: RecordErrorPolicy, error: Error) -> Result<(), Error> {
        match policy {
            RecordErrorPolicy::Stop => Err(error),
            RecordErrorPolicy::Warn => {
                self.warn(&error);
                Ok(())
            }
        }
    }

    pub(super) fn warn(&self, error: &Error) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.said {
            state.said = true;
            state.warning = Some(error.chain());
        }
    }

    /// The warning that nobody has seen yet.
    pub(super) fn take(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .warning
            .take()
    }

    /// Recording works again: the next failure is news.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).said = false;
    }
}
