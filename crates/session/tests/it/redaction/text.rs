//! What the presets find in text that is no JSON.

use super::{captured_with, left, preset};
use mcp_proxy_session::Redaction;
use mcp_proxy_session::redact::RedactionPreset;
use mcp_proxy_wire::Message;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A text, and what is left of it.
const HIDDEN: &[(&str, &str)] = &[
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
    // Behind a colon or a loose sign: the line.
    ("password: hunter2", "password: #1"),
    ("password: hunter2.\nnext: line", "password: #1\nnext: line"),
    ("password: two words, and more", "password: #1"),
    ("PASSWORD = hunter2 # why", "PASSWORD = #1"),
    ("API key: abc, user: me", "API key: #1"),
    ("passwd : x", "passwd : #1"),
    (
        "private_key: abc\naccess_key=def",
        "private_key: #1\naccess_key=#2",
    ),
    (
        "line one\nDB_PASSWORD: p@ss:w=rd",
        "line one\nDB_PASSWORD: #1",
    ),
    ("password: !vault x1", "password: #1"),
    ("password: # why\n  x1", "password: #1\n  x1"),
    ("Authorization: Custom x1 y2\nz", "Authorization: #1\nz"),
    (
        "Authorization: AWS4-HMAC-SHA256 Credential=A/2, Signature=x1\nHost: x",
        "Authorization: AWS4-HMAC-SHA256 #1\nHost: x",
    ),
    (
        "curl -H \"X-Api-Key: secL1234\" https://api.x",
        "curl -H \"X-Api-Key: #1\" https://api.x",
    ),
    ("-H 'PRIVATE-TOKEN: sec1'", "-H 'PRIVATE-TOKEN: #1'"),
    ("- **Token:** x1", "- **Token:#1"),
    ("- **token**: `x1`", "- **token**: `#1`"),
    ("user: me password: hunter role: x", "user: me password: #1"),
    ("token: [0, 17]", "token: #1"),
    (
        "use {\"passwords\":[\"x1\", \"x2\"]",
        "use {\"passwords\":#1",
    ),
    ("password = get_password()", "password = #1"),
    // In quotes.
    ("password: \"hunter 2\"", "password: \"#1\""),
    ("pwd='a b' passwd=x", "pwd='#1' passwd=#2"),
    (
        "api_key = \"x\"\napi-key: y\napikey=z",
        "api_key = \"#1\"\napi-key: #2\napikey=#3",
    ),
    (
        "{'client_secret': 'x', \"n\": 1}",
        "{'client_secret': '#1', \"n\": 1}",
    ),
    (
        "token := \"x\"; :secret => 'y'",
        "token := \"#1\"; :secret => '#2'",
    ),
    ("Config(token=b'x1', a=1)", "Config(token=b'#1', a=1)"),
    ("token: u'x1'", "token: u'#1'"),
    ("password='it''s x1' y", "password='#1' y"),
    (
        "password = \"\"\"a\nb\"\"\"\nc",
        "password = \"\"\"#1\"\"\"\nc",
    ),
    ("cfg[\"token\"] = 'x1'", "cfg[\"token\"] = '#1'"),
    ("'password' => \"x1\"", "'password' => \"#1\""),
    ("refresh_token\":\"x1", "refresh_token\":\"#1"),
    ("don't, password: 'x1'", "don't, password: '#1'"),
    ("token=`SECRET`", "token=`#1`"),
    ("{'Cookie': 'sid=s1; b=s2'}", "{'Cookie': '#1'}"),
    (
        "{'Authorization': f'Bearer xyz'}",
        "{'Authorization': f'#1'}",
    ),
    (
        "('Authorization', 'Bearer xyz')",
        "('Authorization', 'Bearer #1')",
    ),
    (
        "body: \"{\\\"password\\\":\\\"s1\\\"}\"",
        "body: \"{\\\"password\\\":\\\"#1\"",
    ),
    // Parameters.
    ("export GITHUB_TOKEN=abc123", "export GITHUB_TOKEN=#1"),
    ("POSTGRES_PASSWORD=secret img", "POSTGRES_PASSWORD=#1 img"),
    ("run --token=x1 -v", "run --token=#1 -v"),
    ("password=pa;ssx1", "password=#1"),
    ("password=abc,defx1 y", "password=#1 y"),
    ("password=a&bx1", "password=#1"),
    ("password=it's5x", "password=#1"),
    ("password=ab\"x1\" y", "password=#1\" y"),
    ("password=abc=defX==", "password=#1"),
    ("password=a1&page=2", "password=#1&page=2"),
    ("token=a1&amp;page=2", "token=#1&amp;page=2"),
    (
        "Server=db;Password=x1;Encrypt=true",
        "Server=db;Password=#1;Encrypt=true",
    ),
    ("f(user=a,token=x1,b=c)", "f(user=a,token=#1,b=c)"),
    (
        "GET /z?token=s1&page=2&api_key=s2",
        "GET /z?token=#1&page=2&api_key=#2",
    ),
    (
        "PATH=/usr/bin\nAWS_SECRET_ACCESS_KEY=wJalr7\nLANG=C",
        "PATH=/usr/bin\nAWS_SECRET_ACCESS_KEY=#1\nLANG=C",
    ),
    ("password=${DB_PASSWORD}", "password=#1"),
];

