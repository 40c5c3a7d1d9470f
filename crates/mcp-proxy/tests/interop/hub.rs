//! The hub between real peers.

mod cancelling;
mod clients;
mod conformance;
mod magg;
