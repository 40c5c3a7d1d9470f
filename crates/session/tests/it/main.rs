//! Records through their public face: written, torn, read, exported, imported, listed, pruned.

mod errors;
mod exports;
mod follow;
mod imports;
mod lines;
mod sample;
mod stores;
mod torn;
