//! stdio to stdio: bytes copied both ways, nothing read.

use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::pipes;

pub async fn relay(command: &[String]) -> Result<()> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command[0]))?;
    let to_server = pipes::sender(child.stdin.take().context("the child has a stdin")?.into())?;
    let from_server = pipes::receiver(
        child
            .stdout
            .take()
            .context("the child has a stdout")?
            .into(),
    )?;
    let to_client = pipes::stdout()?;
    let upward = tokio::task::spawn_local(copy(pipes::stdin()?, to_server));
    copy(from_server, to_client).await?;
    upward.abort();
    child.wait()?;
    Ok(())
}

/// Copies until the end; the writing side is closed by being dropped.
async fn copy(mut from: Receiver, mut to: Sender) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count]).await?;
    }
}
