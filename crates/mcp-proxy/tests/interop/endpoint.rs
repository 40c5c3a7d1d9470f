//! What a client is pointed at: a server itself, or the proxy in front of it, over any of the three transports.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::fixtures::{self, PROXY};
use crate::process::RunningProgram;
use crate::texts;

/// A transport as the tests name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointKind {
    Stdio,
    Http,
    Sse,
}

/// A command to start or a URL to dial, kept alive as long as this value.
pub struct TestEndpoint {
    pub kind: EndpointKind,
    pub address: EndpointAddress,
    _running: Vec<RunningProgram>,
    directory: Option<TempDir>,
}

#[derive(Clone, Debug)]
pub enum EndpointAddress {
    Command(Vec<String>),
    Url(String),
}

/// The official `server-everything`, which knows the legacy era only.
pub fn everything(kind: EndpointKind) -> TestEndpoint {
    let (node, program) = (
        fixtures::node(),
        fixtures::npm_program("mcp-server-everything"),
    );
    let (word, path) = match kind {
        EndpointKind::Stdio => return TestEndpoint::command(vec![node, program, "stdio".into()]),
        EndpointKind::Http => ("streamableHttp", "mcp"),
        EndpointKind::Sse => ("sse", "sse"),
    };
    // It reports the port it was given and not the one it got, so port 0 is no use.
    let port = free_port();
    let running = RunningProgram::start(
        fixtures::command(&node, &[&program, word]).env("PORT", port.to_string()),
    );
    running.wait_for(&format!("port {port}"));
    TestEndpoint::url(
        kind,
        format!("http://127.0.0.1:{port}/{path}"),
        vec![running],
    )
}

/// Our server on rmcp with the suite's fixtures. It knows both eras and no HTTP+SSE.
pub fn demo(kind: EndpointKind) -> TestEndpoint {
    let transport = match kind {
        EndpointKind::Stdio => "stdio",
        EndpointKind::Http => "http",
        EndpointKind::Sse => panic!("rmcp has no HTTP+SSE"),
    };
    let server = fixtures::conformance_server();
    if kind == EndpointKind::Stdio {
        return TestEndpoint::command(vec![server, transport.into()]);
    }
    let running = RunningProgram::start(&mut fixtures::command(&server, &[transport]));
    let url = running.wait_for(texts::LISTENING_ON);
    TestEndpoint::url(kind, url, vec![running])
}

/// An era, for a server that knows only one.
#[derive(Clone, Copy, Debug)]
pub enum OnlyEra {
    Legacy,
    Modern,
}

/// Our server on rmcp over HTTP, made to know one era.
pub fn one_era_demo(era: OnlyEra) -> TestEndpoint {
    let word = match era {
        OnlyEra::Legacy => "legacy",
        OnlyEra::Modern => "modern",
    };
    let server = demo(EndpointKind::Http);
    let script = fixtures::peer("one_era.mjs");
    let running = RunningProgram::start(&mut fixtures::command(
        &fixtures::node(),
        &[&script, word, server.to_url()],
    ));
    let url = running.wait_for(texts::LISTENING_ON);
    let all = std::iter::once(running).chain(server._running).collect();
    TestEndpoint::url(EndpointKind::Http, url, all)
}

/// The other official servers, which have tools only. Each keeps what it writes in a folder of the test.
pub fn filesystem(folder: &Path) -> TestEndpoint {
    let program = fixtures::npm_program("mcp-server-filesystem");
    let folder = folder.to_str().expect("a temporary name is UTF-8");
    TestEndpoint::command(vec![fixtures::node(), program, folder.into()])
}

/// See [`filesystem`].
pub fn memory(folder: &Path) -> TestEndpoint {
    let program = fixtures::npm_program("mcp-server-memory");
    let file = format!("MEMORY_FILE_PATH={}", folder.join("memory.jsonl").display());
    TestEndpoint::command(vec!["env".into(), file, fixtures::node(), program])
}

/// Our own small server for the agent programs.
pub fn probe() -> TestEndpoint {
    TestEndpoint::command(vec![fixtures::python(), fixtures::agent("probe_server.py")])
}

/// A server of the hub: its name, how it is reached, and the hub's options for it.
pub struct MountedServer {
    pub name: &'static str,
    pub endpoint: TestEndpoint,
    pub options: Value,
}

/// The hub in front of these servers, recording.
pub fn hub(servers: Vec<MountedServer>, expose: &str, listen: EndpointKind) -> TestEndpoint {
    hub_with(&[], servers, expose, listen)
}

/// A hub that offers 2026-07-28 to clients that know both eras, whatever its servers speak.
pub fn modern_hub(servers: Vec<MountedServer>, expose: &str, listen: EndpointKind) -> TestEndpoint {
    hub_with(&["--era", "modern"], servers, expose, listen)
}

