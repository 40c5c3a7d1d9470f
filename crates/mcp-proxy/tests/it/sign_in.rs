//! `login` and `logout` as people type them, against an authorization server in the test.

use std::process::Stdio;
use std::time::Duration;

use authorization_server::TestServer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use url::Url;

use crate::programs::{ListeningProgram, PROXY};

#[allow(dead_code, reason = "the tests of the crate `auth` use more of it")]
#[path = "../../../auth/tests/it/authorization_server.rs"]
mod authorization_server;
#[allow(dead_code, reason = "the tests of the crate `auth` use more of it")]
#[path = "../../../auth/tests/it/browser.rs"]
mod browser;

const DEADLINE: Duration = Duration::from_secs(60);

/// A `login --no-browser` that has printed its URL.
struct Login {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    url: Url,
}

impl Login {
    async fn start(server: &TestServer, arguments: &[&str]) -> Login {
        let mut child = command(server)
            .args(["login", "--no-browser"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(DEADLINE, lines.next_line()).await.unwrap();
        // A line of its own.
        let url = Url::parse(&line.unwrap().unwrap()).unwrap();
        Login {
            stdin: child.stdin.take(),
            child,
            lines,
            url,
        }
    }

    async fn end(mut self) -> (Option<i32>, String) {
        let line = timeout(DEADLINE, self.lines.next_line()).await.unwrap();
        let status = timeout(DEADLINE, self.child.wait()).await.unwrap();
        (status.unwrap().code(), line.unwrap().unwrap_or_default())
    }
}

fn command(server: &TestServer) -> Command {
    let mut command = Command::new(PROXY);
    command
        .env("XDG_DATA_HOME", server.folder())
        .env("XDG_CONFIG_HOME", server.folder())
        .env("XDG_RUNTIME_DIR", server.folder())
        .env("MCP_PROXY_TOKEN_STORE", "file")
        .kill_on_drop(true);
    command
}

async fn run(server: &TestServer, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(server).args(arguments).output();
    let output = timeout(DEADLINE, output).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_login_waits_for_the_redirect_even_if_stdin_is_closed() {
    let server = TestServer::start().await;
    let mcp = server.mcp();
    let mut login = Login::start(&server, &[mcp.as_str()]).await;
    drop(login.stdin.take());
    let back = browser::redirect_of(&login.url).await;
    let page = browser::get(&back).await;
    assert_eq!(page.status(), 200);
    let (code, line) = login.end().await;
    assert_eq!(code, Some(0));
    assert!(line.contains(mcp.as_str()), "{line}");
    assert!(server.sign_in().token().await.unwrap().is_some());
    let (code, _) = run(&server, &["logout", mcp.as_str()]).await;
    assert_eq!(code, Some(0));
    assert!(server.state().valid_tokens.is_empty());
    assert_eq!(server.sign_in().token().await, Ok(None));
}

/// There is no bus, so there is no Secret Service.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_a_keychain_the_tokens_are_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = TestServer::start().await;
    let mut login = command(&server)
        .args(["login", "--no-browser", server.mcp().as_str()])
        .env_remove("MCP_PROXY_TOKEN_STORE")
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/does/not/exist")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
    let url = timeout(DEADLINE, lines.next_line()).await.unwrap();
    let url = Url::parse(&url.unwrap().unwrap()).unwrap();
    let back = browser::redirect_of(&url).await;
    browser::get(&back).await;
    let status = timeout(DEADLINE, login.wait()).await.unwrap();
    assert!(status.unwrap().success());
    let file = server.folder().join("mcp-proxy/tokens.json");
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        std::fs::read_to_string(file)
            .unwrap()
            .contains("canary-access")
    );
}

#[tokio::test]
async fn a_pasted_redirect_signs_in_and_other_lines_do_no_harm() {
    let server = TestServer::start().await;
    let mcp = server.mcp();
    let scopes = ["--scope", "a b", "--scope", "c", mcp.as_str()];
    let mut login = Login::start(&server, &scopes).await;
    let back = browser::redirect_of(&login.url).await;
    let mut stdin = login.stdin.take().unwrap();
    let lines = format!("\nhello\nhttp://127.0.0.1:1/callback?code=x&state=y\n{back}\n");
    stdin.write_all(lines.as_bytes()).await.unwrap();
    let (code, _) = login.end().await;
    assert_eq!(code, Some(0));
    assert_eq!(server.seen("/authorize")[0].form["scope"], "read a b c");
}

#[tokio::test]
async fn a_server_of_the_config_is_signed_in_to_by_its_name() {
    let server = TestServer::start().await;
    let config = server.folder().join("config.json");
    let auth = serde_json::json!({"client-id": "by-hand", "client-secret": "canary-by-hand", "scopes": ["extra"]});
    let entry = serde_json::json!({"url": server.mcp(), "mcp-proxy": {"auth": auth}});
    let json = serde_json::json!({"mcpServers": {"one": entry}});
    std::fs::write(&config, json.to_string()).unwrap();
    let config = config.to_str().unwrap();
    let login = Login::start(&server, &["one", "--config", config]).await;
    let back = browser::redirect_of(&login.url).await;
    browser::get(&back).await;
    let (code, line) = login.end().await;
    assert_eq!(code, Some(0));
    assert!(line.contains(server.mcp().as_str()), "{line}");
    let asked = &server.seen("/authorize")[0].form;
    assert_eq!(
        (&*asked["client_id"], &*asked["scope"]),
        ("by-hand", "read extra")
    );
    let (code, text) = run(&server, &["logout", "two", "--config", config]).await;
    assert_eq!(code, Some(1));
    assert!(text.contains("one"), "{text}");
}

#[tokio::test]
async fn an_entry_with_a_header_of_its_own_is_not_signed_in_to() {
    let server = TestServer::start().await;
    let config = server.folder().join("config.json");
    let headers = serde_json::json!({"Authorization": "Bearer canary"});
    let entry = serde_json::json!({"url": server.mcp(), "headers": headers});
    let json = serde_json::json!({"mcpServers": {"one": entry}});
    std::fs::write(&config, json.to_string()).unwrap();
    let config = config.to_str().unwrap();
    let (code, text) = run(&server, &["login", "one", "--config", config]).await;
    assert_eq!(code, Some(1));
    assert!(!text.contains("canary"), "{text}");
    assert!(server.state().seen.is_empty());
}

#[tokio::test]
async fn a_login_that_fails_says_why_in_one_line() {
    let server = TestServer::start().await;
    server.replace("/register", authorization_server::Answer::empty(404));
    let (code, text) = run(&server, &["login", "--no-browser", server.mcp().as_str()]).await;
    assert_eq!(code, Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
    let (code, text) = run(&server, &["login", "http://mcp.example.com/mcp"]).await;
    assert_eq!(code, Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn the_browser_gets_the_url_as_its_only_argument() {
    let server = TestServer::start().await;
    let opener = server.folder().join("opener");
    std::fs::write(
        &opener,
        "#!/bin/sh\nprintf '%s' \"$1\" > \"$0.new\"\nmv \"$0.new\" \"$0.url\"\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&opener, mode).unwrap();
    let mcp = server.mcp();
    let login = command(&server)
        .args(["login", mcp.as_str()])
        .env("BROWSER", &opener)
        .stdin(Stdio::null())
        .output();
    let browsing = async {
        let path = server.folder().join("opener.url");
        let url = loop {
            match tokio::fs::read_to_string(&path).await {
                Ok(text) => break Url::parse(&text).unwrap(),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let back = browser::redirect_of(&url).await;
        browser::get(&back).await
    };
    let both = async { tokio::join!(login, browsing) };
    let (output, page) = timeout(DEADLINE, both).await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(output.unwrap().status.success());
}

#[tokio::test]
async fn servers_of_one_name_are_told_apart_without_their_secrets() {
    let server = TestServer::start().await;
    let mut flags = vec!["login".to_owned(), "one".to_owned()];
    for number in 1..=2 {
        let file = server.folder().join(format!("config{number}.json"));
        let url = format!("https://me:canary@{number}.example/mcp?key=canary");
        let json = serde_json::json!({"mcpServers": {"one": {"url": url}}});
        std::fs::write(&file, json.to_string()).unwrap();
        flags.extend(["--config".to_owned(), file.to_str().unwrap().to_owned()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (code, text) = run(&server, &flags).await;
    assert_eq!(code, Some(1));
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn the_url_of_a_proxy_signs_in_to_the_server_behind_it() {
    let server = TestServer::start().await;
    let folders = ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"];
    let environment = folders.map(|name| (name, server.folder().to_owned()));
    let mcp = server.mcp();
    let flags = [
        "proxy",
        "--no-record",
        "--listen",
        "http",
        "--listen-port",
        "0",
        mcp.as_str(),
    ];
    let proxy = ListeningProgram::start_with(&flags, &environment);
    let url = format!("http://{}{}", proxy.address, proxy.path);
    let login = Login::start(&server, &[&url]).await;
    let back = browser::redirect_of(&login.url).await;
    browser::get(&back).await;
    let (code, line) = login.end().await;
    assert_eq!(code, Some(0));
    assert!(line.contains(mcp.as_str()), "{line}");
    assert!(server.sign_in().token().await.unwrap().is_some());
}
