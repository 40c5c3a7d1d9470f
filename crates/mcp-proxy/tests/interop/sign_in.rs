//! Signing in with real parts: an authorization server on oidc-provider, a protected server on the TypeScript SDK, and a
//! scripted browser (`fixtures/peers`). What our programs did is read from the servers.

mod canary;
mod conformance;
mod front;
mod http;
mod hub;
mod hub_client;
mod login;
mod person;
mod servers;
mod tokens;

use std::thread;
use std::time::{Duration, Instant};

/// Asks again and again until there is an answer.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("it did not happen: {what}");
}
