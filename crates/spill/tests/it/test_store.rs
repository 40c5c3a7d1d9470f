//! A store in a directory of its own, and results to put into it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcp_proxy_spill::{
    JqRunner, ReadAnswer, ReadLimit, ReadRequest, SpillError, SpillFormat, SpillOptions,
    SpillOwner, SpillStore, SpilledResult,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const OWNER: SpillOwner = SpillOwner(1);
pub(crate) const STRANGER: SpillOwner = SpillOwner(2);
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// A store, the directory it works in, and its time.
pub(crate) struct TestStore {
    pub(crate) store: SpillStore,
    pub(crate) now: Instant,
    home: TempDir,
}

impl TestStore {
    pub(crate) fn new() -> TestStore {
        TestStore::with_quota(1 << 30)
    }

    pub(crate) fn with_quota(quota: u64) -> TestStore {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("shared");
        std::fs::create_dir(&root).unwrap();
        let options = options(home.path(), quota);
        let store = SpillStore::open(options).unwrap();
        TestStore {
            store,
            now: Instant::now(),
            home,
        }
    }

    /// The directory that holds those of all runs.
    pub(crate) fn directory(&self) -> PathBuf {
        self.home.path().join("spill")
    }

    /// A path below the directory whose files can be read.
    pub(crate) fn in_root(&self, name: &str) -> PathBuf {
        self.home.path().join("shared").join(name)
    }

    /// A path next to it.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Ends the run. The directory stays, to be looked at.
    pub(crate) fn end(self) -> TempDir {
        drop(self.store);
        self.home
    }

    pub(crate) fn spill(&self, value: &Value) -> SpilledResult {
        self.spill_as(OWNER, value).unwrap()
    }

    pub(crate) fn spill_as(
        &self,
        owner: SpillOwner,
        value: &Value,
    ) -> Result<SpilledResult, SpillError> {
        let result = one_text(&value.to_string());
        self.store
            .spill(owner, result.as_bytes(), SpillFormat::Json, self.now)
    }

    pub(crate) fn read(&self, file: &str, request: &ReadRequest) -> Result<ReadAnswer, SpillError> {
        self.read_within(file, request, ReadLimit::MOST)
    }

    pub(crate) fn read_within(
        &self,
        file: &str,
        request: &ReadRequest,
        limit: ReadLimit,
    ) -> Result<ReadAnswer, SpillError> {
        self.store.read(OWNER, file, request, limit, self.now)
    }

    pub(crate) fn text(&self, file: &str, request: &ReadRequest) -> String {
        self.read(file, request).unwrap().text.unwrap()
    }
}

pub(crate) fn options(home: &Path, quota: u64) -> SpillOptions {
    SpillOptions {
        directory: home.join("spill"),
        quota,
        ttl: TTL,
        roots: vec![home.join("shared")],
        spawn_sweeper: None,
        jq: JqRunner::InProcess,
    }
}

/// A result with one text.
pub(crate) fn one_text(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

/// As many records, each of which stands on a line.
pub(crate) fn records(count: usize) -> Value {
    (1..=count)
        .map(|id| json!({"id": id, "name": format!("record {id}"), "ok": id % 2 == 0}))
        .collect()
}
