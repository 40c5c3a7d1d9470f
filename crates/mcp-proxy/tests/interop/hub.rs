//! The hub between real peers.

mod clients;
mod conformance;
mod magg;
