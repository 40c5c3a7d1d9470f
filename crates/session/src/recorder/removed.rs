//! A record whose file is removed, perhaps with its folder, while the proxy runs: it begins again at its place.

use super::Recorder;
use super::sync::SyncTarget;
use crate::{Error, RecordErrorPolicy, RecordLocation, RecordPart, lock};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is looked whether the file is still there: a system call for each message would cost more than it is worth.
pub(super) const LOOK_PAUSE: Duration = Duration::from_secs(1);

impl Recorder {
    /// Makes the file again if it was removed, and says so. Lines that wait to be written belong to the old one, so it is put
    /// off until there are none.
    pub(super) fn begin_again_if_removed(&mut self) {
        if !self.lines.out.is_empty() || self.seen_at.elapsed() < LOOK_PAUSE {
            return;
        }
        self.seen_at = Instant::now();
        let is_removed = |facts: std::fs::Metadata| facts.is_file() && facts.nlink() == 0;
        if !self.file.metadata().is_ok_and(is_removed) {
            return;
        }
        let outcome = match self.on_error {
            RecordErrorPolicy::Stop => Err(self.removed("it was removed while it was written")),
            RecordErrorPolicy::Warn => self.begin_again(),
        };
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }

    fn begin_again(&mut self) -> Result<(), Error> {
        let place = RecordLocation::File(self.path.clone());
        let (file, path) = place.create(&self.parts.header)?;
        if let Some(syncer) = &self.syncer {
            let target = SyncTarget::new(&file, &path)
                .map_err(|error| Error::io("start the sync thread for", &path, error))?;
            syncer.switch_to(target);
        }
        let text = format!(
            "it was removed, with {} messages in it; the record begins again in {}",
            self.parts.messages,
            path.display()
        );
        self.faults.warn(&self.removed(&text));
        lock::release_lock(&self.file);
        self.file = file;
        let (number, previous) = self.parts.replace_last(&path);
        let part = RecordPart { number, previous };
        self.header =
            self.parts
                .header
                .line(&self.lines.masks, self.lines.redaction.as_ref(), &part);
        self.path = path;
        (self.good, self.torn) = (0, false);
        // The record says so too, with a `gap` line.
        self.lost += std::mem::take(&mut self.parts.messages);
        self.open_connections_again();
        Ok(())
    }

    fn removed(&self, what: &str) -> Error {
        let path: &Path = &self.path;
        Error::io("continue", path, io::Error::other(what.to_owned()))
    }
}
