//! Results that are kept in files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_hub::config::HubOptions;
use mcp_proxy_hub::{SpillSettings, SpillThreshold};
use mcp_proxy_session::store;
use mcp_proxy_spill::{JqRunner, SpillFormat, SpillOptions, SpillStore};
use mcp_proxy_transport::process::GuardProgram;

use crate::sweeper;

/// What all kept results together may take.
const QUOTA: u64 = 1 << 30;
/// How long a result is kept.
const TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

pub(super) fn spill_settings(options: &HubOptions, store: &Arc<SpillStore>) -> SpillSettings {
    SpillSettings {
        store: Some(Arc::clone(store)),
        threshold: match options.spill_threshold {
            None => SpillThreshold::ByClient,
            Some(0) => SpillThreshold::Never,
            Some(bytes) => SpillThreshold::Above(bytes),
        },
        format: match options.spill_toon {
            Some(true) => SpillFormat::Toon,
            Some(false) | None => SpillFormat::Json,
        },
    }
}

pub(super) fn spill_store(options: &HubOptions) -> Result<SpillStore> {
    // Clients name files by absolute paths, so a relative root would match none.
    let real = |root: &Path| {
        let context = || format!("--spill-root or spill-roots: {}", root.display());
        let path = std::fs::canonicalize(root).with_context(context)?;
        match path.is_dir() {
            true => Ok(path),
            false => Err(anyhow::anyhow!("it is not a folder")).with_context(context),
        }
    };
    let roots = options.spill_roots.iter().flatten();
    let roots = roots.map(|root| real(root.path()));
    SpillStore::open(SpillOptions {
        directory: store::state_dir()?
            .parent()
            .context("cannot find the state directory")?
            .join("spill"),
        quota: options.spill_quota.unwrap_or(QUOTA),
        ttl: options.spill_ttl.unwrap_or(TIME_TO_LIVE),
        roots: roots.collect::<Result<_>>()?,
        spawn_sweeper: Some(sweeper::spawn),
        jq: JqRunner::Worker(GuardProgram::current()?.path().to_owned()),
    })
    .context("large results cannot be kept in files")
}
