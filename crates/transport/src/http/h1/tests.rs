//! Heads and bodies as servers write them, whole and in pieces.

use super::*;

fn head(text: &str) -> Result<Option<H1ResponseHead>, H1Error> {
    take_head(&mut BytesMut::from(text), &Method::POST)
}

fn whole(text: &str) -> H1ResponseHead {
    head(text).unwrap().unwrap()
}

/// The body that `wire` holds, given to the decoder in pieces of `size`.
fn body(mut framing: Framing, wire: &[u8], size: usize) -> Result<(Vec<u8>, bool), H1Error> {
    let mut buffer = BytesMut::new();
    let mut body = Vec::new();
    for piece in wire.chunks(size) {
        buffer.extend_from_slice(piece);
        while let BodyPiece::Data(data) = framing.take(&mut buffer)? {
            body.extend_from_slice(&data);
        }
    }
    Ok((body, framing.is_done()))
}

#[test]
fn a_head_is_read_when_it_is_all_there() {
    let text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Two: a\r\nX-Two: b\r\nEmpty:\r\nContent-Length: 2\r\n\r\n{}";
    for end in 0..text.len() - 2 {
        assert!(head(&text[..end]).unwrap().is_none(), "{end}");
    }
    let mut buffer = BytesMut::from(text);
    let head = take_head(&mut buffer, &Method::POST).unwrap().unwrap();
    assert_eq!(&buffer[..], b"{}");
    assert_eq!(head.parts.status, 200);
    assert_eq!(head.framing, Framing::Length(2));
    assert!(head.keep_alive);
    let two: Vec<_> = head.parts.headers.get_all("x-two").iter().collect();
    assert_eq!(two, ["a", "b"]);
    assert_eq!(head.parts.headers["empty"], "");
    assert_eq!(head.parts.headers["content-type"], "application/json");
}

#[test]
fn interim_answers_are_passed_over() {
    let head = whole(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 202 \r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(head.parts.status, 202);
    assert!(!head.parts.headers.contains_key("link"));
    assert!(head.framing.is_done());
}

#[test]
fn the_body_is_delimited_as_the_rfc_says() {
    let cases = [
        ("Content-Length: 5, 5\r\n", Framing::Length(5), true),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            Framing::Chunked(ChunkPosition::Size),
            true,
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            Framing::Chunked(ChunkPosition::Size),
            true,
        ),
        ("Transfer-Encoding: gzip\r\n", Framing::UntilClose, false),
        ("", Framing::UntilClose, false),
        (
            "Connection: Close\r\nContent-Length: 1\r\n",
            Framing::Length(1),
            false,
        ),
    ];
    for (headers, framing, keeps) in cases {
        let head = whole(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n"));
        assert_eq!(
            (head.framing, head.keep_alive),
            (framing, keeps),
            "{headers}"
        );
    }
    assert!(whole("HTTP/1.1 204 No Content\r\n\r\n").framing.is_done());
    assert!(!whole("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n").keep_alive);
    assert!(
        whole("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n").keep_alive
    );
}

#[test]
fn nonsense_is_an_error_and_no_guess() {
    for text in [
        "SSH-2.0-OpenSSH_9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        assert!(head(text).is_err(), "{text}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_MAX));
    assert!(matches!(head(&endless), Err(H1Error::HeadTooLarge)));
    for wire in [
        &b"x\r\n"[..],
        b"\r\n",
        b"-1\r\n",
        b"3\r\nabcd\r\n",
        b"11111111111111111\r\n",
    ] {
        assert!(body(Framing::Chunked(ChunkPosition::Size), wire, 64).is_err());
    }
}

#[test]
fn chunks_are_joined_wherever_the_pieces_break() {
    let wire = b"3;name=value\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX-Trailer: y\r\n\r\n";
    for size in 1..wire.len() {
        let (body, done) = body(Framing::Chunked(ChunkPosition::Size), wire, size).unwrap();
        assert_eq!(
            (body.as_slice(), done),
            (&b"abc0123456789"[..], true),
            "{size}"
        );
    }
    let (_, done) = body(Framing::Chunked(ChunkPosition::Size), b"3\r\nab", 1).unwrap();
    assert!(!done);
}

#[test]
fn what_follows_a_body_stays_in_the_buffer() {
    let mut buffer = BytesMut::from("abcdef");
    let mut framing = Framing::Length(4);
    assert_eq!(
        framing.take(&mut buffer).unwrap(),
        BodyPiece::Data("abcd".into())
    );
    assert_eq!(framing.take(&mut buffer).unwrap(), BodyPiece::End);
    assert_eq!(&buffer[..], b"ef");
}

#[test]
fn a_request_head_is_written_in_the_clients_order() {
    let request = http::Request::post("http://ignored/mcp?a=1")
        .header("b", "2")
        .header("a", "1")
        .body(())
        .unwrap();
    let (parts, ()) = request.into_parts();
    let host = HeaderValue::from_static("h:1");
    let text = request_head(&parts, &host, BodyLength::Exact(7), None);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "POST /mcp?a=1 HTTP/1.1\r\nhost: h:1\r\nb: 2\r\na: 1\r\ncontent-length: 7\r\n\r\n"
    );
    let empty = OutgoingBody::empty();
    assert_eq!(BodyLength::of(&empty, &Method::POST), BodyLength::Exact(0));
    assert_eq!(BodyLength::of(&empty, &Method::DELETE), BodyLength::None);
}
