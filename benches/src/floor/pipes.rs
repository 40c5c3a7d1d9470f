//! Pipes as the floors use them: non-blocking, in the reactor, and grown to 1 MiB.
//!
//! With the usual 64 KiB every megabyte costs sixteen turns of two processes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::fcntl_setpipe_size;
use tokio::net::unix::pipe::{Receiver, Sender};

const GROWN: usize = 1 << 20;

pub fn stdin() -> io::Result<Receiver> {
    receiver(io::stdin().as_fd().try_clone_to_owned()?)
}

pub fn stdout() -> io::Result<Sender> {
    sender(io::stdout().as_fd().try_clone_to_owned()?)
}

pub fn receiver(pipe: OwnedFd) -> io::Result<Receiver> {
    grow(&pipe);
    Receiver::from_owned_fd(pipe)
}

pub fn sender(pipe: OwnedFd) -> io::Result<Sender> {
    grow(&pipe);
    Sender::from_owned_fd(pipe)
}

fn grow(pipe: &OwnedFd) {
    // Refused when the user's allowance for pipes is used up; the small pipe then still works.
    let _ = fcntl_setpipe_size(pipe, GROWN);
}
