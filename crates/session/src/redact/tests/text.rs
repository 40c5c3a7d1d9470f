//! What the presets find in text that is no JSON.

use super::*;

#[test]
fn presets_know_credentials_in_text() {
    let redaction = preset(Preset::All);
    for (text, shown) in [
        ("Authorization: Bearer abc123", "Authorization: Bearer #1"),
        ("Authorization: Bearer secret", "Authorization: Bearer #1"),
        ("authorization=Basic dXNlcjpw x", "authorization=Basic #1 x"),
        (
            "-H 'Authorization: token abc' -v",
            "-H 'Authorization: token #1' -v",
        ),
        ("Authorization: rawvalue", "Authorization: #1"),
        (
            "Authorization: Digest username=\"M\", response=\"6629\"\nHost: x",
            "Authorization: Digest #1\nHost: x",
        ),
        ("use Bearer ab1cde, please", "use Bearer #1, please"),
        ("Cookie: a=b; c=d\r\nHost: x", "Cookie: #1\r\nHost: x"),
        ("set-cookie: id=a3; Path=/; HttpOnly", "set-cookie: #1"),
        (
            "curl -H \"Cookie: a=b; c=d\" http://h/",
            "curl -H \"Cookie: #1\" http://h/",
        ),
        ("password: hunter2", "password: #1"),
        (
            "password: hunter2.\nnext: line",
            "password: #1.\nnext: line",
        ),
        ("password: \"hunter 2\"", "password: \"#1\""),
        ("PASSWORD = hunter2 # why", "PASSWORD = #1 # why"),
        ("pwd='a b' passwd : x", "pwd='#1' passwd : #2"),
        (
            "api_key = \"x\"\napi-key: y\napikey=z",
            "api_key = \"#1\"\napi-key: #2\napikey=#3",
        ),
        ("API key: abc, user: me", "API key: #1, user: me"),
        ("export GITHUB_TOKEN=abc123", "export GITHUB_TOKEN=#1"),
        (
            "{'client_secret': 'x', \"n\": 1}",
            "{'client_secret': '#1', \"n\": 1}",
        ),
        (
            "token := \"x\"; :secret => 'y'",
            "token := \"#1\"; :secret => '#2'",
        ),
        (
            "private_key: abc\naccess_key=def",
            "private_key: #1\naccess_key=#2",
        ),
        (
            "line one\nDB_PASSWORD: p@ss:w=rd",
            "line one\nDB_PASSWORD: #1",
        ),
    ] {
        let raw = json!({ "text": text }).to_string();
        let expected = json!({ "text": shown }).to_string();
        assert_eq!(left(&redaction, &raw), expected);
    }
    for text in [
        "token: ",
        "token:\nnext",
        "password=",
        "max_tokens: 5",
        "max_tokens=5",
        "progressToken: 7, progress_token = 7",
        "nextPageToken: abc",
        "the password is needed, and no token either",
        "fn login(password: &str, token: string) -> Secret::Kind",
        "if token == other && secret != mine {",
        "Secretary: Jane",
        "Authorization: Bearer [masked]",
        "bearer authentication is needed",
    ] {
        let raw = json!({ "text": text }).to_string();
        assert_eq!(left(&redaction, &raw), raw);
    }
    // Broken JSON, where the escapes still stand.
    assert_eq!(
        left(&redaction, r#"{"text":"hi\npwd: \"hunter2\"#),
        r##"{"text":"hi\npwd: \"#1"##
    );
}

#[test]
fn what_is_hidden_in_text_is_hidden_once() {
    let capture = preset(Preset::All);
    let text = "Authorization: Bearer abc123\nCookie: a=b; c=d\npassword: x\npwd=y http://u:p@h/";
    let first = capture
        .message(&Message::parse(json!({ "text": text }).to_string()))
        .unwrap();
    assert_eq!(first.count, 5);
    let export = preset(Preset::All).for_record(Some(capture.facts()));
    assert!(export.message_after(&first.message, first.count).is_none());
}
