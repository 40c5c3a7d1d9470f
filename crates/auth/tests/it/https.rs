//! Servers with https.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::HeaderValue;
use mcp_proxy_auth::{AuthError, AuthSettings, HttpProxy, ProxyFinder};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use url::Url;

use crate::authorization_server::TestServer;
use crate::browser::{get, redirect_of};

/// Puts TLS in front of a server. Returns its port, and a file with the certificate.
async fn with_tls(server: &mut TestServer, name: &str) -> (u16, PathBuf) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
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
    server.base = format!("https://{name}:{port}");
    server.state().base = server.base.clone();
    (port, file)
}

/// A proxy that connects to one port whatever it is asked for. Returns its port, and the heads of the requests to it.
async fn proxy_to(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            seen.lock().unwrap().push(String::from_utf8(head).unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut behind = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut behind).await;
            });
        }
    });
    (own_port, heads)
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_can_be_named() {
    let mut server = TestServer::start().await;
    let plain = server.base.clone();
    let (_, ca_file) = with_tls(&mut server, "localhost").await;
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
    with_tls(&mut server, "localhost").await;
    let settings = AuthSettings {
        ca_file: Some(server.folder().join("none.pem")),
        ..AuthSettings::default()
    };
    let refused = server.sign_in_with(settings).begin(&[]).await.unwrap_err();
    assert!(matches!(refused, AuthError::Certificates { .. }));
    // No path of this machine.
    assert!(!refused.to_string().contains("none.pem"), "{refused}");
}

#[tokio::test]
async fn a_proxy_on_the_way_is_used() {
    let mut server = TestServer::start().await;
    let plain = server.base.clone();
    let (port, ca_file) = with_tls(&mut server, "mcp.example.com").await;
    let (proxy, heads) = proxy_to(port).await;
    let find = move |_: &http::Uri| {
        Ok(Some(HttpProxy {
            url: format!("http://127.0.0.1:{proxy}").parse().unwrap(),
            authorization: Some(HeaderValue::from_static("Basic abc")),
        }))
    };
    let settings = AuthSettings {
        ca_file: Some(ca_file),
        proxies: ProxyFinder::new(find),
        ..AuthSettings::default()
    };
    let mut login = server.sign_in_with(settings).begin(&[]).await.unwrap();
    let page = login.url().as_str().replace(&server.base, &plain);
    let back = redirect_of(&Url::parse(&page).unwrap()).await;
    let (facts, _) = tokio::join!(login.redirected(), get(&back));
    assert!(facts.is_ok());
    let asked = format!("CONNECT mcp.example.com:{port} HTTP/1.1");
    for head in &*heads.lock().unwrap() {
        assert!(head.starts_with(&asked), "{head}");
        assert!(head.contains("Basic abc"), "{head}");
    }
    // An environment that makes no sense is told.
    let settings = AuthSettings {
        proxies: ProxyFinder::new(|_| Err("the environment is wrong".to_owned())),
        ..AuthSettings::default()
    };
    let refused = server.sign_in_with(settings).begin(&[]).await.unwrap_err();
    assert!(matches!(refused, AuthError::Unreachable { .. }));
}