fn hub_with(
    flags: &[&str],
    servers: Vec<MountedServer>,
    expose: &str,
    listen: EndpointKind,
) -> TestEndpoint {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut entries: Map<String, Value> = servers
        .iter()
        .map(|server| (server.name.to_owned(), server.entry()))
        .collect();
    if entries.is_empty() {
        // A file without servers is refused.
        let nobody = json!({ "command": "true", "disabled": true });
        entries.insert("nobody".to_owned(), nobody);
    }
    let path = |name: &str| {
        let path = directory.path().join(name);
        path.to_str().expect("a temporary name is UTF-8").to_owned()
    };
    let config = path("config.json");
    let text = json!({ "mcpServers": entries }).to_string();
    std::fs::write(&config, text).expect("the config file can be written");
    let mut command: Vec<String> = [PROXY, "serve", "--headless", "--config"]
        .map(String::from)
        .to_vec();
    command.extend([config, "--expose".into(), expose.into()]);
    command.extend(["--session-file".into(), path("session.jsonl")]);
    command.extend(["--listen".into(), listen.word().into()]);
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let behind = servers
        .into_iter()
        .flat_map(|server| server.endpoint._running)
        .collect();
    TestEndpoint::listening(listen, command, behind, directory)
}

impl MountedServer {
    fn entry(&self) -> Value {
        let mut entry = match &self.endpoint.address {
            EndpointAddress::Url(url) => json!({ "url": url }),
            EndpointAddress::Command(command) => {
                json!({ "command": command[0], "args": command[1..] })
            }
        };
        entry["mcp-proxy"] = self.options.clone();
        entry
    }
}

impl EndpointKind {
    /// As `--listen` has it.
    fn word(self) -> &'static str {
        match self {
            EndpointKind::Stdio => "stdio",
            EndpointKind::Http => "http",
            EndpointKind::Sse => "sse",
        }
    }
}

impl TestEndpoint {
    /// The proxy in front of this endpoint, recording, with `listen` towards the client.
    pub fn behind_proxy(self, listen: EndpointKind) -> TestEndpoint {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let command = self.proxy_command(listen, directory.path().join("session.jsonl"));
        TestEndpoint::listening(listen, command, self._running, directory)
    }

    /// Our own program with these flags, in front of programs that run already.
    fn listening(
        listen: EndpointKind,
        mut command: Vec<String>,
        behind: Vec<RunningProgram>,
        directory: TempDir,
    ) -> TestEndpoint {
        if listen == EndpointKind::Stdio {
            return TestEndpoint {
                kind: listen,
                address: EndpointAddress::Command(command),
                _running: behind,
                directory: Some(directory),
            };
        }
        // Before the server's own command, if there is one.
        command.splice(2..2, ["--listen-port", "0"].map(String::from));
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let proxy = RunningProgram::start(&mut fixtures::command(&command[0], &arguments));
        let url = proxy.wait_for(texts::LISTENING_ON);
        // The proxy comes first: it goes before the server that it talks to.
        let running = std::iter::once(proxy).chain(behind).collect();
        TestEndpoint {
            kind: listen,
            address: EndpointAddress::Url(url),
            _running: running,
            directory: Some(directory),
        }
    }

    fn proxy_command(&self, listen: EndpointKind, session_file: PathBuf) -> Vec<String> {
        let transport = match self.kind {
            EndpointKind::Stdio => "stdio",
            EndpointKind::Http => "streamable-http",
            EndpointKind::Sse => "sse",
        };
        let mut command: Vec<String> = [
            PROXY,
            "proxy",
            "--transport",
            transport,
            "--listen",
            listen.word(),
        ]
        .map(String::from)
        .to_vec();
        command.push("--session-file".into());
        command.push(
            session_file
                .to_str()
                .expect("a temporary name is UTF-8")
                .into(),
        );
        match &self.address {
            EndpointAddress::Url(url) => command.extend(["--target-url".into(), url.clone()]),
            EndpointAddress::Command(server) => {
                command.push("--".into());
                command.extend(server.iter().cloned());
            }
        }
        command
    }

    /// What the proxy or the hub has recorded so far, line by line.
    pub fn record(&self) -> Vec<Value> {
        let directory = self.directory.as_ref().expect("it records");
        let text = std::fs::read_to_string(directory.path().join("session.jsonl"))
            .expect("the record can be read");
        let lines = text.lines().map(serde_json::from_str);
        lines.map(|line| line.expect("a line is JSON")).collect()
    }

    /// The URL of an endpoint that has one.
    pub fn to_url(&self) -> &str {
        match &self.address {
            EndpointAddress::Url(url) => url,
            EndpointAddress::Command(_) => panic!("a stdio endpoint has no URL"),
        }
    }

    fn command(command: Vec<String>) -> TestEndpoint {
        TestEndpoint {
            kind: EndpointKind::Stdio,
            address: EndpointAddress::Command(command),
            _running: Vec::new(),
            directory: None,
        }
    }

    fn url(kind: EndpointKind, url: String, running: Vec<RunningProgram>) -> TestEndpoint {
        TestEndpoint {
            kind,
            address: EndpointAddress::Url(url),
            _running: running,
            directory: None,
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a loopback socket");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
}
