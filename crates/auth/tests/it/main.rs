//! Sign-ins against an authorization server in this process.

mod authorization_server;
mod browser;
mod logging_in;
mod refusing;
mod renewing;
