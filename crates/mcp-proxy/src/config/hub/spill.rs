//! Flags and options about results that are kept in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_hub::config::{DispatchOptions, RootFolder};
use mcp_proxy_hub::{SpillSettings, SpillThreshold};
use mcp_proxy_session::store;
use mcp_proxy_spill::{JqRunner, SpillFormat, SpillOptions, SpillStore};
use mcp_proxy_transport::process::GuardProgram;

use crate::cli::serve::ServeArgs;
use crate::sweeper;

/// What all kept results together may take.
const QUOTA: u64 = 1 << 30;
/// How long a result is kept.
const TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

pub(super) fn spill_settings(
    args: &ServeArgs,
    options: &DispatchOptions,
    store: &Arc<SpillStore>,
) -> SpillSettings {
    let threshold = args.spill_threshold.or(options.spill_threshold);
    SpillSettings {
        store: Some(Arc::clone(store)),
        threshold: match threshold {
            None => SpillThreshold::ByClient,
            Some(0) => SpillThreshold::Never,
            Some(bytes) => SpillThreshold::Above(bytes),
        },
        format: match args.spill_toon.or(options.spill_toon) {
            Some(true) => SpillFormat::Toon,
            Some(false) | None => SpillFormat::Json,
        },
    }
}

pub(super) fn spill_store(args: &ServeArgs, options: &DispatchOptions) -> Result<SpillStore> {
    let roots: Vec<&Path> = match (&args.spill_root[..], &options.spill_roots) {
        ([], Some(roots)) => roots.iter().map(RootFolder::path).collect(),
        (roots, _) => roots.iter().map(PathBuf::as_path).collect(),
    };
    // Clients name files by absolute paths, so a relative root would match none.
    let real = |root: &Path| {
        let context = || format!("--spill-root or spill-roots: {}", root.display());
        let path = std::fs::canonicalize(root).with_context(context)?;
        match path.is_dir() {
            true => Ok(path),
            false => Err(anyhow::anyhow!("it is not a folder")).with_context(context),
        }
    };
    let roots = roots.into_iter().map(real).collect::<Result<_>>()?;
    SpillStore::open(SpillOptions {
        directory: store::state_dir()?
            .parent()
            .context("cannot find the state directory")?
            .join("spill"),
        quota: args.spill_quota.or(options.spill_quota).unwrap_or(QUOTA),
        ttl: args.spill_ttl.or(options.spill_ttl).unwrap_or(TIME_TO_LIVE),
        roots,
        spawn_sweeper: Some(sweeper::spawn),
        jq: JqRunner::Worker(GuardProgram::current()?.path().to_owned()),
    })
    .context("large results cannot be kept in files")
}
