//! The sessions of HTTP clients, kept in a file, so that a hub that is started again knows them: some clients never open
//! another.
//!
//! The file is of this hub alone: of its address and its configuration. It is written when a session comes or goes, at most
//! once a second, so that `kill -9` leaves it as it should be. What is in it does not let its reader use a session
//! ([`SessionMemory`]), and only the user can read it.

use std::fs::{DirBuilder, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use mcp_proxy_session::store;
use mcp_proxy_transport::http::{SavedSession, SessionMemory};
use serde::{Deserialize, Serialize};

use super::json_file::{self, remove};
use crate::config::bounded_file::read_regular;
use crate::config::{Config, HubTarget};
use crate::printer;

/// More sessions than this are not kept.
const KEPT_MAX: usize = 1024;
/// Bytes of a file.
const SIZE_MAX: u64 = 8 << 20;
/// The file is not written again for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A file that was not written for this long is that of a hub which is not coming back.
const OLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The sessions of a hub, and their file.
pub struct KeptSessions {
    memory: Arc<SessionMemory>,
    path: PathBuf,
    /// Held while the file is written.
    writing: Mutex<()>,
}

#[derive(Default, Serialize, Deserialize)]
struct SessionsFile {
    sessions: Vec<SavedSession>,
}

impl KeptSessions {
    /// Those that the last run of this hub left behind, and those to come. The file follows them from now on.
    pub fn open(config: &Config, hub: &HubTarget, address: &str) -> Result<Arc<KeptSessions>> {
        let folder = store::state_dir()?.with_file_name("hub-sessions");
        make_private(&folder).with_context(|| format!("cannot use {}", folder.display()))?;
        remove_old(&folder);
        let path = folder.join(format!("{:016x}.json", identity(hub, address)));
        // A file that cannot be read is written anew; clients then open new sessions, as after any other end.
        let file = read(&path).unwrap_or_default();
        let most = config.limits.sessions.min(KEPT_MAX);
        let memory = SessionMemory::new(file.sessions, most, config.limits.idle);
        let kept = Arc::new(KeptSessions {
            memory: Arc::new(memory),
            path,
            writing: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&kept).follow());
        Ok(kept)
    }

    /// The sessions.
    pub fn memory(&self) -> Arc<SessionMemory> {
        Arc::clone(&self.memory)
    }

    /// The hub ends: the next run goes on with the sessions that there are now.
    pub fn finish(&self) {
        self.memory.finish();
        self.write();
    }

    /// Writes the file when something has changed. Changes that come while it is written or in the pause after that are in it
    /// the next time.
    async fn follow(self: Arc<Self>) {
        loop {
            self.memory.wait_for_change().await;
            let own = Arc::clone(&self);
            if tokio::task::spawn_blocking(move || own.write())
                .await
                .is_err()
            {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn write(&self) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = self.memory.saved();
        let written = match sessions.is_empty() {
            true => remove(&self.path),
            false => json_file::write(&self.path, &SessionsFile { sessions }),
        };
        if let Err(error) = written {
            printer::say(&format!(
                "mcp-proxy: cannot keep the sessions for the next start in {}: {error}",
                self.path.display()
            ));
        }
    }
}

/// What tells this hub from others of the same user. Servers on the command line count by name: the rest may be secret.
fn identity(hub: &HubTarget, address: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    address.hash(&mut hash);
    hub.source.identity().hash(&mut hash);
    hash.finish()
}

/// Others may neither look into the folder nor put anything there. Fails for a folder of another user.
fn make_private(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn read(path: &Path) -> Option<SessionsFile> {
    let text = read_regular(path, SIZE_MAX).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Removes what hubs have left behind that were not started again.
fn remove_old(folder: &Path) {
    let is_old = |path: &Path| {
        let modified = path.symlink_metadata().and_then(|about| about.modified());
        let age = modified.map(|time| SystemTime::now().duration_since(time));
        matches!(age, Ok(Ok(age)) if age > OLD)
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_old(&path) {
            let _ = remove(&path);
        }
    }
}
