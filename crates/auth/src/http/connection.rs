//! Connections to the addresses that the policy allows, with TLS where the URL says so.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{AddressPolicy, ProxyFinder, unreachable};
use crate::{AuthError, AuthSettings};

/// For one address; a host may have several.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Opens a connection for each request: there are few of them.
pub(super) struct Connector {
    policy: AddressPolicy,
    ca_file: Option<PathBuf>,
    proxies: ProxyFinder,
    /// Read when it is first needed.
    tls: OnceCell<TlsConnector>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Connector {
    pub(super) fn new(policy: AddressPolicy, settings: &AuthSettings) -> Connector {
        Connector {
            policy,
            ca_file: settings.ca_file.clone(),
            proxies: settings.proxies.clone(),
            tls: OnceCell::new(),
        }
    }

    pub(super) fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    pub(super) async fn connect(&self, url: &Url) -> Result<SendRequest<Full<Bytes>>, AuthError> {
        let stream = self.open(url).await?;
        if url.scheme() != "https" {
            return start(url, stream).await;
        }
        let tls = self.tls.get_or_try_init(|| self.trust()).await?;
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
                .map_err(|error| unreachable(url, error.to_string()))?,
            Some(Host::Ipv4(address)) => std::net::IpAddr::from(address).into(),
            Some(Host::Ipv6(address)) => std::net::IpAddr::from(address).into(),
            None => return Err(unreachable(url, "it has no name".to_owned())),
        };
        let stream = tls.connect(name, stream).await;
        start(url, stream.map_err(|error| tls_failure(url, &error))?).await
    }

    /// Connects to the first address that answers. One address that is not allowed refuses the host: names that point at
    /// several places are how the check would be got around.
    async fn open(&self, url: &Url) -> Result<TcpStream, AuthError> {
        let uri = url.as_str().parse::<Uri>();
        let uri = uri.map_err(|error| unreachable(url, error.to_string()))?;
        let proxy = self.proxies.find(&uri);
        if let Some(proxy) = proxy.map_err(|why| unreachable(url, why))? {
            // Which addresses it connects to is the proxy's to decide.
            let opened = timeout(CONNECT_DEADLINE, proxy.tunnel(uri)).await;
            let opened = opened.unwrap_or_else(|_| Err("the proxy gives no connection".to_owned()));
            return opened.map_err(|why| unreachable(url, why));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        let addresses: Vec<SocketAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            Some(Host::Domain(name)) => lookup_host((name, port))
                .await
                .map_err(|error| unreachable(url, error.to_string()))?
                .collect(),
            None => Vec::new(),
        };
        for address in &addresses {
            self.policy.check_address(url, address.ip())?;
        }
        let mut why = "its name has no address".to_owned();
        for address in addresses {
            match timeout(CONNECT_DEADLINE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Only latency is lost if it fails.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => why = error.to_string(),
                Err(_) => why = "the connection timed out".to_owned(),
            }
        }
        Err(unreachable(url, why))
    }

    async fn trust(&self) -> Result<TlsConnector, AuthError> {
        let ca_file = self.ca_file.clone();
        let read = tokio::task::spawn_blocking(move || client_config(ca_file.as_deref()));
        let config = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let config = config.map_err(|why| AuthError::Certificates { why })?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

async fn start<S>(url: &Url, stream: S) -> Result<SendRequest<Full<Bytes>>, AuthError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let started = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = started.map_err(|error| unreachable(url, error.to_string()))?;
    // It ends with the sender; what goes wrong is told to the request.
    tokio::spawn(connection);
    Ok(sender)
}

/// Trusts the system's authorities and those in `ca_file`.
fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let certificates: Vec<CertificateDer<'static>> =
            read.map_err(|error| format!("the CA file holds no PEM certificates: {error}"))?;
        roots.add_parsable_certificates(certificates);
    }
    if roots.is_empty() {
        return Err("there are none on this system; name some with --ca-file".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn tls_failure(url: &Url, error: &std::io::Error) -> AuthError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let why = match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its certificate is signed by an authority that is not trusted here; name that authority's certificate with --ca-file"
        }
        Some(rustls::Error::InvalidCertificate(_)) => "its certificate is not valid",
        _ => "the TLS handshake failed",
    };
    unreachable(url, why.to_owned())
}
