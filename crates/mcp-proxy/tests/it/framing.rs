//! HTTP that is passed through, with raw bytes on both sides: answers whose head lies about their body, what of a request's head
//! reaches the server, and what the record says about answers that are not ordinary.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::programs::{ListeningProgram, error_answer, record_lines};

/// A body over this is passed on in pieces.
const LARGE: usize = 100 * 1024;
/// What a server without a stream says to a GET.
const NO_STREAM: &str = "there is no stream here";

/// What a raw server answers to a request with this body: all bytes of it.
type Answer = fn(body: &str) -> Vec<u8>;

/// A server that answers every POST with the bytes of `answer`, a GET of `/sse` with an event stream that names `/message`, and
/// any other GET with words. It returns its URL without a path, and the heads of its requests.
fn raw_server(answer: Answer) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, seen) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, heads) = (stream.unwrap(), heads.clone());
            std::thread::spawn(move || serve(stream, answer, &heads));
        }
    });
    (format!("http://{address}"), seen)
}

fn serve(mut stream: TcpStream, answer: Answer, heads: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((head, body)) = read_message(&mut reader) {
        let method_and_path = head.split(" HTTP").next().unwrap().to_owned();
        let _ = heads.send(head);
        let bytes = match method_and_path.as_str() {
            "GET /sse" => b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /message\n\n".to_vec(),
            get if get.starts_with("GET") => no_stream(),
            _ => answer(&String::from_utf8(body).unwrap()),
        };
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn no_stream() -> Vec<u8> {
    let length = NO_STREAM.len();
    format!("HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{NO_STREAM}")
        .into_bytes()
}

/// A head with its line ends, and the body that its Content-Length or its chunks promise.
fn read_message(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut body = Vec::new();
    match header(&head, "content-length") {
        Some(length) => {
            body.resize(length.parse().ok()?, 0);
            reader.read_exact(&mut body).ok()?;
        }
        None if header(&head, "transfer-encoding").is_some() => loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).ok()? + 2];
            reader.read_exact(&mut chunk).ok()?;
            chunk.truncate(chunk.len() - 2);
            if chunk.is_empty() {
                break;
            }
            body.extend(chunk);
        },
        None => {}
    }
    Some((head, body))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut values = head.lines().filter_map(|line| line.split_once(':'));
    let found = values.find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

/// The number that a request's body was sent with, in a body of `size` bytes or a little more.
fn result(body: &str, size: usize) -> String {
    let id = body.split_once("\"id\":").unwrap().1;
    let id = id.split_once(',').unwrap().0;
    let padding = "x".repeat(size);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"padding":"{padding}"}}}}"#)
}

fn request(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#)
}

/// One kept connection to the proxy, over which requests are sent one after the other.
struct KeptConnection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl KeptConnection {
    fn new(proxy: &ListeningProgram) -> KeptConnection {
        let stream = TcpStream::connect(&proxy.address).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        KeptConnection { stream, reader }
    }

    /// The head and the body of the answer.
    fn ask(&mut self, headers: &str, body: &str) -> (String, String) {
        let length = body.len();
        let text = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(text.as_bytes()).unwrap();
        let (head, body) = read_message(&mut self.reader).expect("an answer");
        (head, String::from_utf8(body).unwrap())
    }
}

