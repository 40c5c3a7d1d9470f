//! `--max-message`: what is too large is refused to its sender, and the conversation goes on.

use crate::programs::StdioProgram;

const LARGE: usize = 500_000;

fn limited(server: &[&str]) -> StdioProgram {
    let mut args = vec!["proxy", "--listen", "stdio", "--no-record"];
    args.extend(["--max-message", "200000", "--"]);
    args.extend(server);
    StdioProgram::start(&args)
}

/// The next line that is a whole message.
fn hear_whole(talk: &mut StdioProgram) -> String {
    loop {
        let line = talk.hear();
        assert!(!line.is_empty(), "the proxy ended");
        if line.ends_with('}') {
            return line;
        }
    }
}

#[test]
fn a_request_that_grows_too_large_is_answered_and_the_next_one_passes() {
    let mut talk = limited(&["cat"]);
    let text = "x".repeat(LARGE);
    talk.say(&format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":"{text}"}}"#
    ));
    let answer = hear_whole(&mut talk);
    assert!(
        answer.contains(r#""id":7"#) && answer.contains("-31005") && answer.contains("200000"),
        "{answer}"
    );
    let next = r#"{"jsonrpc":"2.0","id":8,"method":"n"}"#;
    talk.say(next);
    assert_eq!(hear_whole(&mut talk), next);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn an_answer_that_grows_too_large_ends_as_a_line_and_an_error_follows() {
    let script = format!(
        r#"read x; printf '{{"jsonrpc":"2.0","id":7,"result":"'; head -c {LARGE} /dev/zero | tr '\0' y; echo '"}}'; cat"#
    );
    let mut talk = limited(&["sh", "-c", &script]);
    talk.say(r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#);
    let answer = hear_whole(&mut talk);
    assert!(
        answer.starts_with('{') && answer.contains(r#""id":7"#) && answer.contains("-31005"),
        "{answer}"
    );
    let next = r#"{"jsonrpc":"2.0","id":8,"method":"n"}"#;
    talk.say(next);
    assert_eq!(hear_whole(&mut talk), next);
    assert_eq!(talk.end(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_a_message_between_two_stdio_sides() {
    let megabytes = 100;
    let answer = |id: u32, megabytes: usize| {
        format!(
            r#"read -r x; printf '{{"jsonrpc":"2.0","id":{id},"result":"'; head -c {} /dev/zero | tr '\0' y; echo '"}}'"#,
            megabytes << 20
        )
    };
    let script = format!("{}; {}; cat", answer(1, 1), answer(2, megabytes));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let mut args = vec!["proxy", "--listen", "stdio", "--session-file"];
    args.extend([record.to_str().unwrap(), "--", "sh", "-c", &script]);
    let mut talk = StdioProgram::start(&args);
    // A shorter message goes the same way first: code that runs for the first time counts as well, and in a debug build that
    // is much.
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#);
    assert!(talk.hear().len() > 1 << 20);
    let before = talk.peak_memory();
    talk.say(r#"{"jsonrpc":"2.0","id":2,"method":"m"}"#);
    assert!(talk.hear().len() > megabytes << 20);
    let grown = talk.peak_memory() - before;
    assert!(grown < 20 << 10, "{grown} kB more for one message");
    assert_eq!(talk.end(), Some(0));
}
