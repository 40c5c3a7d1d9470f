//! The steps between record and write, in one ordered list.
//!
//! A step sees what is about to be written and may change it, drop it or answer it. Its verdict is recorded as
//! an `act` before it has an effect. To add one: a variant, its file under `step/`, a line in [`Step::between`].

mod fit;
mod own;

use std::time::Duration;

use mcp_proxy_wire::Direction;

use crate::connection::Connection;
use crate::lane::Passed;
use crate::link::LinkEnd;

/// Everything that can happen to a message on its way.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Makes a message fit a transport of another kind: line breaks become spaces.
    Fit,
    /// On a connection that several clients share: gives messages our ids, and answers their owner's.
    Own,
}

/// Where a step stands: the connection, the way the frames go, and the time.
pub struct Stage<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// The way the frames go.
    pub direction: Direction,
    /// Since the start of the run.
    pub now: Duration,
}

impl Step {
    /// The steps of a connection, in order. None when both sides are of one kind and one client: bytes pass.
    pub fn between(connection: &Connection) -> &'static [Step] {
        if connection.multiplexer().is_some() {
            &[Step::Fit, Step::Own]
        } else if connection.client.transport == connection.server() {
            &[]
        } else {
            &[Step::Fit]
        }
    }

    /// Applies the step to everything that is about to be written.
    pub fn take(self, stage: &Stage<'_>, passed: &mut Passed) -> Result<(), LinkEnd> {
        match self {
            Step::Fit => fit::take(stage, passed),
            Step::Own => own::take(stage, passed),
        }
    }
}
