//! The core's tests: conversations over in-memory links, read as transcripts.

mod conversations;
mod correlation;
mod recording;
mod sharing;
mod transcript;
