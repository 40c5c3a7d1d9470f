//! What is typed wrong is said in one line that names it.

use crate::programs::pipe;

fn refused(args: &[&str]) -> String {
    let output = pipe(args, b"");
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn mistakes_are_named() {
    let cases: &[(&[&str], &str)] = &[
        (&["proxy"], "which server?"),
        (&["nonsense"], "`nonsense` is no URL"),
        (&["proxy", "ftp://x/y"], "only http:// and https://"),
        (
            &["proxy", "http://x/", "--", "cat"],
            "both a command and a URL",
        ),
        (&["proxy", "--transport", "sse", "--", "cat"], "need a URL"),
        (
            &["proxy", "--transport", "stdio", "http://x/"],
            "needs a command",
        ),
        (&["proxy", "--target-command", "a 'b"], "cannot be split"),
        (&["proxy", "--target-command", ""], "is empty"),
        (
            &["proxy", "--header", "nocolon", "http://x/"],
            "--header: write",
        ),
        (&["proxy", "--env", "NOVALUE", "--", "cat"], "--env: write"),
        (
            &["proxy", "--hold-timeout", "soon", "--", "cat"],
            "55s, 500ms or 2m",
        ),
        (&["proxy", "--break", "/[/", "--", "cat"], "--break /[/"),
        (
            &["proxy", "--redact-value", "(", "--", "cat"],
            "--redact-value: \"(\" is no pattern",
        ),
        (
            &["proxy", "--redact-path", "params.x", "--", "cat"],
            "--redact-path: \"params.x\" is no path: it does not begin with $",
        ),
        (
            &["export", "LAST", "--redact-key", ""],
            "--redact-key: an empty key",
        ),
        (
            &[
                "proxy",
                "--listen",
                "http",
                "--listen-host",
                "0.0.0.0",
                "--",
                "cat",
            ],
            "--behind-tls-proxy",
        ),
        (
            &[
                "proxy",
                "--listen",
                "http",
                "--listen-host",
                "0.0.0.0",
                "--behind-tls-proxy",
                "--",
                "cat",
            ],
            "--auth-token-file",
        ),
        (
            &["proxy", "--max-message", "lots", "--", "cat"],
            "--max-message",
        ),
        (
            &["proxy", "--max-message", "0", "--", "cat"],
            "--max-message",
        ),
        (
            &["proxy", "--transport", "carrier-pigeon", "--", "cat"],
            "carrier-pigeon",
        ),
        (&["proxy", "--lissen", "http", "--", "cat"], "--listen"),
        (&["proxy", "--break", "", "--", "cat"], "--intercept"),
        (&["proxy", "--break", " ", "--", "cat"], "an empty filter"),
        (
            &["replay", "none.jsonl", "--ignore", "bad[", "--", "cat"],
            "--ignore \"bad[\": a [ is not closed",
        ),
    ];
    for (args, expected) in cases {
        let text = refused(args);
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}

#[test]
fn the_word_proxy_may_be_left_out() {
    let input = b"{\"id\":1,\"method\":\"x\"}\n";
    for args in [
        &["--no-record", "--", "cat"][..],
        &["--no-record", "--target-command", "cat"],
    ] {
        let output = pipe(args, input);
        assert_eq!(
            output.stdout,
            input,
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn nothing_at_all_teaches() {
    let output = pipe(&[], b"");
    let text = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("mcp-proxy demo"), "{text}");
}

#[test]
fn the_demo_plays_and_says_what_to_type_next() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.jsonl");
    let output = pipe(
        &[
            "demo",
            "--pace",
            "0",
            "--session-file",
            file.to_str().unwrap(),
        ],
        b"",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        text.contains("tools/call") && text.contains("initialize"),
        "{text}"
    );
    assert!(said.contains("mcp-proxy inspect"), "{said}");
    assert!(
        mcp_proxy_session::SessionRecord::open(&file)
            .unwrap()
            .end()
            .is_some()
    );
}

#[test]
fn completions_and_man_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let output = pipe(&["completions", shell], b"");
        assert!(String::from_utf8_lossy(&output.stdout).contains("inspect"));
    }
    let folder = tempfile::tempdir().unwrap();
    let output = pipe(&["__man", folder.path().to_str().unwrap()], b"");
    assert!(output.status.success());
    assert!(folder.path().join("mcp-proxy.1").exists());
    assert!(folder.path().join("mcp-proxy-export.1").exists());
}