/// Texts in which nothing is hidden.
const UNTOUCHED: &[&str] = &[
    "token: ",
    "token:\nnext",
    "password=",
    "token: ''",
    "max_tokens: 5",
    "max_tokens=5",
    "progressToken: 7, progress_token = 7",
    "nextPageToken: abc",
    "the password is needed, and no token either",
    "if token == other && secret != mine {",
    "Secretary: Jane",
    "Authorization: Bearer [masked]",
    "bearer authentication is needed",
    "secret: true",
    "Secret Santa: bring gifts",
    "WWW-Authenticate: Bearer realm=\"mcp\"",
    "Unexpected token: foo",
    "tests: pass_count: 12, fail: 0",
    "secret://path/x1 Secret::Kind",
    "password_length: 12 token_count=55 secret_santa: bob tokenizer: cl100k_base token_type: bearer token_limit: 800",
    "password_file: /run/secrets/db\nsecretName: my-secret\nsecretKeyRef: x1",
    "tokenUrl: https://x/token token_endpoint: https://x/token authorization_endpoint: https://x/auth",
    "cookie_policy: strict1\nauth: basic1 compass: north1 has_password: x1 is_secret=x1",
    "max_tokens: 4096, total_tokens=512, \"max_tokens\": 1024, prompt_tokens: 7, tokens: 12",
    "key: value1, primary_key: id1, foreign_key=user_id1, sort_key=name1, public_key: abcd1",
    // SECURITY.md says that these are not found.
    "run --token x1",
    "curl -u admin:x1 http://h",
    "<password>x1</password>",
    "secret:\n  x1",
    "my password is x1",
];

