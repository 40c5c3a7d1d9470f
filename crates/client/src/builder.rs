//! How a client is made.

// Sampling and roots are deprecated in the newest revision, and in use in all others.
#![allow(deprecated)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    Implementation, LoggingLevel, ProtocolVersion, Root, ServerNotification,
};
use rmcp::service::{ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::IntoTransport;
use rmcp::{RoleClient, transport::Transport};

use crate::client::{ClientSettings, ProxyClient};
use crate::connect_error::ConnectError;
use crate::error::ClientError;
use crate::server_requests::{ElicitationHandler, SamplingHandler, ServerRequests};
use crate::target::ClientTarget;
use crate::transport::{ChildTransport, LineTransport, NotificationHandler, ObservedTransport};
use crate::warning::{ClientWarning, WarningHandler};

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
    on_warning: Option<WarningHandler>,
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
            on_warning: None,
        }
    }
}

impl ProxyClientBuilder {
    /// Whether the typed methods go through the `proxy` tool. Without it, they are the server's own.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().transparent(true);
    /// # let _ = builder;
    /// ```
    pub fn transparent(mut self, transparent: bool) -> ProxyClientBuilder {
        self.settings.transparent = transparent;
        self
    }

    /// Whether a transparent client uses the server's own methods if the server offers no `proxy` tool. Otherwise it
    /// does not connect.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().transparent(true).fall_back_to_native(true);
    /// # let _ = builder;
    /// ```
    pub fn fall_back_to_native(mut self, fall_back: bool) -> ProxyClientBuilder {
        self.settings.fall_back_to_native = fall_back;
        self
    }

    /// The name of the `proxy` tool. Without it, a tool of a usual name or description is looked for.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().proxy_tool_name("everything");
    /// # let _ = builder;
    /// ```
    pub fn proxy_tool_name(mut self, name: impl Into<String>) -> ProxyClientBuilder {
        self.settings.proxy_tool_name = Some(name.into());
        self
    }

    /// The name of the `proxy-dispatch` tool, if it has another.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().dispatch_tool_name("find-and-call");
    /// # let _ = builder;
    /// ```
    pub fn dispatch_tool_name(mut self, name: impl Into<String>) -> ProxyClientBuilder {
        self.settings.dispatch_tool_name = Some(name.into());
        self
    }

    /// Sends a header with each HTTP request.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().header("Authorization", "Bearer secret");
    /// assert!(!format!("{builder:?}").contains("secret"));
    /// ```
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
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().timeout(std::time::Duration::from_secs(10));
    /// # let _ = builder;
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> ProxyClientBuilder {
        self.settings.timeout = timeout;
        self
    }

    /// Asks a modern server for log messages of at least this level, which are notifications. A legacy server sends them
    /// without being asked.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::model::LoggingLevel;
    ///
    /// # #[allow(deprecated)]
    /// let builder = ProxyClient::builder().log_level(LoggingLevel::Warning);
    /// # let _ = builder;
    /// ```
    pub fn log_level(mut self, level: LoggingLevel) -> ProxyClientBuilder {
        self.settings.log_level = Some(level);
        self
    }

    /// What the client calls itself.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().client_info("my-agent", "1.0");
    /// # let _ = builder;
    /// ```
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
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::service::ClientLifecycleMode;
    ///
    /// let builder = ProxyClient::builder().lifecycle(ClientLifecycleMode::Initialize);
    /// # let _ = builder;
    /// ```
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
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::model::ErrorData;
    ///
    /// let builder = ProxyClient::builder()
    ///     .sampling(|_request| async { Err(ErrorData::internal_error("the model is busy", None)) });
    /// # let _ = builder;
    /// ```
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
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::model::Root;
    ///
    /// let builder = ProxyClient::builder().roots(vec![Root::new("file:///people/ada/notes")]);
    /// # let _ = builder;
    /// ```
    pub fn roots(mut self, roots: Vec<Root>) -> ProxyClientBuilder {
        self.roots = Some(roots);
        self
    }

