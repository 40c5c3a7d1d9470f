//! The Python client closes a session in which a call that it gave up is still open. An error status for that call makes
//! it raise.

use std::time::Duration;

use serde_json::{Value, json};

use crate::endpoint::{EndpointAddress, EndpointKind, TestEndpoint, everything};
use crate::fixtures;
use crate::process::{finish, said};

const ROUNDS: u32 = 5;

fn check(endpoint: &TestEndpoint) {
    let EndpointAddress::Url(url) = &endpoint.address else {
        panic!("a URL is needed");
    };
    let (python, script) = (fixtures::python(), fixtures::peer("py_closes.py"));
    let mut command = fixtures::command(&python, &[&script, url, &ROUNDS.to_string()]);
    let output = finish(&mut command, Duration::from_secs(120));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let expected = json!({"cancelled": ROUNDS, "errors": []});
    assert_eq!(report, expected, "{}", said(&output));
}

#[test]
fn direct() {
    check(&everything(EndpointKind::Http));
}

#[test]
fn http_to_stdio() {
    check(&everything(EndpointKind::Stdio).behind_proxy(EndpointKind::Http));
}

#[test]
fn http_to_sse() {
    check(&everything(EndpointKind::Sse).behind_proxy(EndpointKind::Http));
}

#[test]
fn http_to_http() {
    check(&everything(EndpointKind::Http).behind_proxy(EndpointKind::Http));
}