/// The proxy in front of such a server, in each way in which answers are passed through, and a connection to it.
fn pass_through(answer: Answer, test: impl Fn(&str, &mut KeptConnection)) {
    for kind in ["streamable-http", "auto"] {
        let (url, _heads) = raw_server(answer);
        let target = format!("{url}/mcp");
        let proxy = match kind {
            "auto" => ListeningProgram::proxy("http", &[&target]),
            kind => {
                ListeningProgram::proxy("http", &["--transport", kind, "--target-url", &target])
            }
        };
        test(kind, &mut KeptConnection::new(&proxy));
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn chunked(head: &str, body: &str) -> Vec<u8> {
    let size = body.len();
    format!("HTTP/1.1 200 OK\r\n{JSON}{head}Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n").into_bytes()
}

/// Two requests on one connection get their own answers, whole.
fn two_answers(size: usize) -> impl Fn(&str, &mut KeptConnection) {
    move |kind, connection| {
        for id in [1, 2] {
            let asked = request(id);
            let (head, body) = connection.ask(JSON, &asked);
            assert_eq!(body, result(&asked, size), "{kind}: {head}");
            let both = [
                header(&head, "content-length"),
                header(&head, "transfer-encoding"),
            ];
            assert_eq!(both.iter().flatten().count(), 1, "{kind}: {head}");
        }
    }
}

#[test]
fn a_length_next_to_chunks_is_not_passed_on() {
    pass_through(
        |body| chunked("Content-Length: 5\r\n", &result(body, 20)),
        two_answers(20),
    );
    pass_through(
        |body| chunked("Content-Length: 900000\r\n", &result(body, 20)),
        two_answers(20),
    );
}

#[test]
fn a_length_next_to_the_chunks_of_a_large_answer_is_not_passed_on() {
    pass_through(
        |body| chunked("Content-Length: 70000\r\n", &result(body, LARGE)),
        two_answers(LARGE),
    );
    pass_through(
        |body| chunked("Content-Length: 900000\r\n", &result(body, LARGE)),
        two_answers(LARGE),
    );
}

fn twice(answer: &str) -> Vec<u8> {
    let length = answer.len();
    format!("HTTP/1.1 200 OK\r\n{JSON}Content-Length: {length}, {length}\r\nContent-Length: {length}\r\n\r\n{answer}")
        .into_bytes()
}

#[test]
fn a_length_that_is_stated_twice_is_passed_on_once() {
    pass_through(|body| twice(&result(body, 20)), two_answers(20));
    pass_through(|body| twice(&result(body, LARGE)), two_answers(LARGE));
}

#[test]
fn lengths_that_differ_are_refused() {
    let answer: Answer = |body| {
        let answer = result(body, 20);
        let length = answer.len();
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}Content-Length: {length}, 5\r\n\r\n");
        (head + &answer).into_bytes()
    };
    pass_through(answer, |kind, connection| {
        let (head, body) = connection.ask(JSON, &request(7));
        assert!(head.starts_with("HTTP/1.1 502"), "{kind}: {head}");
        assert_eq!(error_answer(&body), (json!(7), -31001), "{kind}");
    });
}

/// What follows an answer unasked belongs to nobody, and is not taken for the next answer.
#[test]
fn bytes_behind_an_answer_reach_nobody() {
    fn with_rest(body: &str, size: usize) -> Vec<u8> {
        let answer = result(body, size);
        let length = answer.len();
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}Content-Length: {length}\r\n\r\n");
        let injected = r#"{"jsonrpc":"2.0","id":2,"result":"injected"}"#;
        let rest = format!(
            "HTTP/1.1 200 OK\r\n{JSON}Content-Length: {}\r\n\r\n{injected}",
            injected.len()
        );
        (head + &answer + &rest).into_bytes()
    }
    pass_through(|body| with_rest(body, 20), two_answers(20));
    pass_through(|body| with_rest(body, LARGE), two_answers(LARGE));
}

#[test]
fn the_headers_of_a_request_keep_their_order() {
    let (url, heads) = raw_server(|body| twice(&result(body, 20)));
    let target = format!("{url}/mcp");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret-token").unwrap();
    let token = token.to_str().unwrap();
    let args = [
        "--auth-token-file",
        token,
        "--transport",
        "streamable-http",
        "--target-url",
    ];
    let proxy = ListeningProgram::proxy("http", &[&args[..], &[&target]].concat());
    let mut connection = KeptConnection::new(&proxy);
    let sent = "X-One: 1\r\nAuthorization: Bearer s3cret-token\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nX-Two: 2\r\nKeep-Alive: 5\r\nAccept: */*\r\nX-Three: 3\r\n";
    connection.ask(sent, &request(1));
    let head = heads.recv_timeout(Duration::from_secs(20)).unwrap();
    let names = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let names: Vec<String> = names.map(|(name, _)| name.to_lowercase()).collect();
    let kept = "host x-one content-type accept-encoding x-two accept x-three content-length";
    assert_eq!(names.join(" "), kept);
}

