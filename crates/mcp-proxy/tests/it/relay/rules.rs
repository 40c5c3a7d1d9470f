//! Of the points where the protocol can be read in two ways, the one about flags. The others are in the tests of the relay's
//! crate.

use std::process::Command;

use super::TestRelay;
use crate::programs::PROXY;

#[test]
fn rule_21_plain_text_is_served_on_loopback_only_unless_tls_ends_in_front_of_the_relay() {
    let relay = TestRelay::start(&["--no-record"]);
    relay.client("ada", "l");
    let refused = Command::new(PROXY)
        .args(["relay", "--listen-port", "0", "--listen-host", "0.0.0.0"])
        .arg("--jwt-secret-file")
        .arg(relay.file("secret"))
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let behind = ["--listen-host", "0.0.0.0", "--behind-tls-proxy"];
    let behind = TestRelay::start(&["--no-record", behind[0], behind[1], behind[2]]);
    assert!(behind.program.address.starts_with("0.0.0.0:"));
}
