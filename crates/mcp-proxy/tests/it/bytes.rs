//! Bytes out equal bytes in, over stdio, whatever they are.

use crate::programs::pipe;

fn through_cat(input: &[u8]) -> Vec<u8> {
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--no-record",
        "--pass-noise",
        "--",
        "cat",
    ];
    let output = pipe(&args, input);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn nasty_lines_come_back_as_they_went() {
    let mut input = Vec::new();
    input.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n");
    input.extend_from_slice(b"{\"id\":1,\"id\":2}\r\n\n\n   \n");
    input.extend_from_slice(b"[]\n[{\"id\":1,\"method\":\"a\"},{\"id\":null,\"method\":\"b\"}]\n");
    input.extend_from_slice(
        b"\xff\xfe\x00 not utf-8 \x00\n{\"s\":\"\\ud800\"}\n{\"broken\":\n\xef\xbb\xbf{}\n",
    );
    input.extend_from_slice(b"{\"id\":123456789012345678901234567890,\"result\":1e400}\n");
    input.extend(vec![b'['; 10_000]);
    input.extend(vec![b']'; 10_000]);
    input.extend_from_slice(b"\nlast line without newline");
    assert_eq!(through_cat(&input), input);
}

#[test]
fn a_line_of_20_mib_and_small_ones_around_it_keep_their_order() {
    let mut input = b"{\"id\":1,\"method\":\"before\"}\n".to_vec();
    input.extend_from_slice(b"{\"id\":2,\"method\":\"big\",\"params\":{\"x\":\"");
    input.extend(std::iter::repeat_n(b"0123456789abcdef".iter().copied(), 20 << 16).flatten());
    input.extend_from_slice(b"\"}}\r\n{\"id\":3,\"method\":\"after\"}\n");
    assert!(through_cat(&input) == input);
}

#[test]
fn large_messages_are_recorded_whole_beside_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut input = b"{\"id\":7,\"method\":\"big\",\"params\":{\"x\":\"".to_vec();
    input.extend(vec![b'y'; 300_000]);
    input.extend_from_slice(b"\"}}\n");
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        file.to_str().unwrap(),
        "--",
        "cat",
    ];
    let output = pipe(&args, &input);
    assert!(output.stdout == input);
    let session = mcp_proxy_session::SessionRecord::open(&file).unwrap();
    assert_eq!(session.len(), 2);
    let message = session.message(0).unwrap();
    assert_eq!(message.method.as_deref(), Some("big"));
    assert_eq!(message.jsonrpc_id.as_deref(), Some("7"));
    assert!(message.raw.to_bytes() == input[..input.len() - 1]);
}

#[test]
fn the_record_says_how_large_lines_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let large = format!(r#"{{"method":"{}"}}"#, "y".repeat(300_000));
    let input = format!("{large}\n{large}\r\n{large}");
    let flags = ["proxy", "--listen", "stdio", "--session-file"];
    let args = [&flags[..], &[file.to_str().unwrap(), "--", "cat"]].concat();
    let output = pipe(&args, input.as_bytes());
    assert!(output.stdout == input.as_bytes());
    let lines = crate::programs::record_lines(&std::fs::read_to_string(&file).unwrap());
    let from_client = lines
        .iter()
        .filter(|line| line["direction"] == "client_to_server");
    let ends: Vec<_> = from_client.map(|line| line["eol"].as_str()).collect();
    assert_eq!(ends, [None, Some("crlf"), Some("none")]);
}
