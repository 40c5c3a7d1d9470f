//! A file that is written whole or not at all: to a name of its own first, then renamed.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};

/// Where an export goes.
#[derive(Debug)]
pub struct ExportFile {
    path: PathBuf,
    kind: ExportFileKind,
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// It is replaced.
    Replace,
    /// It stays, and the error ends with this advice.
    Keep(&'static str),
}

/// What is said of a file that stays, where nothing else can be done.
pub const RENAME: &str = "give another name";
/// The same for a viewer on the control socket.
pub const RENAME_OR_FORCE: &str = "give another name, or force=true to overwrite it";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFileKind {
    /// Nothing is there yet.
    New(ExistingFile),
    /// A file that may be replaced.
    Replaced,
    /// A pipe or a device: it is written to, never replaced.
    Device,
}

impl ExportFile {
    /// Checks that `path` may be written. `records` are the files that are exported.
    pub fn new<'r>(
        path: &Path,
        records: impl IntoIterator<Item = &'r Path>,
        existing: ExistingFile,
    ) -> Result<ExportFile> {
        let shown = path.display();
        let facts = match std::fs::metadata(path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(ExportFile {
                    path: path.to_owned(),
                    kind: ExportFileKind::New(existing),
                });
            }
            Err(error) => return Err(error).with_context(|| format!("cannot write {shown}")),
        };
        if facts.is_dir() {
            bail!("{shown} is a folder: name a file in it");
        }
        // The file itself, where a link was named: the link stays.
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot write {shown}"))?;
        let is_target = |record: &Path| record.canonicalize().is_ok_and(|record| record == path);
        if records.into_iter().any(is_target) {
            bail!("{shown} is the record itself");
        }
        let kind = match (facts.is_file(), existing) {
            (false, _) => ExportFileKind::Device,
            (true, ExistingFile::Replace) => ExportFileKind::Replaced,
            (true, ExistingFile::Keep(unless)) => bail!("{shown} exists; {unless}"),
        };
        Ok(ExportFile { path, kind })
    }

    /// Has `fill` write the file. Returns its size.
    pub fn write(&self, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
        let cannot = || format!("cannot write {}", self.path.display());
        if self.kind == ExportFileKind::Device {
            let mut file = CountingWriter {
                inner: OpenOptions::new()
                    .write(true)
                    .open(&self.path)
                    .with_context(cannot)?,
                bytes: 0,
            };
            fill(&mut file)?;
            return Ok(file.bytes);
        }
        let part = PartialFile::create(&self.path).with_context(cannot)?;
        let mut file = CountingWriter {
            inner: &part.file,
            bytes: 0,
        };
        fill(&mut file)?;
        let bytes = file.bytes;
        part.file.sync_all().with_context(cannot)?;
        self.put_in_place(&part.path).with_context(cannot)?;
        Ok(bytes)
    }

    /// A hard link, unlike a rename, fails if somebody has made the file meanwhile.
    fn put_in_place(&self, part: &Path) -> Result<()> {
        if let ExportFileKind::New(ExistingFile::Keep(unless)) = self.kind {
            match std::fs::hard_link(part, &self.path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(anyhow!("another program created it meanwhile; {unless}"));
                }
                // Some file systems have no hard links.
                Err(_) => {}
            }
        }
        Ok(std::fs::rename(part, &self.path)?)
    }
}

/// The file under its other name, which is gone at the end whatever happens. For its owner only: an export is as
/// sensitive as its record.
struct PartialFile {
    path: PathBuf,
    file: File,
}

impl PartialFile {
    fn create(target: &Path) -> std::io::Result<PartialFile> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let path = target.with_file_name(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(PartialFile { path, file })
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}

struct CountingWriter<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const FORCE: &str = "--force overwrites it";

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_export_leaves_nothing_and_a_good_one_one_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        let path = folder.path().join("x.json");
        let target = ExportFile::new(&path, [record.as_path()], ExistingFile::Keep(FORCE)).unwrap();
        target.write(|_| bail!("no")).unwrap_err();
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let size = target.write(|out| Ok(out.write_all(b"{}")?)).unwrap();
        assert_eq!((size, names(folder.path())), (2, vec!["x.json".to_owned()]));
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn nothing_is_overwritten_unasked_not_even_a_file_that_came_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        let path = folder.path().join("x.json");
        let target = ExportFile::new(&path, [record.as_path()], ExistingFile::Keep(FORCE)).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let error = target.write(|out| Ok(out.write_all(b"{}")?)).unwrap_err();
        assert!(format!("{error:#}").contains("x.json"), "{error:#}");
        let error =
            ExportFile::new(&path, [record.as_path()], ExistingFile::Keep(FORCE)).unwrap_err();
        assert!(error.to_string().ends_with(FORCE), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        ExportFile::new(&path, [record.as_path()], ExistingFile::Replace)
            .unwrap()
            .write(|out| Ok(out.write_all(b"{}")?))
            .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
        assert_eq!(names(folder.path()), ["x.json"]);
    }

    #[test]
    fn the_record_a_folder_and_a_device_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.jsonl");
        std::fs::write(&record, "").unwrap();
        assert!(ExportFile::new(&record, [record.as_path()], ExistingFile::Replace).is_err());
        assert!(ExportFile::new(folder.path(), [record.as_path()], ExistingFile::Replace).is_err());
        let null = ExportFile::new(
            Path::new("/dev/null"),
            [record.as_path()],
            ExistingFile::Replace,
        )
        .unwrap();
        assert_eq!(null.kind, ExportFileKind::Device);
        assert_eq!(null.write(|out| Ok(out.write_all(b"{}")?)).unwrap(), 2);
    }
}
