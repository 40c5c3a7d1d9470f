//! Servers at a URL, in both eras.
