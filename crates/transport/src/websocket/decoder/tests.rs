//! The decoder on bytes alone: joined and streamed messages, limits, and every way to cut the input.

use proptest::prelude::*;

use super::*;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A masked frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0xfe);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, key)| byte ^ key));
    bytes
}

fn options(stream_above: usize, max_message: usize) -> SocketOptions {
    SocketOptions {
        stream_above,
        max_message,
        ..SocketOptions::default()
    }
}

/// Everything but `More`, and the violation at the end if there is one.
fn decode_all(
    options: &SocketOptions,
    input: &[u8],
    cuts: impl IntoIterator<Item = usize>,
) -> (Vec<Decoded>, Option<SocketViolation>) {
    let mut decoder = MessageDecoder::new(options);
    let mut buffer = BytesMut::new();
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([input.len()]) {
        buffer.extend_from_slice(&input[start..end]);
        start = end;
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Decoded::More(room)) => {
                    assert!(room > 0 && room <= PIECE_MAX, "{room}");
                    break;
                }
                Ok(decoded) => found.push(decoded),
                Err(violation) => return (found, Some(violation)),
            }
        }
    }
    (found, None)
}

fn message(bytes: &'static [u8]) -> Decoded {
    Decoded::Event(SocketEvent::Message(Bytes::from_static(bytes)))
}

fn piece(bytes: &'static [u8], is_last: bool) -> Decoded {
    let bytes = Bytes::from_static(bytes);
    Decoded::Event(SocketEvent::Piece { bytes, is_last })
}

/// Whole input at once.
fn decoded(stream_above: usize, frames: &[Vec<u8>]) -> (Vec<Decoded>, Option<SocketViolation>) {
    decode_all(&options(stream_above, 1000), &frames.concat(), [])
}

fn violation(frames: &[Vec<u8>]) -> Option<SocketViolation> {
    decoded(100, frames).1
}

#[test]
fn fragments_are_joined_around_control_frames() {
    let frames = [
        frame(0x01, b"Hel"),
        frame(0x89, b"ping"),
        frame(0x00, b""),
        frame(0x8a, b""),
        frame(0x80, b"lo"),
        frame(0x82, b"\xff\x00"),
        frame(0x81, b""),
    ];
    let expected = vec![
        Decoded::Ping(Bytes::from_static(b"ping")),
        Decoded::Event(SocketEvent::Pong),
        message(b"Hello"),
        message(b"\xff\x00"),
        message(b""),
    ];
    assert_eq!(decoded(100, &frames), (expected, None));
}

#[test]
fn a_long_message_comes_in_pieces_whose_first_is_long_enough() {
    // One frame, at once and byte by byte.
    let one = frame(0x81, b"0123456789");
    let whole = decode_all(&options(4, 1000), &one, []).0;
    assert_eq!(whole, [piece(b"0123456789", true)]);
    let single = decode_all(&options(4, 1000), &one, 0..one.len()).0;
    assert_eq!(single[..2], [piece(b"0123", false), piece(b"4", false)]);
    assert_eq!(single.last(), Some(&piece(b"9", true)));
    // Fragments: two are held until the third shows that the message is long.
    let frames = [
        frame(0x01, b"01"),
        frame(0x00, b"23"),
        frame(0x00, b"456"),
        frame(0x00, b""),
        frame(0x00, b"7"),
        frame(0x80, b""),
    ];
    let expected = vec![
        piece(b"0123456", false),
        piece(b"7", false),
        piece(b"", true),
    ];
    assert_eq!(decoded(4, &frames), (expected, None));
    // Exactly as long as may be collected.
    assert_eq!(decoded(4, &[frame(0x81, b"0123")]).0, [message(b"0123")]);
}

