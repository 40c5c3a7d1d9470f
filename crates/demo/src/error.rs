//! What can go wrong while the demo server or its scripted client runs.

use rmcp::service::{ClientInitializeError, ServerInitializeError, ServiceError};

/// A failure of the demo server or of the scripted client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The server's first exchange with its client failed.
    #[error("the demo server could not start its session")]
    Start(#[source] Box<ServerInitializeError>),
    /// The task that serves the session panicked or was aborted.
    #[error("the demo server's session ended badly")]
    Session(#[source] tokio::task::JoinError),
    /// The listening socket failed.
    #[error("the demo server could not accept connections")]
    Listen(#[source] std::io::Error),
    /// The scripted client could not open its session.
    #[error("the scripted client could not open its session")]
    Open(#[source] Box<ClientInitializeError>),
    /// A step that has to succeed failed.
    #[error("the scripted client failed at: {step}")]
    Step {
        /// The step's title, as given to the observer.
        step: &'static str,
        /// What the server or the connection said.
        #[source]
        source: Box<ServiceError>,
    },
    /// A step was answered with something other than the script expects.
    #[error("the scripted client got an unexpected answer at: {step}: {answer}")]
    Unexpected {
        /// The step's title, as given to the observer.
        step: &'static str,
        /// The answer, shortened.
        answer: String,
    },
}
