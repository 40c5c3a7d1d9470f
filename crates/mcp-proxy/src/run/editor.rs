//! The user's editor, `$VISUAL` or `$EDITOR`, on a message. It has the terminal while it runs, and the caller waits.
//!
//! A signal that ends the program meanwhile is passed on, so that the two never fight over the terminal, and what was written
//! stays on the disk.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mcp_proxy_transport::process::terminate_innermost;
use rustix::process::Pid;

/// How often it is looked at whether the editor has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long an editor may take to end when it is told to.
pub const GRACE: Duration = Duration::from_secs(5);
/// Drafts of one process that may lie about.
const MOST_DRAFTS: u32 = 100;

/// What became of a message in the editor.
#[derive(Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// It was edited, or left as it was.
    Text(Vec<u8>),
    /// The program ends. What was written until then is in this file, if it is anything new.
    Stopped(Option<PathBuf>),
}

/// The editor, if there is one and a terminal for it.
pub fn configured_editor() -> Option<String> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.trim().is_empty())
    };
    io::stdin()
        .is_terminal()
        .then(|| set("VISUAL").or_else(|| set("EDITOR")))
        .flatten()
}

/// Has a message edited, until `stops` says that the program ends. `folder` is the user's alone, as is the file.
pub fn edit(
    editor: &str,
    folder: &Path,
    message: &[u8],
    stops: impl Fn() -> bool,
) -> Result<EditOutcome> {
    let draft =
        DraftFile::write(folder, message).context("cannot write the message for the editor")?;
    // The variable may hold arguments too, so a shell splits it, as git does.
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg(editor)
        .arg(&draft.0)
        .spawn()
        .with_context(|| format!("cannot run {editor}"))?;
    let status = wait(&mut child, &stops).with_context(|| format!("cannot wait for {editor}"))?;
    if stops() {
        let is_new = std::fs::read(&draft.0).is_ok_and(|text| trimmed(&text) != trimmed(message));
        // An editor that still has it open may write to it.
        let is_kept = is_new || status.is_none();
        return Ok(EditOutcome::Stopped(is_kept.then(|| draft.keep())));
    }
    match status {
        Some(status) if !status.success() => bail!("{editor} ended with {status}"),
        _ => {}
    }
    let mut edited = std::fs::read(&draft.0).context("cannot read what was edited")?;
    // Editors end a file with a newline; a message has none.
    if edited.ends_with(b"\n") && !message.ends_with(b"\n") {
        edited.pop();
    }
    Ok(EditOutcome::Text(edited))
}

/// Waits for the editor. If it should stop it is told so; `None` if it keeps running.
fn wait(child: &mut Child, stops: &impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let mut told = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        match told {
            None if stops() => {
                told = Some(Instant::now());
                terminate_innermost(Pid::from_child(child));
            }
            Some(told) if told.elapsed() > GRACE => return Ok(None),
            _ => std::thread::sleep(LOOK_EVERY),
        }
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}

/// Gone whatever happens, unless it is kept: it holds a message.
struct DraftFile(PathBuf);

impl DraftFile {
    fn write(folder: &Path, message: &[u8]) -> io::Result<DraftFile> {
        let mut number = 1;
        let (path, mut file) = loop {
            let path = folder.join(format!(".{}-{number}.edit", std::process::id()));
            let mut options = OpenOptions::new();
            let opened = options.write(true).create_new(true).mode(0o600).open(&path);
            match opened {
                // Kept by an earlier process of this number.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_DRAFTS =>
                {
                    number += 1
                }
                Err(error) => return Err(error),
                Ok(file) => break (path, file),
            }
        };
        let draft = DraftFile(path);
        file.write_all(message)?;
        Ok(draft)
    }

    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn an_editor_with_arguments_changes_the_message_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let goes_on = || false;
        let edited = edit("sed -i s/a/b/", folder.path(), b"{\"a\":1}", goes_on).unwrap();
        assert_eq!(edited, EditOutcome::Text(b"{\"b\":1}".to_vec()));
        let failed = edit("false", folder.path(), b"{}", goes_on).unwrap_err();
        assert!(failed.to_string().contains("false"), "{failed}");
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn a_draft_outlives_an_editor_that_was_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // From the second time on: the editor has started, and written.
        let written = || {
            let mut files = std::fs::read_dir(folder.path()).unwrap();
            files.any(|file| std::fs::read(file.unwrap().path()).is_ok_and(|text| text == b"new"))
        };
        let editor = "printf new >\"$1\"; sh -c 'sleep 60; exit 3'; :";
        let EditOutcome::Stopped(Some(draft)) =
            edit(editor, folder.path(), b"{}", written).unwrap()
        else {
            panic!("it was stopped");
        };
        assert_eq!(std::fs::read(draft).unwrap(), b"new");
        // What is as it was is not worth a file.
        let asked = Cell::new(0);
        let soon = || asked.replace(asked.get() + 1) > 0;
        let edited = edit("sleep 60; :", folder.path(), b"{}", soon).unwrap();
        assert_eq!(edited, EditOutcome::Stopped(None));
        assert_eq!(files(folder.path()), 1);
    }
}
