//! TLS on both sides: rustls with ring, the system's certificate authorities, PEM files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

mod failure_text;

pub(crate) use failure_text::failure_text;

/// What can be wrong with certificates and keys.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read as PEM.
    #[error("{path}: no PEM {what} could be read")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The certificate and key were read but do not fit.
    #[error("certificate or key refused")]
    Refused(#[from] rustls::Error),
    /// No certificate authority at all.
    #[error("no certificate authorities found on this system; name some with --ca-file")]
    NoRoots,
}

/// Trusts the system's authorities and those in `ca_file`.
pub fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    // Single unreadable system certificates are common and harmless; none at all is told below.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        roots.add_parsable_certificates(certificates(path)?);
    }
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// A listener's certificate chain and key, which can be read again while it listens.
#[derive(Debug)]
pub struct ServerCertificate {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ServerCertificate {
    /// Reads both files.
    pub fn open(cert: &Path, key: &Path) -> Result<Arc<ServerCertificate>, TlsError> {
        Ok(Arc::new(ServerCertificate {
            current: RwLock::new(Arc::new(certified_key(cert, key)?)),
            cert: cert.to_owned(),
            key: key.to_owned(),
        }))
    }

    /// Reads them again, for connections that come from now on. If that fails, those that were read before stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let read = Arc::new(certified_key(&self.cert, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// For a listener that offers h2 and HTTP/1.1.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

fn certified_key(cert: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(cert)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Pem {
        path: key.to_owned(),
        what: "private key",
        source,
    })?;
    let provider = rustls::crypto::ring::default_provider();
    Ok(CertifiedKey::from_der(chain, private, &provider)?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem {
        path: path.to_owned(),
        what: "certificate",
        source,
    };
    CertificateDer::pem_file_iter(path)
        .map_err(pem)?
        .collect::<Result<_, _>>()
        .map_err(pem)
}
