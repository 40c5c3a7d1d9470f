//! The terminal UI on a real terminal, with real clients and servers on the other side of the proxy.

mod deciding;
mod leaving;
mod looking;
mod watching;
