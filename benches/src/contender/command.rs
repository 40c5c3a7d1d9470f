//! The command line of each contender.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{BenchSetup, ContenderKind, TransportPair, nginx};
use crate::canned::AnswerSize;

impl BenchSetup {
    /// `files` is the contender's own folder, `port` the one to listen on, for those that need them.
    pub(super) fn command(
        &self,
        who: ContenderKind,
        shape: TransportPair,
        size: AnswerSize,
        files: Option<&Path>,
        port: u16,
    ) -> Result<Command> {
        let url = format!("http://{}/mcp", self.server);
        let port = port.to_string();
        match who {
            ContenderKind::Direct => Ok(self.server_command()),
            ContenderKind::Floor | ContenderKind::FloorModern => {
                Ok(self.proxy_flags(&self.own, "floor", shape, size, None))
            }
            ContenderKind::Proxy | ContenderKind::Modern => {
                Ok(self.proxy_flags(&self.proxy, "proxy", shape, size, None))
            }
            ContenderKind::Recording | ContenderKind::Viewed(_) => {
                Ok(self.proxy_flags(&self.proxy, "proxy", shape, size, files))
            }
            ContenderKind::Before | ContenderKind::BeforeRecording => {
                let program = self.before.as_deref().context("--before is not given")?;
                Ok(self.proxy_flags(program, "proxy", shape, size, files))
            }
            ContenderKind::Ruled => {
                let folder = files.context("a record needs a folder")?;
                let rules = folder.join("rules.toml");
                std::fs::write(&rules, rules_for_others())?;
                let mut command = Command::new(&self.proxy);
                command.args(["proxy", "--rules"]).arg(rules);
                Ok(self.flags(command, shape, size, files))
            }
            ContenderKind::Audited
            | ContenderKind::ProxyTool
            | ContenderKind::Dispatcher
            | ContenderKind::Spilling
            | ContenderKind::ServerAlone
            | ContenderKind::DuringSpills
            | ContenderKind::DuringTransfers
            | ContenderKind::Reading(_)
            | ContenderKind::TwoThreads
            | ContenderKind::Crate => {
                bail!("{} is not measured in front of one server", who.name())
            }
            ContenderKind::Nginx => {
                let program = self.nginx.as_deref().context("nginx is not installed")?;
                nginx::command(
                    program,
                    files.context("nginx needs a folder")?,
                    &port,
                    self.server,
                )
            }
            ContenderKind::Npm => {
                let mut command = Command::new(
                    self.npm
                        .as_deref()
                        .context("--npm-mcp-proxy is not given")?,
                );
                command.args([
                    "--host",
                    "127.0.0.1",
                    "--server",
                    "stream",
                    "--port",
                    &port,
                    "--",
                ]);
                command.arg(&self.own).args(["canned-server", "stdio"]);
                Ok(command)
            }
            ContenderKind::Pypi => {
                let mut command = Command::new(
                    self.pypi
                        .as_deref()
                        .context("--pypi-mcp-proxy is not given")?,
                );
                if shape.server_is_http() {
                    command.args([
                        "--log-level",
                        "ERROR",
                        "--transport",
                        "streamablehttp",
                        &url,
                    ]);
                } else {
                    command.args([
                        "--log-level",
                        "ERROR",
                        "--host",
                        "127.0.0.1",
                        "--port",
                        &port,
                        "--",
                    ]);
                    command.arg(&self.own).args(["canned-server", "stdio"]);
                }
                Ok(command)
            }
        }
    }

    fn server_command(&self) -> Command {
        let mut command = Command::new(&self.own);
        command.args(["canned-server", "stdio"]);
        command
    }

    /// The command line that mcp-proxy and the bare copy share.
    fn proxy_flags(
        &self,
        program: &Path,
        word: &str,
        shape: TransportPair,
        size: AnswerSize,
        files: Option<&Path>,
    ) -> Command {
        let mut command = Command::new(program);
        command.arg(word);
        self.flags(command, shape, size, files)
    }

    fn flags(
        &self,
        mut command: Command,
        shape: TransportPair,
        size: AnswerSize,
        files: Option<&Path>,
    ) -> Command {
        match files {
            // Without a record a run keeps its last messages in memory for viewers; that is a record too.
            None => command.args(["--no-record", "--no-control"]),
            // Its control socket in the same folder: that is where a viewer of ours looks, and nobody else's is near.
            Some(folder) => command
                .env("XDG_RUNTIME_DIR", folder)
                .arg("--session-file")
                .arg(folder.join("record.jsonl")),
        };
        if files.is_some() && size != AnswerSize::Small {
            command.args(["--durability", "none"]);
        }
        if shape.client_is_http() {
            command.args(["--listen", "http", "--listen-port", "0"]);
        } else {
            command.args(["--listen", "stdio"]);
        }
        if shape.server_is_http() {
            command.args(["--transport", "streamable-http", "--target-url"]);
            command.arg(format!("http://{}/mcp", self.server));
        } else {
            command
                .arg("--")
                .arg(&self.own)
                .args(["canned-server", "stdio"]);
        }
        command
    }
}

/// A thousand rules, by tool and by method, of which none is for a message of the load.
fn rules_for_others() -> String {
    let tools = (0..500).map(|n| format!("[[rule]]\ntool = \"other-{n}\"\ndrop = true\n"));
    let methods = (0..500).map(|n| format!("[[rule]]\nmethod = \"other/{n}\"\ndrop = true\n"));
    tools.chain(methods).collect()
}
