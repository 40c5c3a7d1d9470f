//! A line from the terminal that can be given up: a command that is cancelled must not take the next line of the shell.

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often it is looked whether somebody still waits.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// A longer line is not an answer.
const LONGEST: usize = 64 << 10;

/// Drops the lines that were typed before a question was shown: they cannot be meant as its answer. Returns how many they were.
pub(super) fn drop_earlier_lines() -> usize {
    let stdin = rustix::stdio::stdin();
    let mut dropped = 0;
    loop {
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        let is_ready = poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let mut bytes = [0; 4096];
        match is_ready.then(|| rustix::io::read(stdin, &mut bytes)) {
            Some(Ok(length @ 1..)) => {
                let ends = bytes[..length].iter().filter(|byte| **byte == b'\n');
                dropped += ends.count();
            }
            _ => return dropped,
        }
    }
}

/// The next line, without its end. `None`: input has ended, or nobody waits any more.
pub(super) fn read_line(is_over: impl Fn() -> bool) -> Option<String> {
    let stdin = rustix::stdio::stdin();
    let mut line = Vec::new();
    loop {
        if line.len() > LONGEST {
            return None;
        }
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&LOOK_EVERY)) {
            Ok(_) | Err(rustix::io::Errno::INTR) if is_over() => return None,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        // One byte at a time: what follows the line belongs to others.
        let mut byte = [0];
        match rustix::io::read(stdin, &mut byte) {
            Ok(0) | Err(_) => return None,
            Ok(_) if byte[0] == b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
            Ok(_) => line.push(byte[0]),
        }
    }
}
