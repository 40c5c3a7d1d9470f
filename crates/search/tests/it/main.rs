//! Tests of the crate from outside: rules of the ranking, its quality over real tools, and properties of any text.

mod properties;
mod quality;
mod ranking;