#[test]
fn a_piece_has_at_most_128_kib() {
    let payload = vec![b'x'; 3 * PIECE_MAX + 5];
    let limits = options(64 * 1024, usize::MAX);
    let fragments = [frame(0x01, &payload[..1000]), frame(0x80, &payload[1000..])];
    for input in [frame(0x81, &payload), fragments.concat()] {
        let (events, violation) = decode_all(&limits, &input, []);
        assert_eq!(violation, None);
        let lengths = events.iter().map(|event| match event {
            Decoded::Event(SocketEvent::Piece { bytes, .. }) => bytes.len(),
            other => panic!("{other:?}"),
        });
        let lengths: Vec<usize> = lengths.collect();
        assert_eq!(lengths, [PIECE_MAX, PIECE_MAX, PIECE_MAX, 5]);
    }
}

#[test]
fn a_message_over_the_limit_is_refused_at_its_head() {
    let limits = options(4, 10);
    let too_long = Some(SocketViolation::TooLong { limit: 10 });
    // The payload has not come.
    let head = &frame(0x81, b"0123456789a")[..6];
    assert_eq!(decode_all(&limits, head, []), (vec![], too_long));
    let frames = [frame(0x01, b"0123456789"), frame(0x80, b"a")].concat();
    let (events, violation) = decode_all(&limits, &frames, []);
    assert_eq!((events.len(), violation), (1, too_long));
    let endless = [
        0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4,
    ];
    let fragments = [&frame(0x02, b"0")[..], &[0x80], &endless[1..]].concat();
    for input in [&endless[..], &fragments] {
        let any = options(4, usize::MAX);
        let found = decode_all(&any, input, []).1;
        // On machines of 64 bits it could be meant.
        let limit = usize::MAX;
        assert!(found.is_none() || found == Some(SocketViolation::TooLong { limit }));
    }
}

#[test]
fn the_limit_can_change_inside_a_message() {
    let mut decoder = MessageDecoder::new(&options(4, 6));
    let mut buffer = BytesMut::from(&frame(0x01, b"01234")[..]);
    assert_eq!(decoder.decode(&mut buffer), Ok(piece(b"01234", false)));
    decoder.set_max_message(8);
    buffer.extend_from_slice(&frame(0x00, b"567"));
    assert_eq!(decoder.decode(&mut buffer), Ok(piece(b"567", false)));
    buffer.extend_from_slice(&frame(0x80, b"8"));
    let too_long = SocketViolation::TooLong { limit: 8 };
    assert_eq!(decoder.decode(&mut buffer), Err(too_long));
}

#[test]
fn text_must_be_utf8_across_frames_and_pieces() {
    let euro = "€".as_bytes();
    let cut = [frame(0x01, &euro[..1]), frame(0x80, &euro[1..])];
    assert_eq!(decoded(100, &cut).0, [message("€".as_bytes())]);
    let streamed = [frame(0x01, b"01234\xe2"), frame(0x80, b"\x82\xac")];
    assert_eq!(decoded(4, &streamed).1, None);
    for wrong in [
        vec![frame(0x81, b"\xff")],
        vec![frame(0x81, &euro[..2])],
        vec![frame(0x01, &euro[..1]), frame(0x80, b"a")],
    ] {
        assert_eq!(violation(&wrong), Some(SocketViolation::NotUtf8));
    }
    // The piece with the wrong byte is not handed out.
    let late = [frame(0x01, b"01234"), frame(0x80, b"\xff")];
    let (events, found) = decoded(4, &late);
    assert_eq!(events, [piece(b"01234", false)]);
    assert_eq!(found, Some(SocketViolation::NotUtf8));
    assert_eq!(violation(&[frame(0x82, b"\xff")]), None);
}

#[test]
fn frames_out_of_order_are_refused() {
    for frames in [
        vec![frame(0x80, b"x")],
        vec![frame(0x00, b"x")],
        vec![frame(0x01, b"x"), frame(0x81, b"y")],
        vec![frame(0x01, b"x"), frame(0x02, b"y")],
        vec![frame(0x81, b"x"), frame(0x80, b"y")],
    ] {
        let found = violation(&frames);
        assert!(matches!(found, Some(SocketViolation::Protocol(_))));
    }
}

