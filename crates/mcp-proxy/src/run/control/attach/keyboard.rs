//! Lines from stdin, one at a time and only when asked for, so that an editor can have the terminal in between.

use std::fs::OpenOptions;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_transport::stdio::stdin_is_a_channel;
use tokio::sync::mpsc;

/// Who answers, if somebody does.
pub struct Keyboard {
    lines: mpsc::Receiver<String>,
    ask: std::sync::mpsc::SyncSender<()>,
}

impl Keyboard {
    /// `None`: stdin is neither a terminal nor a pipe, so nobody answers.
    pub fn open() -> Option<Keyboard> {
        if !(std::io::stdin().is_terminal() || stdin_is_a_channel()) {
            return None;
        }
        let (tell, lines) = mpsc::channel(1);
        let (ask, asked) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                let mut line = String::new();
                match std::io::stdin().lock().read_line(&mut line) {
                    Ok(1..) if tell.blocking_send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        let keyboard = Keyboard { lines, ask };
        keyboard.read_on();
        Some(keyboard)
    }

    /// The next line may be read.
    pub fn read_on(&self) {
        // Already told, or at its end: both are known when the next line does not come.
        let _ = self.ask.try_send(());
    }

    /// The line, when it comes. `None`: there will be no more. Safe to cancel.
    pub async fn line(keyboard: &mut Option<Keyboard>) -> Option<String> {
        match keyboard {
            Some(keyboard) => keyboard.lines.recv().await,
            None => std::future::pending().await,
        }
    }
}

/// The user's editor, if there is one and a terminal for it.
pub fn editor() -> Option<String> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.trim().is_empty())
    };
    std::io::stdin()
        .is_terminal()
        .then(|| set("VISUAL").or_else(|| set("EDITOR")))
        .flatten()
}

/// Has a message edited. `folder` is the user's alone, as is the file.
pub fn edit(editor: &str, folder: &Path, message: &[u8]) -> Result<Vec<u8>> {
    let draft = Draft(folder.join(format!(".{}.edit", std::process::id())));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft.0)
        .context("cannot write the message for the editor")?;
    file.write_all(message)?;
    drop(file);
    // The variable may hold arguments too, so a shell splits it, as git does.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg(editor)
        .arg(&draft.0)
        .status()
        .with_context(|| format!("cannot run {editor}"))?;
    if !status.success() {
        bail!("{editor} ended with {status}");
    }
    let mut edited = std::fs::read(&draft.0).context("cannot read what was edited")?;
    // Editors end a file with a newline; a message has none.
    if edited.ends_with(b"\n") && !message.ends_with(b"\n") {
        edited.pop();
    }
    Ok(edited)
}

/// Gone whatever happens: it holds a message.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_with_arguments_changes_the_message_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let edited = edit("sed -i s/a/b/", folder.path(), b"{\"a\":1}").unwrap();
        assert_eq!(edited, b"{\"b\":1}");
        let failed = edit("false", folder.path(), b"{}").unwrap_err();
        assert!(failed.to_string().contains("false"), "{failed}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
