//! What WebSockets cost: `cargo run --profile dist -p mcp-proxy-transport --example socket_cost [CONNECTIONS]`.
//!
//! Prints the memory of an idle connection, with 10,000 of them unless told otherwise, and then how many messages of 200 bytes and
//! of 1 KiB a second of processor time echoes over 64 connections. The clients are another process, this program again.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that prints figures"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_transport::http::{
    Admission, Handler, HttpResponse, Listener, ListenerLimits, ListenerOptions, RequestSource,
    Route, Routes,
};
use mcp_proxy_transport::websocket::{
    OutgoingPiece, PiecePart, SocketEvent, SocketOptions, WebSocket, accept_websocket,
};

const CONNECTIONS: usize = 10_000;
const BUSY: usize = 64;
/// Messages that a client sends before it reads their echoes.
const WINDOW: usize = 16;
const ROUNDS: usize = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [role, address, count] if role == "idle" => idle_clients(address, count.parse().unwrap()),
        [role, address, size] if role == "busy" => busy_clients(address, size.parse().unwrap()),
        [] => serve(CONNECTIONS),
        [count] => serve(count.parse().unwrap()),
        _ => panic!("at most one argument: how many connections"),
    }
}

fn serve(connections: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let options = ListenerOptions {
            admission: Admission::default(),
            tls: None,
            stall: Duration::from_secs(60),
            is_public: false,
            limits: ListenerLimits {
                connections: connections + BUSY,
                ..ListenerLimits::default()
            },
            on_refusal: Arc::new(|_| {}),
        };
        let listener = Listener::bind("127.0.0.1", 0, options).await.unwrap();
        let address = listener.url("").split_off("http://".len());
        let routes = Routes::new().with(Arc::new(Echo), [Route::exact("/")]);
        tokio::spawn(listener.run(Arc::new(routes), std::future::pending()));

        let before = resident_bytes();
        let mut clients = tokio::task::spawn_blocking({
            let address = address.clone();
            move || run_clients("idle", &address, &connections.to_string())
        })
        .await
        .unwrap();
        let each = (resident_bytes() - before) / connections;
        println!("{connections} idle connections: {each} B each");
        clients.kill().unwrap();
        clients.wait().unwrap();
        for size in ["200", "1024"] {
            let before = processor_time();
            let done = tokio::task::spawn_blocking({
                let address = address.clone();
                move || drop(run_clients("busy", &address, size).wait())
            });
            done.await.unwrap();
            let used = (processor_time() - before).as_secs_f64();
            let messages = (BUSY * WINDOW * ROUNDS) as f64;
            println!(
                "{size} B: {:.0} messages/s of processor time echoed",
                messages / used
            );
        }
    });
}

/// Starts clients and waits until they are connected and have done what they do.
fn run_clients(role: &str, address: &str, count: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([role, address, count])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
    child
}

struct Echo;

impl Handler for Echo {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        mut request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let answer = accept_websocket(&mut request, SocketOptions::default(), echo);
        Box::pin(std::future::ready(answer))
    }
}

async fn echo(socket: WebSocket) {
    let (mut reader, mut writer) = socket.split();
    while let Ok(event) = reader.next().await {
        let SocketEvent::Message(bytes) = event else {
            continue;
        };
        let part = PiecePart::Whole;
        if writer.send(&[OutgoingPiece { bytes, part }]).await.is_err() {
            return;
        }
    }
}

/// Each has spoken once, as every client of a relay has.
fn idle_clients(address: &str, count: usize) {
    let sockets: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut socket = open(address);
            exchange(&mut socket, &frame(100), 102);
            socket
        })
        .collect();
    println!("done");
    let _ = std::io::stdin().read(&mut [0]);
    drop(sockets);
}

fn busy_clients(address: &str, size: usize) {
    let threads: Vec<_> = (0..BUSY)
        .map(|_| {
            let address = address.to_owned();
            std::thread::spawn(move || {
                let mut socket = open(&address);
                let sent = frame(size).repeat(WINDOW);
                for _ in 0..ROUNDS {
                    exchange(&mut socket, &sent, (size + 4) * WINDOW);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
    println!("done");
}

fn open(address: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    socket
}

fn exchange(socket: &mut TcpStream, sent: &[u8], length: usize) {
    socket.write_all(sent).unwrap();
    socket.read_exact(&mut vec![0; length]).unwrap();
}

/// A text of up to 64 KiB in a masked frame. Its echo has a head of 2 or 4 bytes.
fn frame(size: usize) -> Vec<u8> {
    let mut bytes = vec![0x81];
    match size {
        0..=125 => bytes.push(0x80 | size as u8),
        _ => {
            bytes.push(0xfe);
            bytes.extend((size as u16).to_be_bytes());
        }
    }
    bytes.extend([1, 2, 3, 4]);
    bytes.extend((0..size).map(|place| b'x' ^ (1 + place % 4) as u8));
    bytes
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// What this process has used, system calls included.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
