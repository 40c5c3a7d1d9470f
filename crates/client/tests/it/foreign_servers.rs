//! Proxy tools that other people wrote.
