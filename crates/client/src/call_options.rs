//! What a caller can say about one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Called for each report of progress, in the order of arrival. It must not block: the connection waits for it.
///
/// ```
/// use std::sync::Arc;
/// use mcp_proxy_client::{CallOptions, ProgressHandler};
///
/// let handler: ProgressHandler = Arc::new(|report| eprintln!("{}", report.progress));
/// let mut options = CallOptions::new();
/// options.progress = Some(handler);
/// ```
pub type ProgressHandler = Arc<dyn Fn(Progress) + Send + Sync>;

/// Options of a call, or of all calls of a client that [`with_options`](crate::ProxyClient::with_options) made.
///
/// ```
/// use std::time::Duration;
/// use mcp_proxy_client::CallOptions;
///
/// let options = CallOptions::new()
///     .timeout(Duration::from_secs(5))
///     .progress(|progress| eprintln!("{} of {:?}", progress.progress, progress.total));
/// assert_eq!(options.timeout, Some(Duration::from_secs(5)));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long to wait for an answer, instead of the client's own timeout. Progress starts the time again, and it does
    /// not run out while a question of the server is being answered.
    pub timeout: Option<Duration>,
    /// How long a call may take in all, whatever its progress, its pages and the questions of the server.
    pub max_time: Option<Duration>,
    /// Called with each report of progress.
    pub progress: Option<ProgressHandler>,
}

/// How far a call is.
///
/// ```
/// use mcp_proxy_client::{CallOptions, Progress};
///
/// let percent = |report: &Progress| Some(100.0 * report.progress / report.total?);
/// let options = CallOptions::new().progress(move |report| eprintln!("{:?} %", percent(&report)));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done. It increases with each report.
    pub progress: f64,
    /// What there is to do, if the server knows.
    pub total: Option<f64>,
    /// What is happening.
    pub message: Option<String>,
}

impl CallOptions {
    /// The client's timeout, and nobody hears of progress.
    ///
    /// ```
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let options = CallOptions::new();
    /// assert!(options.timeout.is_none() && options.progress.is_none());
    /// ```
    pub fn new() -> CallOptions {
        CallOptions::default()
    }

    /// Waits this long for an answer. Progress starts the time again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let options = CallOptions::new().timeout(Duration::from_secs(5));
    /// assert_eq!(options.timeout, Some(Duration::from_secs(5)));
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> CallOptions {
        self.timeout = Some(timeout);
        self
    }

    /// Waits at most this long, even if the server reports progress or asks questions.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let options = CallOptions::new().max_time(Duration::from_secs(300));
    /// assert_eq!(options.max_time, Some(Duration::from_secs(300)));
    /// ```
    pub fn max_time(mut self, max_time: Duration) -> CallOptions {
        self.max_time = Some(max_time);
        self
    }

    /// Calls `handler` for each report of progress.
    ///
    /// ```
    /// use mcp_proxy_client::CallOptions;
    ///
    /// let options = CallOptions::new().progress(|report| eprintln!("{}", report.progress));
    /// assert!(options.progress.is_some());
    /// ```
    pub fn progress(mut self, handler: impl Fn(Progress) + Send + Sync + 'static) -> CallOptions {
        self.progress = Some(Arc::new(handler));
        self
    }

    /// These options, and those of `other` where nothing is said.
    pub(crate) fn or(&self, other: &CallOptions) -> CallOptions {
        CallOptions {
            timeout: self.timeout.or(other.timeout),
            max_time: self.max_time.or(other.max_time),
            progress: self.progress.clone().or_else(|| other.progress.clone()),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("max_time", &self.max_time)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}
