//! Reads files that a person configured, or that an earlier run left behind. A path may lead to something that never ends or never answers, such as a pipe, a
//! device or a network folder that is gone, and that must not stop the proxy.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::OFlags;

/// The largest file that is read.
const SIZE_MAX: u64 = 16 << 20;
/// A file is read within this time, or not at all.
const DEADLINE: Duration = Duration::from_secs(5);

/// The text of a file, which is regular, not too large, and read in time.
pub fn read_text(path: &Path) -> io::Result<String> {
    within(DEADLINE, path, |path| {
        let text = String::from_utf8(read_regular(path, SIZE_MAX)?);
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
    })
}

/// Does it on a thread of its own, which is left alone if it does not come back.
fn within(
    deadline: Duration,
    path: &Path,
    read: impl FnOnce(&Path) -> io::Result<String> + Send + 'static,
) -> io::Result<String> {
    let (sender, result) = mpsc::sync_channel(1);
    let path = path.to_owned();
    let reader = std::thread::Builder::new().name("config-file".to_owned());
    reader.spawn(move || {
        // Nobody waits any more if it took too long.
        let _ = sender.send(read(&path));
    })?;
    result.recv_timeout(deadline).unwrap_or_else(|_| {
        let text = format!("it could not be read within {} s", deadline.as_secs_f32());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    })
}

/// What is in a file of at most `size_max` bytes, if it is a regular one.
pub fn read_regular(path: &Path, size_max: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its other end.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let invalid = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
    if !file.metadata()?.is_file() {
        return invalid("it is not a regular file".to_owned());
    }
    let mut content = Vec::new();
    let size = file.take(size_max + 1).read_to_end(&mut content)?;
    if size as u64 > size_max {
        return invalid(format!("it is larger than {} MiB", size_max >> 20));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a4_a_config_file_that_does_not_end_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, "{}").unwrap();
        assert_eq!(read_text(&path).unwrap(), "{}");
        let kind = |path: &Path| read_text(path).unwrap_err().kind();
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::InvalidData);
        assert_eq!(kind(folder.path()), io::ErrorKind::InvalidData);
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(SIZE_MAX + 1).unwrap();
        assert_eq!(kind(&path), io::ErrorKind::InvalidData);
        let fifo = folder.path().join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(kind(&fifo), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a4_a_folder_that_does_not_answer_is_given_up() {
        let (never, hang) = mpsc::channel::<()>();
        let deadline = Duration::from_millis(10);
        let read = within(deadline, Path::new("/net/config"), move |_| {
            let _ = hang.recv();
            Ok(String::new())
        });
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(never);
    }
}