#[test]
fn presets_know_credentials_in_text() {
    let redaction = preset(RedactionPreset::All);
    let untouched = UNTOUCHED.iter().map(|text| (*text, *text));
    let mut wrong = Vec::new();
    for (text, shown) in HIDDEN.iter().copied().chain(untouched) {
        let raw = json!({ "text": text }).to_string();
        let left: Value = serde_json::from_str(&left(&redaction, &raw)).unwrap();
        if left["text"] != shown {
            wrong.push(format!(
                "{text:?}\n  left   {}\n  wanted {shown:?}",
                left["text"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Broken JSON, where the escapes still stand.
    assert_eq!(
        left(&redaction, r#"{"text":"hi\npwd: \"hunter2\"#),
        r##"{"text":"hi\npwd: \"#1"##
    );
}

/// Values that do not end, or names without values, must not be read again and again.
#[test]
fn a_long_text_takes_no_long_time() {
    let redaction = preset(RedactionPreset::All);
    for piece in [
        "token=f(",
        "--token \"",
        "token: \"",
        "<password>",
        "token:",
        "password=${",
        "password:\n ",
        "token: none,",
        "login a password ",
        "-u a:",
        "secret: |\n ",
        "Authorization: ",
        "token='''",
        "password: {",
        "token: Vec<",
        "-b ",
        "-b \"",
        "-u \"",
        "token: a b ",
        "Cookie: ",
        "token=`",
        "token=self.",
        "token: &[",
    ] {
        let text = piece.repeat(300_000 / piece.len());
        let started = std::time::Instant::now();
        let _ = redaction.message(&Message::parse(text));
        assert!(
            started.elapsed().as_secs() < 10,
            "{piece:?} {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn what_is_hidden_in_text_is_hidden_once() {
    let text = "Authorization: Bearer abc123\nCookie: a=b; c=d\npassword: x\npwd=y http://u:p@h/";
    let mut sample = captured_with(&preset(RedactionPreset::All));
    sample.client(json!({ "text": text }).to_string());
    let captured = sample.open();
    assert_eq!(captured.message(0).unwrap().redacted, 5);
    let export = captured.redacted(&preset(RedactionPreset::All));
    assert_eq!(export.message(0).unwrap().redacted, 5);
}

#[test]
fn a_flag_in_a_list_names_what_follows() {
    let redaction = preset(RedactionPreset::Keys);
    for (raw, shown) in [
        (
            r#"{"args":["-v","--token","x","y"],"b":["--token"],"c":["z"]}"#,
            r##"{"args":["-v","--token","#1","y"],"b":["--token"],"c":["z"]}"##,
        ),
        (
            r#"{"args":["--token",["x"],"--token","--z","y","--max-tokens","5"]}"#,
            r#"{"args":["--token",["x"],"--token","--z","y","--max-tokens","5"]}"#,
        ),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn no_value_is_hidden_twice() {
    let mut sample = captured_with(&preset(RedactionPreset::All));
    for (text, _) in HIDDEN {
        sample.client(json!({ "text": text }).to_string());
    }
    let captured = sample.open();
    let export = sample.open().redacted(&preset(RedactionPreset::All));
    for (index, (text, _)) in HIDDEN.iter().enumerate() {
        let (first, again) = (captured.message(index), export.message(index));
        let (first, again) = (first.unwrap(), again.unwrap());
        assert!(first.redacted > 0, "{text:?}");
        assert_eq!(again.redacted, first.redacted, "{text:?}");
        assert_eq!(again.raw.to_bytes(), first.raw.to_bytes());
    }
}

static ALL: LazyLock<Redaction> = LazyLock::new(|| preset(RedactionPreset::All));
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[redacted:[0-9a-f]{16}:[0-9]+\]").unwrap());

proptest! {
    /// Whatever stands where: no panic, and what is not hidden stays in its order.
    #[test]
    fn any_text_keeps_what_is_not_hidden(pieces in prop::collection::vec(prop_oneof![
        Just("password"), Just("token"), Just("Authorization"), Just("Cookie"), Just("--token"), Just("-u"), Just("<secret>"),
        Just("</secret>"), Just(" "), Just("="), Just(":"), Just("=>"), Just("'"), Just("\""), Just("`"), Just("\\"), Just("\n"),
        Just("  "), Just("|"), Just("!v"), Just("${"), Just("}"), Just("<"), Just(">"), Just("("), Just("["), Just("x1"), Just("é"),
        Just("Bearer"), Just("Digest"), Just("b'"), Just("&"), Just(";"), Just(","), Just("login"), Just("str"), Just("**"), Just("%"),
    ], 0..24)) {
        let text = pieces.concat();
        if let Some(redacted) = ALL.message(&Message::parse(text.clone())) {
            let shown = String::from_utf8(redacted.message.into_raw().into()).unwrap();
            let mut rest = text.as_str();
            for kept in MARK.split(&shown) {
                let at = rest.find(kept);
                prop_assert!(at.is_some());
                rest = &rest[at.unwrap_or(0) + kept.len()..];
            }
        }
    }
}