/// A server may redirect a request after it has answered others.
#[test]
fn a_redirect_after_another_answer_is_followed() {
    let answer: Answer = |body| match body.contains("\"id\":1") {
        true => twice(&result(body, 20)),
        false => b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp/\r\nContent-Length: 0\r\n\r\n"
            .to_vec(),
    };
    let (url, heads) = raw_server(answer);
    let target = format!("{url}/mcp");
    let args = ["--transport", "streamable-http", "--target-url", &target];
    let proxy = ListeningProgram::proxy("http", &args);
    let mut connection = KeptConnection::new(&proxy);
    connection.ask(JSON, &request(1));
    let (head, body) = connection.ask(JSON, &request(2));
    // It redirects for ever: that it was followed at all is what counts.
    assert!(head.starts_with("HTTP/1.1 502"), "{head}{body}");
    let asked: Vec<String> = heads.try_iter().collect();
    assert_eq!(asked.len(), 1 + 6, "{asked:?}");
    assert!(asked[2].starts_with("POST /mcp/ "), "{asked:?}");
}

/// The proxy in front of such a server, with a record, and what is in that after `use_it`.
fn recorded(answer: Answer, use_it: impl FnOnce(&ListeningProgram)) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("s.jsonl");
    let (url, _heads) = raw_server(answer);
    let target = format!("{url}/mcp");
    let args = [
        "proxy",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--session-file",
    ];
    let more = ["--transport", "streamable-http", "--target-url", &target];
    let args = [&args[..], &[record.to_str().unwrap()], &more].concat();
    let proxy = ListeningProgram::start(&args);
    use_it(&proxy);
    assert_eq!(proxy.end("-TERM").0, Some(143));
    record_lines(&std::fs::read_to_string(record).unwrap())
}

#[test]
fn a_get_that_is_refused_in_words_is_not_a_message() {
    let lines = recorded(
        |body| twice(&result(body, 20)),
        |proxy| {
            let accept = [("accept", "text/event-stream")];
            let answer = crate::programs::request(&proxy.address, "GET", "/mcp", &accept, b"");
            assert_eq!((answer.status, answer.text()), (405, NO_STREAM.to_owned()));
        },
    );
    let said = |line: &&Value| line.to_string().contains(NO_STREAM);
    assert_eq!(lines.iter().find(said), None);
    assert!(
        lines.iter().any(|line| line["http"]["status"] == 405),
        "{lines:?}"
    );
}

/// Python's client closes a stream as soon as it has its answer.
#[test]
fn a_stream_that_the_client_closes_after_its_answer_is_not_worth_a_note() {
    let answer: Answer = |body| {
        let answer = result(body, 20);
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {answer}\n\n")
            .into_bytes()
    };
    let lines = recorded(answer, |proxy| {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
        ];
        let body = request(1);
        let mut stream =
            crate::programs::open(&proxy.address, "POST", "/mcp", &headers, body.as_bytes());
        assert_eq!(stream.until("data: "), result(&body, 20));
    });
    let notes: Vec<_> = lines.iter().filter(|line| line["t"] == "note").collect();
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn an_error_without_an_id_answers_the_request_of_its_exchange() {
    let refusal: Answer = |_| {
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}"#;
        let length = error.len();
        format!("HTTP/1.1 400 Bad Request\r\n{JSON}Content-Length: {length}\r\n\r\n{error}")
            .into_bytes()
    };
    let lines = recorded(refusal, |proxy| {
        assert_eq!(proxy.post(&[], &request(1)).status, 400);
    });
    let answered = lines
        .iter()
        .find(|line| line["direction"] == "server_to_client");
    assert_eq!(answered.unwrap()["answers"], 1, "{lines:?}");
}
