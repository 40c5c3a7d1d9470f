//! Which tokens and which names the presets know.

use super::{left, preset};
use mcp_proxy_session::redact::RedactionPreset;
use serde_json::json;

#[test]
fn presets_know_tokens() {
    let redaction = preset(RedactionPreset::Tokens);
    let hides = |text: &str| {
        let raw = json!({ "x": text }).to_string();
        left(&redaction, &raw).contains('#')
    };
    for token in [
        "Authorization: Bearer abcdefghijklmnopqrst",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghijklmn",
        "glpat-abcdefghijklmnopqrst",
        "sk-proj-abcdefghijklmnopqrstuvwxyz",
        "sk-ant-api03-abcdefghijklmnopqrst",
        "sk_live_abcdefghijklmnop",
        "xoxb-123456789012-abcdef",
        "https://hooks.slack.com/services/T000/B000/abcdefghijklmnop",
        "AIzaabcdefghijklmnopqrstuvwxyz012345678",
        "postgres://me:s3cret@db/x",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
    ] {
        assert!(hides(token), "{token}");
    }
    for word in [
        "bearer authentication is needed",
        "basic responsibilities",
        "task-force",
        "http://host:8080/path@x",
        "-----BEGIN PUBLIC KEY-----",
        "eyJust a word",
    ] {
        assert!(!hides(word), "{word}");
    }
    assert_eq!(
        left(&redaction, r#"{"AKIAIOSFODNN7EXAMPLE":1}"#),
        r##"{"#1":1}"##
    );
    assert_eq!(
        left(&redaction, r#"{"x":"postgres://me:s3cret@db/x"}"#),
        r##"{"x":"postgres://me:#1@db/x"}"##
    );
}

#[test]
fn presets_know_names() {
    let redaction = preset(RedactionPreset::Keys);
    let hides = |key: &str| left(&redaction, &json!({ key: "x" }).to_string()).contains('#');
    for key in [
        "password",
        "db_password",
        "passwordHash",
        "apiKey",
        "x-api-key",
        "API_KEY",
        "client_secret",
        "access_token",
        "accessToken",
        "token",
        "Authorization",
        "private-key",
        "aws_secret_access_key",
        "credentials",
        "GITHUB_TOKEN",
        "botToken",
        "DB_PWD",
        "db_pass",
        "AccountKey",
        "password2",
        "secrets",
        "api_keys",
    ] {
        assert!(hides(key), "{key}");
    }
    for key in [
        "progressToken",
        "progress_token",
        "nextPageToken",
        "max_tokens",
        "nextCursor",
        "key",
        "tokens_used",
        "authorizationUrl",
        "name",
        "password_length",
        "secret_santa",
        "secretName",
        "password_file",
        "has_password",
        "is_secret",
        "isSecret",
        "passwordRequired",
        "access_token_expires_in",
        "compass",
    ] {
        assert!(!hides(key), "{key}");
    }
    // Yes and no are no secrets, unless somebody asked for it.
    let raw = r#"{"password":true,"secret":[false,7]}"#;
    assert_eq!(
        left(&redaction, raw),
        r##"{"password":true,"secret":[false,"#1"]}"##
    );
}
