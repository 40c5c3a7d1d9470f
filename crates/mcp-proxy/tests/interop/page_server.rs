//! A web server with the pages of a test, for browsers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A server that has a port and does not answer yet.
pub struct PageServer {
    pub origin: String,
    listener: TcpListener,
}

impl PageServer {
    pub fn new() -> PageServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let origin = format!("http://{address}");
        PageServer { origin, listener }
    }

    /// Answers every request by its path and body. `None` means that the page does not exist.
    pub fn serve(self, page: impl Fn(&str, &[u8]) -> Option<String> + Send + Sync + 'static) {
        let page = Arc::new(page);
        std::thread::spawn(move || {
            for stream in self.listener.incoming().flatten() {
                let page = Arc::clone(&page);
                std::thread::spawn(move || answer(stream, &*page));
            }
        });
    }
}

/// Answers one request; Chromium may open connections that it does not use.
fn answer(mut stream: TcpStream, page: &dyn Fn(&str, &[u8]) -> Option<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut lengths = head.lines().filter_map(|line| line.split_once(':'));
    let length = lengths.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Ok(0), |(_, value)| value.trim().parse());
    let mut body = vec![0; length.ok()?];
    reader.read_exact(&mut body).ok()?;
    let found = page(head.split(' ').nth(1)?, &body);
    let status = match found {
        Some(_) => "200 OK",
        None => "404 Not Found",
    };
    let text = found.unwrap_or_default();
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(answer.as_bytes()).ok()
}
