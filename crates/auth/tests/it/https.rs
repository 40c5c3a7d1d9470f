//! Servers with https.

use std::sync::Arc;

use mcp_proxy_auth::{AuthError, AuthSettings};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use url::Url;

use crate::authorization_server::TestServer;
use crate::browser::{get, redirect_of};

/// Puts TLS in front of a server. Returns its base, and a file with the certificate.
async fn with_tls(server: &mut TestServer) -> std::path::PathBuf {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = server.folder().join("ca.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = server.base.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                // A client that does not trust us ends the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut plain = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    server.base = format!("https://localhost:{port}");
    server.state().base = server.base.clone();
    file
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_can_be_named() {
    let mut server = TestServer::start().await;
    let plain = server.base.clone();
    let ca_file = with_tls(&mut server).await;
    let refused = server.sign_in().begin(&[]).await.unwrap_err();
    assert!(
        matches!(refused, AuthError::Unreachable { .. }),
        "{refused:?}"
    );
    let settings = AuthSettings {
        ca_file: Some(ca_file),
        ..AuthSettings::default()
    };
    let mut login = server.sign_in_with(settings).begin(&[]).await.unwrap();
    // The browser of the test knows no TLS.
    let page = login.url().as_str().replace(&server.base, &plain);
    let back = redirect_of(&Url::parse(&page).unwrap()).await;
    let (facts, _) = tokio::join!(login.redirected(), get(&back));
    assert_eq!(facts.unwrap().issuer, server.base);
}

#[tokio::test]
async fn a_file_without_certificates_is_told() {
    let mut server = TestServer::start().await;
    with_tls(&mut server).await;
    let settings = AuthSettings {
        ca_file: Some(server.folder().join("none.pem")),
        ..AuthSettings::default()
    };
    let refused = server.sign_in_with(settings).begin(&[]).await.unwrap_err();
    assert!(matches!(refused, AuthError::Certificates { .. }));
    // No path of this machine.
    assert!(!refused.to_string().contains("none.pem"), "{refused}");
}
