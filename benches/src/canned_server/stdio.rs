//! The canned server on stdin and stdout: one thread, plain blocking reads and writes.
//!
//! Each answer is written by itself, as servers made with an SDK do. A reactor would only add calls in between.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use anyhow::Result;
use memchr::memchr;

use super::COPY_BELOW;
use crate::canned::{ANSWER_START, CannedAnswers};

pub fn serve(answers: &CannedAnswers) -> Result<()> {
    // Through the descriptors themselves: std's own handles buffer lines a second time.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut buffer = vec![0u8; 256 * 1024];
    let mut filled = 0;
    let mut out = Vec::with_capacity(256 * 1024);
    loop {
        let count = input.read(&mut buffer[filled..])?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &buffer[start..filled]) {
            let line = &buffer[start..start + length];
            answer(answers, line, &mut out, &mut output)?;
            start += length + 1;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
        if filled == buffer.len() {
            buffer.resize(filled * 2, 0);
        }
    }
}

fn answer(
    answers: &CannedAnswers,
    line: &[u8],
    out: &mut Vec<u8>,
    output: &mut File,
) -> io::Result<()> {
    let Some(answer) = answers.answer(line) else {
        return Ok(());
    };
    out.extend_from_slice(ANSWER_START);
    out.extend_from_slice(answer.id.as_bytes());
    if answer.rest.len() < COPY_BELOW {
        out.extend_from_slice(&answer.rest);
    } else {
        output.write_all(out)?;
        out.clear();
        output.write_all(&answer.rest)?;
    }
    out.push(b'\n');
    output.write_all(out)?;
    out.clear();
    Ok(())
}
