//! The little HTTP that the tests themselves speak, with servers on this machine.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any answer takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A GET, and the status and body of its answer.
pub fn get(url: &str) -> (u16, String) {
    exchange("GET", url)
}

/// A POST without a body.
pub fn post(url: &str) -> (u16, String) {
    exchange("POST", url)
}

/// HTTP/1.0: the answer ends with the connection and is in one piece.
fn exchange(method: &str, url: &str) -> (u16, String) {
    let (host, path) = split(url);
    let mut stream = TcpStream::connect(host).unwrap_or_else(|error| panic!("{url}: {error}"));
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    let status = head.split(' ').nth(1).expect("a status line");
    (status.parse().expect("a status"), body.to_owned())
}

fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").expect("an http URL");
    let slash = rest.find('/').expect("a URL with a path");
    rest.split_at(slash)
}
