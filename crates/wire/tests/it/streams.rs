//! Splitters: any bytes, any chunking, any limit.

use mcp_proxy_wire::{SseEvent, SseSplitter, SseUnit, encode_event};
use proptest::prelude::*;

use crate::invariants;

/// The largest line or block.
fn max() -> impl Strategy<Value = usize> {
    prop_oneof![0_usize..60, Just(usize::MAX)]
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), prop::collection::vec(1_usize..12, 0..6)]
}

/// Pieces that matter to a splitter, and noise.
fn soup(pieces: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..30),
        1 => (10_usize..80).prop_map(|length| vec![b'x'; length]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

const LINE_PIECES: &[&[u8]] = &[b"\n", b"\r\n", b"\r", b"{}", b"a", b"\0", b"\xff"];

const SSE_PIECES: &[&[u8]] = &[
    b"\n",
    b"\n",
    b"\r\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"\r\n\r\n",
    b"data: ",
    b"data:",
    b"data",
    b"da",
    b":",
    b": c",
    b" ",
    b"id: 1",
    b"id",
    b"id:\0",
    b"event: message",
    b"retry: 5",
    b"retry:",
    b"{\"id\":1}",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xff",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn lines_keep_every_byte(bytes in soup(LINE_PIECES), sizes in sizes(), max in max()) {
        invariants::lines(&bytes, &sizes, max);
    }

    #[test]
    fn events_keep_every_byte(bytes in soup(SSE_PIECES), sizes in sizes(), max in max()) {
        invariants::events(&bytes, &sizes, max);
    }

    #[test]
    fn an_encoded_event_reads_back(id in "[a-z]{0,3}", data in soup(&[b"\n", b"\r", b"\r\n", b" ", b"{}"]), sizes in sizes()) {
        let wire = encode_event(Some(&id), None, &data);
        let mut splitter = SseSplitter::new(usize::MAX);
        let mut units = Vec::new();
        for piece in invariants::chunks(&wire, &sizes) {
            splitter.push(piece, &mut units);
        }
        let mut expected = Vec::new();
        let mut bytes = data.iter().peekable();
        while let Some(&byte) = bytes.next() {
            if byte == b'\r' {
                bytes.next_if_eq(&&b'\n');
            }
            expected.push(if byte == b'\r' { b'\n' } else { byte });
        }
        let event = SseEvent { wire, id: Some(id), data: Some(expected.into()), ..SseEvent::default() };
        prop_assert_eq!(units, [SseUnit::Event(event)]);
    }
}

#[test]
fn a_line_of_twenty_mebibytes_passes() {
    let mut bytes = vec![b'x'; 20 << 20];
    bytes.extend_from_slice(b"\r\n{}\n");
    for max in [usize::MAX, 1 << 20] {
        invariants::lines(&bytes, &[64 << 10], max);
    }
    let mut event = b"id: 1\ndata: ".to_vec();
    event.extend_from_slice(&bytes);
    event.extend_from_slice(b"\n\n");
    for max in [usize::MAX, 1 << 20] {
        invariants::events(&event, &[64 << 10, 10], max);
    }
}
