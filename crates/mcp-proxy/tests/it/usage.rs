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
    // What was typed, and what of it the text must name.
    let cases = [
        ("proxy", "proxy"),
        ("nonsense", "nonsense"),
        ("proxy ftp://x/y", "ftp://x/y"),
        ("proxy http://x/ -- cat", "URL"),
        ("proxy --transport sse -- cat", "sse"),
        ("proxy --transport stdio http://x/", "stdio"),
        ("proxy --header nocolon http://x/", "--header"),
        ("proxy --env NOVALUE -- cat", "--env"),
        ("proxy --hold-timeout soon -- cat", "--hold-timeout"),
        ("proxy --intercept --hold-timeout 0 -- cat", "never"),
        ("proxy --break /[/ -- cat", "--break /[/"),
        ("proxy --redact-value ( -- cat", "--redact-value: \"(\""),
        (
            "proxy --redact-path params.x -- cat",
            "--redact-path: \"params.x\"",
        ),
        (
            "proxy --listen http --listen-host 0.0.0.0 -- cat",
            "--behind-tls-proxy",
        ),
        (
            "proxy --listen http --listen-host 0.0.0.0 --behind-tls-proxy -- cat",
            "--auth-token-file",
        ),
        ("proxy --max-message lots -- cat", "--max-message"),
        ("proxy --max-message 0 -- cat", "--max-message"),
        ("proxy --transport carrier-pigeon -- cat", "carrier-pigeon"),
        ("proxy --lissen http -- cat", "--listen"),
        (
            "replay none.jsonl --ignore bad[ -- cat",
            "--ignore \"bad[\"",
        ),
        ("replay none.jsonl --speed 0 -- cat", "--speed"),
        ("replay none.jsonl", "mcp-proxy replay none.jsonl --"),
        (
            "proxy --listen http --tls-cert /no/c --tls-key /no/k -- cat",
            "--tls-cert: cannot read /no/c",
        ),
        ("serve --threads 100000", "--threads"),
        ("relay --extension-id ponm", "--extension-id"),
        ("relay --extension-id tabs@example.com", "--extension-id"),
        ("relay --command-timeout 0", "--command-timeout"),
        ("relay --command-timeout 25h", "--command-timeout"),
        ("relay --resume-window 25h", "--resume-window"),
        ("relay --user-rate 0", "--user-rate"),
        ("relay --connection-rate 1000001", "--connection-rate"),
        ("relay --max-connections 0", "--max-connections"),
        ("relay --threads 100000", "--threads"),
        (
            "relay --direct --tls-cert /no/c --tls-key /no/k",
            "--tls-cert: cannot read /no/c",
        ),
        (
            "relay --direct --tls-cert /dev/null --tls-key /no/k",
            "--tls-key: cannot read /no/k",
        ),
        (
            "relay --direct --listen-port 0 --no-record --audit-log /no/log",
            "--audit-log: cannot write /no/log",
        ),
        (
            "relay --revoked-file /no/revoked",
            "--revoked-file: cannot read /no/revoked",
        ),
        ("relay --allow-host https://x.test", "--allow-host"),
        ("relay --allow-host x.test:443", "--allow-host"),
        ("relay --allow-host 2001:db8::1", "--allow-host"),
        ("relay --direct --max-message 0", "--max-message"),
        ("relay --revoked-file /", "--revoked-file"),
        (
            "relay --revoked-file none --jwks /",
            "--jwks: cannot read /",
        ),
        ("relay --revoked-file none --jwks /dev/null", "/dev/null"),
        (
            "relay --revoked-file none --jwt-public-key /dev/null",
            "/dev/null",
        ),
        ("relay --revoked-file none --jwks ftp://x/y", "ftp://"),
        ("relay --direct --listen-host 0.0.0.0", "--direct"),
    ];
    let cases = cases.map(|(typed, named)| (typed.split(' ').collect(), named));
    // And words that are empty or have spaces.
    let others: [(Vec<&str>, &str); 5] = [
        (vec!["proxy", "--target-command", "a 'b"], "a 'b"),
        (vec!["proxy", "--target-command", ""], "--target-command"),
        (vec!["export", "LAST", "--redact-key", ""], "--redact-key"),
        (vec!["proxy", "--break", "", "--", "cat"], "--intercept"),
        (vec!["proxy", "--break", " ", "--", "cat"], "--break"),
    ];
    let mut told = String::new();
    for (args, named) in cases.into_iter().chain(others) {
        let text = refused(&args);
        assert!(text.contains(named), "{args:?}: {text}");
        let typed = args
            .iter()
            .map(|word| match word.contains([' ', '\'']) || word.is_empty() {
                true => format!("{word:?}"),
                false => (*word).to_owned(),
            });
        let typed = typed.collect::<Vec<_>>().join(" ");
        told.push_str(&format!("$ mcp-proxy {typed}\n{text}\n"));
    }
    insta::assert_snapshot!("usage_errors", told);
}

#[test]
fn what_was_meant_is_suggested() {
    for (typed, meant) in [
        ("attch", "`attach`"),
        ("exprot LAST", "`export`"),
        ("cat -n file", "mcp-proxy -- cat -n file"),
        ("sh server.sh", "mcp-proxy -- sh server.sh"),
        ("proxy sh server.sh", "mcp-proxy -- sh server.sh"),
        (
            "no-such-program --flag",
            "mcp-proxy -- no-such-program --flag",
        ),
        (
            "--intercept sh -x server.sh",
            "mcp-proxy --intercept -- sh -x server.sh",
        ),
        ("localhost:3000/mcp", "mcp-proxy http://localhost:3000/mcp"),
        (
            "proxy localhost:3000/mcp",
            "mcp-proxy http://localhost:3000/mcp",
        ),
        (
            "--listen http localhost:3000/mcp",
            "http://localhost:3000/mcp",
        ),
    ] {
        let text = refused(&typed.split(' ').collect::<Vec<_>>());
        assert!(text.contains(meant), "{typed}: {text}");
        assert!(text.starts_with("mcp-proxy: "), "{typed}: {text}");
    }
}

#[test]
fn d21_the_word_proxy_and_two_dashes_may_be_left_out() {
    let input = b"{\"id\":1,\"method\":\"x\"}\n";
    for args in [
        &["--no-record", "--", "cat"][..],
        &["--no-record", "--target-command", "cat"],
        &["--no-record", "--command", "cat"],
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
fn man_pages_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let output = pipe(&["man", folder.path().to_str().unwrap()], b"");
    assert!(output.status.success());
    assert!(folder.path().join("mcp-proxy.1").exists());
    assert!(folder.path().join("mcp-proxy-export.1").exists());
    let printed = pipe(&["man"], b"").stdout;
    assert_eq!(
        printed,
        std::fs::read(folder.path().join("mcp-proxy.1")).unwrap()
    );
}

#[test]
fn a_port_in_use_is_named_with_the_flag_that_chooses_another() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for command in ["proxy", "serve"] {
        let mut args = vec![command, "--headless", "--no-record", "--no-control"];
        args.extend(["--listen", "http", "--listen-port", port.as_str()]);
        args.extend((command == "proxy").then_some("http://127.0.0.1:1/mcp"));
        let output = pipe(&args, b"");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains(&port) && text.contains("--listen-port"),
            "{text}"
        );
        assert!(!text.contains("os error"), "{text}");
    }
}
