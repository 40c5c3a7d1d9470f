//! What is hidden of headers, command lines, URLs and stderr.

use crate::sample::{SampleRecord, header, options, response};
use mcp_proxy_session::{CredentialRedaction, RecordOptions};

const SECRETS: [&str; 2] = ["s3cret-value", "on"];

fn masks() -> CredentialRedaction {
    CredentialRedaction::new(SECRETS.map(str::to_owned))
}

fn hiding() -> RecordOptions {
    RecordOptions {
        credentials: masks(),
        ..options()
    }
}

/// A header's value as a record shows it.
fn recorded_header(options: RecordOptions, name: &str, value: &str) -> String {
    let mut sample = SampleRecord::with(options, &header());
    let envelope = response(200, &[(name, value)]);
    sample.from_server("{}").carried_by(&envelope).write();
    let http = sample.open().message(0).unwrap().http.unwrap();
    http.header(name).unwrap().to_owned()
}

#[test]
fn headers_that_carry_credentials_are_masked() {
    let shown = |name: &str, value: &str| recorded_header(hiding(), name, value);
    assert_eq!(shown("authorization", "Bearer abc"), "Bearer [masked]");
    assert_eq!(shown("authorization", "abc"), "[masked]");
    assert_eq!(shown("proxy-authorization", "basic abc"), "Basic [masked]");
    assert_eq!(shown("cookie", "a=b"), "[masked]");
    assert_eq!(shown("set-cookie", "a=b"), "[masked]");
    assert_eq!(shown("x-api-key", "abc"), "[masked]");
    assert_eq!(shown("x-mine", "s3cret-value"), "[masked]");
    assert_eq!(shown("x-mine", "v=s3cret-value;"), "v=[masked];");
    assert_eq!(shown("x-mode", "on"), "[masked]");
    assert_eq!(shown("x-mode", "button"), "button");
    assert_eq!(shown("mcp-session-id", "abc"), "abc");
    assert_eq!(
        shown("location", "https://u:p@h/x?token=1&a=2"),
        "https://[masked]@h/x?token=[masked]&a=2"
    );
    assert_eq!(
        shown("content-type", "application/json"),
        "application/json"
    );
}

#[test]
fn urls_keep_what_is_no_secret() {
    for (url, shown) in [
        ("http://h/mcp", "http://h/mcp"),
        ("http://user:pass@h/mcp", "http://[masked]@h/mcp"),
        (
            "/messages?sessionId=9&api_key=abc",
            "/messages?sessionId=9&api_key=[masked]",
        ),
        ("http://h/@x?a=b", "http://h/@x?a=b"),
        ("http://h/?x=s3cret-value", "http://h/?x=[masked]"),
    ] {
        assert_eq!(masks().url(url), shown);
    }
}

#[test]
fn command_lines_keep_names_and_lose_values() {
    let argv: Vec<String> = [
        "mcp-proxy",
        "--header",
        "X-A: b",
        "--env=TOKEN=t",
        "--auth-token-file",
        "/run/t",
        "--",
        "server",
        "--api-key",
        "sk-1",
        "http://u:p@h/",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(
        masks().argv(&argv).join(" "),
        "mcp-proxy --header X-A: [masked] --env=TOKEN=[masked] --auth-token-file /run/t -- server --api-key [masked] http://[masked]@h/"
    );
    for (command, shown) in [
        (
            "run --token abc s3cret-value",
            "run --token [masked] [masked]",
        ),
        (
            "docker run -e KEY=abc image",
            "docker run -e KEY=[masked] image",
        ),
        ("node -e console.log(1)", "node -e console.log(1)"),
        (
            "run '--token=x' --url 'https://u:p@h/?api_key=x' 'API_KEY=y z'",
            "run '--token=[masked]' --url 'https://[masked]@h/?api_key=[masked]' 'API_KEY=y z'",
        ),
        (
            "curl --header \"X-A: b c\" --password 'it'\\''s' it",
            "curl --header \"X-A: [masked]\" --password '[masked]' it",
        ),
        ("don't --token a b", "don't --token [masked] b"),
        (
            "sh -c \"echo 'a b'; run --token x1\" A='b c'",
            "sh -c \"echo 'a b'; run --token [masked]\" A='b c'",
        ),
    ] {
        assert_eq!(masks().command(command), shown);
    }
}

#[test]
fn patterns_for_secrets_are_secrets() {
    let argv: Vec<String> = [
        "p",
        "--redact-value",
        "hunter2",
        "--redact-value=-x",
        "--env",
        "A=b",
    ]
    .map(str::to_owned)
    .into();
    for (masks, shown) in [
        (
            masks(),
            "p --redact-value [masked] --redact-value=[masked] --env A=[masked]",
        ),
        (
            CredentialRedaction::none(),
            "p --redact-value [masked] --redact-value=[masked] --env A=b",
        ),
    ] {
        assert_eq!(masks.argv(&argv).join(" "), shown);
    }
}

#[test]
fn keep_secrets_keeps_them() {
    let options = RecordOptions {
        credentials: CredentialRedaction::none(),
        ..hiding()
    };
    assert_eq!(
        recorded_header(options, "authorization", "Bearer abc"),
        "Bearer abc"
    );
    assert_eq!(
        CredentialRedaction::none().url("http://u:p@h/?token=1"),
        "http://u:p@h/?token=1"
    );
}

#[test]
fn text_loses_known_secrets_only() {
    let mut sample = SampleRecord::with(hiding(), &header());
    sample.stderr("key s3cret-value, on");
    let session = sample.open();
    let line = session.records().last().unwrap().unwrap();
    let text: Option<String> = line.member("text");
    assert_eq!(text.as_deref(), Some("key [masked], on"));
}

#[test]
fn a_secret_that_is_learned_later_is_masked_by_all_clones() {
    let masks = masks();
    let clone = masks.clone();
    masks.add(["learned-later".to_owned()]);
    for masks in [masks, clone] {
        assert_eq!(
            masks.mask("learned-later, s3cret-value"),
            "[masked], [masked]"
        );
    }
    let kept = CredentialRedaction::none();
    kept.add(["learned-later".to_owned()]);
    assert_eq!(kept.mask("learned-later"), "learned-later");
}

#[test]
fn short_secrets_are_masked_as_words() {
    let masks = CredentialRedaction::new(["pa55", "abc"].map(str::to_owned));
    for (text, shown) in [
        ("key pa55!", "key [masked]!"),
        ("pa55=pa55", "[masked]=[masked]"),
        ("xpa55 pa556 pa55", "xpa55 pa556 [masked]"),
        ("abc", "[masked]"),
        ("key abc", "key abc"),
    ] {
        assert_eq!(masks.mask(text), shown);
    }
}
