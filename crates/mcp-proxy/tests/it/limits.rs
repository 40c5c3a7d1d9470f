//! `--max-message`: what is too large is refused to its sender, and the conversation goes on.

use crate::programs::StdioProgram;

const LARGE: usize = 500_000;

fn limited(server: &[&str]) -> StdioProgram {
    let mut args = vec!["proxy", "--listen", "stdio", "--no-record"];
    args.extend(["--max-message", "200000", "--"]);
    args.extend(server);
    StdioProgram::start(&args)
}

#[test]
fn a_request_that_is_too_large_is_answered_and_the_next_one_passes() {
    let mut talk = limited(&["cat"]);
    let text = "x".repeat(LARGE);
    talk.say(&format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":"{text}"}}"#
    ));
    let answer = talk.hear();
    assert!(
        answer.contains(r#""id":7"#) && answer.contains("-31005") && answer.contains("200000"),
        "{answer}"
    );
    let next = r#"{"jsonrpc":"2.0","id":8,"method":"n"}"#;
    talk.say(next);
    assert_eq!(talk.hear(), next);
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn an_answer_that_is_too_large_becomes_an_error() {
    let script = format!(
        r#"read x; printf '{{"jsonrpc":"2.0","id":7,"result":"'; head -c {LARGE} /dev/zero | tr '\0' y; echo '"}}'; cat"#
    );
    let mut talk = limited(&["sh", "-c", &script]);
    talk.say(r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#);
    let answer = talk.hear();
    assert!(
        answer.contains(r#""id":7"#) && answer.contains("-31005"),
        "{answer}"
    );
    let next = r#"{"jsonrpc":"2.0","id":8,"method":"n"}"#;
    talk.say(next);
    assert_eq!(talk.hear(), next);
    assert_eq!(talk.end(), Some(0));
}
