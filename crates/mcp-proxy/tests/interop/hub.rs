//! The hub between real peers.

mod cancelling;
mod clients;
mod conformance;
mod dispatch;
mod magg;
mod magg_server;
mod readings;
mod resources;