    /// Calls `handler` for each notification of the server, in the order of arrival. It must not block: the connection
    /// waits for it.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().on_notification(|notification| eprintln!("{notification:?}"));
    /// # let _ = builder;
    /// ```
    pub fn on_notification(
        mut self,
        handler: impl Fn(ServerNotification) + Send + Sync + 'static,
    ) -> ProxyClientBuilder {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    /// Calls `handler` with what is wrong without making a call fail, such as one definition in a list that cannot be
    /// decoded. Without it, nobody hears of that.
    ///
    /// ```
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let builder = ProxyClient::builder().on_warning(|warning| eprintln!("warning: {warning}"));
    /// # let _ = builder;
    /// ```
    pub fn on_warning(
        mut self,
        handler: impl Fn(ClientWarning) + Send + Sync + 'static,
    ) -> ProxyClientBuilder {
        self.on_warning = Some(Arc::new(handler));
        self
    }

    /// Connects to a server at a URL, or starts one.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), mcp_proxy_client::ClientError> {
    /// use mcp_proxy_client::{ClientTarget, ProxyClient};
    ///
    /// let far = ProxyClient::builder().connect("https://example.com/mcp").await?;
    /// let target = ClientTarget::command("uvx", ["mcp-server-time"]).env("TZ", "UTC");
    /// let near = ProxyClient::builder().connect(target).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(
        self,
        target: impl Into<ClientTarget>,
    ) -> Result<ProxyClient, ClientError> {
        let target = target.into();
        let name = target.to_string();
        match &target {
            ClientTarget::Command { .. } => {
                let transport = ChildTransport::start(&target)
                    .map_err(|error| not_connected(&name, ConnectError::Start(error)))?;
                self.open(transport, &name).await
            }
            ClientTarget::Url(url) => self.connect_url(url, &name).await,
        }
    }

    #[cfg(feature = "http")]
    async fn connect_url(self, url: &str, name: &str) -> Result<ProxyClient, ClientError> {
        let mut headers = std::collections::HashMap::new();
        for (header, value) in &self.headers {
            let invalid = |source: http::Error| {
                let name_of_header = header.clone();
                let source = source.into();
                not_connected(
                    name,
                    ConnectError::Header {
                        name: name_of_header,
                        source,
                    },
                )
            };
            let header = http::HeaderName::from_bytes(header.as_bytes())
                .map_err(|error| invalid(error.into()))?;
            let mut value =
                http::HeaderValue::from_str(value).map_err(|error| invalid(error.into()))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let transport = crate::transport::http_transport(url, headers)
            .map_err(|error| not_connected(name, error.into()))?;
        self.open(transport, name).await
    }

    #[cfg(not(feature = "http"))]
    async fn connect_url(self, _url: &str, name: &str) -> Result<ProxyClient, ClientError> {
        Err(not_connected(name, ConnectError::NoHttp))
    }

    /// Connects over a stream with one message on each line, such as a socket or one end of [`tokio::io::duplex`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use mcp_proxy_client::ProxyClient;
    ///
    /// let (reader, writer) = tokio::net::TcpStream::connect("127.0.0.1:7000").await?.into_split();
    /// let client = ProxyClient::builder().connect_stream(reader, writer).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_stream<R, W>(
        self,
        reader: R,
        writer: W,
    ) -> Result<ProxyClient, ClientError>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        self.open(LineTransport::new(reader, writer), "the server")
            .await
    }

    /// Connects over any rmcp transport.
    ///
    /// The transport parses messages with rmcp's types. Those drop annotations that they do not know, so of a server
    /// that writes its facts only there, pages are followed until one is not full. And an answer that they do not take
    /// is no answer: the request waits until its time runs out. [`connect_stream`](ProxyClientBuilder::connect_stream)
    /// has neither limit.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use mcp_proxy_client::ProxyClient;
    /// use mcp_proxy_client::rmcp::transport::async_rw::AsyncRwTransport;
    ///
    /// let (reader, writer) = tokio::net::TcpStream::connect("127.0.0.1:7000").await?.into_split();
    /// let transport = AsyncRwTransport::new_client(reader, writer);
    /// let client = ProxyClient::builder().connect_transport(transport).await?;
    /// # Ok(())
    /// # }
    /// ```
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
        let tools_changed = Arc::new(AtomicBool::new(false));
        let transport =
            ObservedTransport::new(transport, self.on_notification, Arc::clone(&tools_changed));
        let opening =
            serve_client_with_lifecycle(Arc::clone(&server_requests), transport, self.lifecycle);
        let service = match tokio::time::timeout(timeout, Box::pin(opening)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(not_connected(name, error.into())),
            Err(_) => {
                let cause = ConnectError::NoAnswer { after: timeout };
                return Err(not_connected(name, cause));
            }
        };
        ProxyClient::new(
            service,
            server_requests,
            self.settings,
            self.on_warning,
            tools_changed,
        )
        .await
    }
}

fn not_connected(target: &str, source: ConnectError) -> ClientError {
    ClientError::Connect {
        target: target.to_owned(),
        source,
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
