//! How long to wait before something that failed is tried again.

use std::time::Duration;

/// The first wait after a failure. It doubles with each further one.
const FIRST: Duration = Duration::from_secs(1);

const MAX: Duration = Duration::from_secs(60);

/// What has worked this long has recovered, and its failures are forgotten.
pub(crate) const RECOVERED: Duration = Duration::from_secs(60);

/// The wait after this many failures in a row, not counting the last one.
pub(crate) fn wait_after(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << failures.min(6)).min(MAX)
}