#[test]
fn close_frames_are_read_and_checked() {
    let close = |payload: &[u8]| decoded(100, &[frame(0x88, payload)]);
    let closed = |code, reason: &str| {
        let reason = reason.to_owned();
        (vec![Decoded::Close { code, reason }], None)
    };
    assert_eq!(close(b""), closed(None, ""));
    assert_eq!(close(&[0x03, 0xe8]), closed(Some(1000), ""));
    let text = [&4401_u16.to_be_bytes()[..], b"expired"].concat();
    assert_eq!(close(&text), closed(Some(4401), "expired"));
    let protocol = |found: Option<SocketViolation>| found.map(SocketViolation::close_code);
    assert_eq!(protocol(close(&[3]).1), Some(1002));
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535_u16] {
        assert_eq!(protocol(close(&code.to_be_bytes()).1), Some(1002), "{code}");
    }
    let text = [&1000_u16.to_be_bytes()[..], b"\xff"].concat();
    assert_eq!(protocol(close(&text).1), Some(1007));
}

/// Pieces put together, so that the way the input was cut cannot be seen.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Message(Vec<u8>),
    Unfinished(Vec<u8>),
    Other(Decoded),
    Violation(SocketViolation),
}

fn seen(options: &SocketOptions, input: &[u8], cuts: Vec<usize>) -> Vec<Seen> {
    let (events, violation) = decode_all(options, input, cuts);
    let mut all = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for event in events {
        match event {
            Decoded::Event(SocketEvent::Message(bytes)) => {
                assert!(open.is_none() && bytes.len() <= options.stream_above);
                all.push(Seen::Message(bytes.to_vec()));
            }
            Decoded::Event(SocketEvent::Piece { bytes, is_last }) => {
                assert!(open.is_some() || bytes.len() >= options.stream_above);
                let mut joined = open.take().unwrap_or_default();
                joined.extend_from_slice(&bytes);
                match is_last {
                    true => all.push(Seen::Message(joined)),
                    false => open = Some(joined),
                }
            }
            other => all.push(Seen::Other(other)),
        }
    }
    // How much of a message came before a violation in it depends on the cuts.
    match violation {
        Some(violation) => all.push(Seen::Violation(violation)),
        None => all.extend(open.map(Seen::Unfinished)),
    }
    all
}

/// Mostly right frames, in an order that is often right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let text = "[a-zä€😀]{0,30}".prop_map(String::into_bytes);
    let payload = prop_oneof![4 => text, 1 => prop::collection::vec(any::<u8>(), 0..200)];
    let first = prop_oneof![
        8 => Just(0x81), 4 => Just(0x82), 2 => Just(0x01), 6 => Just(0x00), 4 => Just(0x80),
        2 => Just(0x89), 2 => Just(0x8a), 1 => Just(0x88), 1 => any::<u8>(),
    ];
    let one = (first, payload).prop_map(|(first, payload)| frame(first, &payload));
    let message = (prop::collection::vec("[a-z€😀]{0,20}", 1..5), any::<bool>()).prop_map(
        |(parts, is_text)| {
            let last = parts.len() - 1;
            let frames = parts.iter().enumerate().flat_map(|(place, part)| {
                let opcode = if place > 0 { 0 } else { 2 - u8::from(is_text) };
                let is_final = if place == last { 0x80 } else { 0 };
                frame(opcode | is_final, part.as_bytes())
            });
            frames.collect::<Vec<u8>>()
        },
    );
    prop::collection::vec(prop_oneof![1 => one, 2 => message], 0..8)
        .prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_input_gives_the_same_events(
        input in frames(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        stream_above in 0_usize..40,
    ) {
        let options = options(stream_above, 150);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.sort_unstable();
        let whole = seen(&options, &input, vec![]);
        prop_assert_eq!(&seen(&options, &input, cuts), &whole);
        prop_assert_eq!(&seen(&options, &input, (0..input.len()).collect()), &whole);
    }

    #[test]
    fn no_bytes_make_it_panic(input in prop::collection::vec(any::<u8>(), 0..300)) {
        let options = options(16, 100);
        let whole = seen(&options, &input, vec![]);
        prop_assert_eq!(seen(&options, &input, (0..input.len()).collect()), whole);
    }
}
