//! How a client is made.

// Sampling and roots are deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    Implementation, LoggingLevel, ProtocolVersion, Root, ServerNotification,
};
use rmcp::service::{ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::IntoTransport;
use rmcp::{RoleClient, transport::Transport};

use crate::client::{ClientSettings, ProxyClient};
use crate::error::ClientError;
use crate::server_requests::{ElicitationHandler, SamplingHandler, ServerRequests};
use crate::target::ClientTarget;
use crate::transport::{ChildTransport, NotificationHandler, ObservedTransport};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of a [`ProxyClient`] that is to be connected.
///
/// ```no_run
/// use std::time::Duration;
/// use mcp_proxy_client::ProxyClient;
///
/// # async fn example() -> Result<(), mcp_proxy_client::ClientError> {
/// let client = ProxyClient::builder()
///     .transparent(true)
///     .fall_back_to_native(true)
///     .header("Authorization", "Bearer secret")
///     .timeout(Duration::from_secs(10))
///     .connect("https://example.com/mcp")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it connects"]
pub struct ProxyClientBuilder {
    settings: ClientSettings,
    headers: Vec<(String, String)>,
    lifecycle: ClientLifecycleMode,
    implementation: Implementation,
    elicitation: Option<ElicitationHandler>,
    sampling: Option<SamplingHandler>,
    roots: Option<Vec<Root>>,
    on_notification: Option<NotificationHandler>,
}

impl Default for ProxyClientBuilder {
    fn default() -> ProxyClientBuilder {
        ProxyClientBuilder {
            settings: ClientSettings {
                timeout: DEFAULT_TIMEOUT,
                ..ClientSettings::default()
            },
            headers: Vec::new(),
            lifecycle: ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            implementation: Implementation::new("mcp-proxy-client", env!("CARGO_PKG_VERSION")),
            elicitation: None,
            sampling: None,
            roots: None,
            on_notification: None,
        }
    }
}

impl ProxyClientBuilder {
    /// Whether the typed methods go through the `proxy` tool. Without it, they are the server's own.
    pub fn transparent(mut self, transparent: bool) -> ProxyClientBuilder {
        self.settings.transparent = transparent;
        self
    }

    /// Whether a transparent client uses the server's own methods if the server offers no `proxy` tool. Otherwise it
    /// does not connect.
    pub fn fall_back_to_native(mut self, fall_back: bool) -> ProxyClientBuilder {
        self.settings.fall_back_to_native = fall_back;
        self
    }

    /// The name of the `proxy` tool. Without it, a tool of a usual name or description is looked for.
    pub fn proxy_tool_name(mut self, name: impl Into<String>) -> ProxyClientBuilder {
        self.settings.proxy_tool_name = Some(name.into());
        self
    }

    /// The name of the `proxy-dispatch` tool, if it has another.
    pub fn dispatch_tool_name(mut self, name: impl Into<String>) -> ProxyClientBuilder {
        self.settings.dispatch_tool_name = Some(name.into());
        self
    }

    /// Sends a header with each HTTP request.
    pub fn header(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> ProxyClientBuilder {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How long to wait for the connection, and for each answer. Progress starts the time again. 60 seconds if this is
    /// not called.
    pub fn timeout(mut self, timeout: Duration) -> ProxyClientBuilder {
        self.settings.timeout = timeout;
        self
    }

    /// Asks a modern server for log messages of at least this level, which are notifications. A legacy server sends them
    /// without being asked.
    pub fn log_level(mut self, level: LoggingLevel) -> ProxyClientBuilder {
        self.settings.log_level = Some(level);
        self
    }

    /// What the client calls itself.
    pub fn client_info(
        mut self,
        name: impl Into<String>,
        version: impl Into<String>,
    ) -> ProxyClientBuilder {
        self.implementation = Implementation::new(name, version);
        self
    }

    /// How the conversation opens. By default the client asks with `server/discover` whether the server is of the modern
    /// era, and sends `initialize` if it is not.
    pub fn lifecycle(mut self, lifecycle: ClientLifecycleMode) -> ProxyClientBuilder {
        self.lifecycle = lifecycle;
        self
    }

    /// Answers the server's questions to the user. Without it, the server knows that there is nobody to ask.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::model::{ElicitResult, ElicitationAction};
    ///
    /// let builder = ProxyClient::builder()
    ///     .elicitation(|_question| async { Ok(ElicitResult::new(ElicitationAction::Cancel)) });
    /// ```
    pub fn elicitation<F>(
        mut self,
        handler: impl Fn(ElicitRequestParams) -> F + Send + Sync + 'static,
    ) -> ProxyClientBuilder
    where
        F: Future<Output = Result<ElicitResult, ErrorData>> + Send + 'static,
    {
        self.elicitation = Some(Arc::new(move |params| Box::pin(handler(params))));
        self
    }

    /// Answers the server's requests to the model.
    pub fn sampling<F>(
        mut self,
        handler: impl Fn(CreateMessageRequestParams) -> F + Send + Sync + 'static,
    ) -> ProxyClientBuilder
    where
        F: Future<Output = Result<CreateMessageResult, ErrorData>> + Send + 'static,
    {
        self.sampling = Some(Arc::new(move |params| Box::pin(handler(params))));
        self
    }

    /// The folders that the server may use.
    pub fn roots(mut self, roots: Vec<Root>) -> ProxyClientBuilder {
        self.roots = Some(roots);
        self
    }

    /// Calls `handler` for each notification of the server, in the order of arrival. It must not block: the connection
    /// waits for it.
    pub fn on_notification(
        mut self,
        handler: impl Fn(ServerNotification) + Send + Sync + 'static,
    ) -> ProxyClientBuilder {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    /// Connects to a server at a URL, or starts one.
    pub async fn connect(
        self,
        target: impl Into<ClientTarget>,
    ) -> Result<ProxyClient, ClientError> {
        let target = target.into();
        let name = target.to_string();
        match &target {
            ClientTarget::Command { .. } => {
                let transport = ChildTransport::start(&target)
                    .map_err(|error| ClientError::connect(&name, &error))?;
                self.open(transport, &name).await
            }
            ClientTarget::Url(url) => self.connect_url(url, &name).await,
        }
    }

    #[cfg(feature = "http")]
    async fn connect_url(self, url: &str, name: &str) -> Result<ProxyClient, ClientError> {
        let mut headers = std::collections::HashMap::new();
        for (header, value) in &self.headers {
            let invalid = |reason: String| ClientError::Connect {
                target: name.to_owned(),
                reason: format!("header {header}: {reason}"),
            };
            let header = http::HeaderName::from_bytes(header.as_bytes())
                .map_err(|error| invalid(error.to_string()))?;
            let mut value =
                http::HeaderValue::from_str(value).map_err(|error| invalid(error.to_string()))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let transport = crate::transport::http_transport(url, headers)
            .map_err(|error| ClientError::connect(name, &error))?;
        self.open(transport, name).await
    }

    #[cfg(not(feature = "http"))]
    async fn connect_url(self, _url: &str, name: &str) -> Result<ProxyClient, ClientError> {
        Err(ClientError::Connect {
            target: name.to_owned(),
            reason: "this program was built without the feature http".to_owned(),
        })
    }

    /// Connects over any rmcp transport, such as one end of [`tokio::io::duplex`].
    ///
    /// The transport parses messages with rmcp's types, which drop annotations that they do not know. So of a server
    /// that writes its facts only there, pages are followed until one is not full.
    pub async fn connect_transport<T, E, A>(self, transport: T) -> Result<ProxyClient, ClientError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.open(transport.into_transport(), "the server").await
    }

    async fn open<T>(self, transport: T, name: &str) -> Result<ProxyClient, ClientError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let timeout = self.settings.timeout;
        let server_requests = Arc::new(ServerRequests {
            implementation: self.implementation,
            elicitation: self.elicitation,
            sampling: self.sampling,
            roots: self.roots,
            open: AtomicUsize::new(0),
        });
        let transport = ObservedTransport::new(transport, self.on_notification);
        let opening =
            serve_client_with_lifecycle(Arc::clone(&server_requests), transport, self.lifecycle);
        let service = match tokio::time::timeout(timeout, Box::pin(opening)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(ClientError::connect(name, &error)),
            Err(_) => {
                return Err(ClientError::Connect {
                    target: name.to_owned(),
                    reason: format!("no answer within {} s", timeout.as_secs_f64()),
                });
            }
        };
        ProxyClient::new(service, server_requests, self.settings).await
    }
}

/// Without headers, which may be secrets, and handlers, which cannot be shown.
impl fmt::Debug for ProxyClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyClientBuilder")
            .field("settings", &self.settings)
            .field("lifecycle", &self.lifecycle)
            .finish_non_exhaustive()
    }
}
