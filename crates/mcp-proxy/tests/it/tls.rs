//! TLS on both sides: one proxy listens with it, another dials it. That h2 is what is spoken then is seen with a peer
//! that is not ours, in `tests/interop/h2.rs`.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde_json::json;

use crate::programs::{INITIALIZE, ListeningProgram, PROXY, error_answer, pipe};

/// A certificate for a host, and its key.
pub fn certificate(folder: &Path, host: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (cert.display().to_string(), key.display().to_string())
}

#[test]
fn https_is_spoken_to_clients_and_to_servers() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "localhost");
    let args = [
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--",
        PROXY,
        "demo-server",
        "stdio",
    ];
    let inner = ListeningProgram::proxy("http", &args);
    let port = inner.address.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}/mcp");
    let outer = ListeningProgram::proxy(
        "http",
        &[
            "--transport",
            "streamable-http",
            "--ca-file",
            &cert,
            "--target-url",
            &url,
        ],
    );
    let session = outer.session();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let answer = outer.post(&[("mcp-session-id", &session)], list);
    assert!(answer.text().contains("count_down"), "{answer:?}");
    // Without the certificate nothing is trusted, so nothing is said.
    let output = pipe(
        &["proxy", "--listen", "stdio", "--no-record", &url],
        format!("{INITIALIZE}\n").as_bytes(),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&text), (json!(1), -31001), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn bad_certificates_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("empty.pem");
    std::fs::write(&nothing, "").unwrap();
    let path = nothing.to_str().unwrap();
    let output = pipe(
        &[
            "proxy",
            "--listen",
            "http",
            "--listen-port",
            "0",
            "--no-record",
            "--tls-cert",
            path,
            "--tls-key",
            path,
            "--",
            "cat",
        ],
        b"",
    );
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("empty.pem"), "{text}");
}

#[test]
fn d23_a_certificate_of_an_authority_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pair = rcgen::KeyPair::generate().unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let server = ["--tls-cert", cert, "--tls-key", key, "--", "cat"];
    let server = ListeningProgram::proxy("http", &server);
    let port = server.address.rsplit_once(':').unwrap().1;
    let url = format!("https://localhost:{port}/mcp");
    let words = [
        "proxy",
        "--listen",
        "stdio",
        "--no-record",
        "--ca-file",
        cert,
        &url,
    ];
    let output = pipe(&words, format!("{INITIALIZE}\n").as_bytes());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(error_answer(&text), (json!(1), -31001), "{text}");
    assert!(
        text.contains("CA:TRUE") && !text.contains("CaUsed"),
        "{text}"
    );
}

/// Whether a client that trusts only this certificate gets through the handshake.
fn is_trusted(address: &str, cert: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(cert).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    client.complete_io(&mut stream).is_ok()
}

#[test]
fn a_hangup_makes_a_relay_read_its_certificate_again() {
    let [old, new, served] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let (old_cert, old_key) = certificate(old.path(), "localhost");
    let (new_cert, new_key) = certificate(new.path(), "localhost");
    let (cert, key) = (served.path().join("c.pem"), served.path().join("k.pem"));
    std::fs::copy(&old_cert, &cert).unwrap();
    std::fs::copy(&old_key, &key).unwrap();
    let mut relay = ListeningProgram::start(&[
        "relay",
        "--direct",
        "--listen-port",
        "0",
        "--headless",
        "--no-record",
        "--no-control",
        "--tls-cert",
        cert.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    assert!(is_trusted(&relay.address, &old_cert));
    std::fs::copy(&new_cert, &cert).unwrap();
    std::fs::copy(&new_key, &key).unwrap();
    assert!(!is_trusted(&relay.address, &new_cert));
    let pid = relay.pid().to_string();
    let hang_up = || Command::new("kill").args(["-HUP", &pid]).status().unwrap();
    assert!(hang_up().success());
    while !is_trusted(&relay.address, &new_cert) {
        std::thread::yield_now();
    }
    // Files that do not fit are told about, and change nothing.
    std::fs::write(&key, "").unwrap();
    assert!(hang_up().success());
    relay.line_with("k.pem");
    assert!(is_trusted(&relay.address, &new_cert));
}
