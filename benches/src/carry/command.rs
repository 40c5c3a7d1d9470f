//! The command line of each contender in front of one server.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::{CarryBench, Pairing};
use crate::rounds::{Contender, Variant};

impl CarryBench<'_> {
    /// `files` is the contender's own folder, `port` the one to listen on for those that cannot pick one.
    pub(super) fn command(
        &self,
        who: Contender,
        pairing: Pairing,
        files: &Path,
        port: u16,
    ) -> Result<Command> {
        let mut command = Command::new(self.program(who)?);
        let port = port.to_string();
        match who {
            Contender::Direct => return Ok(self.bench.canned_server(["stdio"])),
            Contender::Nginx => {
                let configuration = files.join("nginx.conf");
                fs::write(
                    &configuration,
                    nginx_conf(files, &port, self.server.address),
                )?;
                command.args(["-e", "stderr", "-p"]).arg(files);
                command.arg("-c").arg(configuration);
                return Ok(command);
            }
            Contender::Npm => {
                command.args(["--host", "127.0.0.1", "--server", "stream", "--port", &port]);
            }
            Contender::Pypi if pairing.server_is_http() => {
                command.args(["--log-level", "ERROR", "--transport", "streamablehttp"]);
                command.arg(self.server_url());
                return Ok(command);
            }
            Contender::Pypi => {
                command.args([
                    "--log-level",
                    "ERROR",
                    "--host",
                    "127.0.0.1",
                    "--port",
                    &port,
                ]);
            }
            Contender::Ours(variant) | Contender::Before(variant) => {
                self.add_proxy_flags(&mut command, variant, pairing, files);
            }
            Contender::Crate => bail!("it stands in front of several servers"),
        }
        if !pairing.server_is_http() {
            command.arg("--").arg(&self.bench.own);
            command.args(["canned-server", "stdio"]);
        }
        Ok(command)
    }

    fn add_proxy_flags(
        &self,
        command: &mut Command,
        variant: Variant,
        pairing: Pairing,
        files: &Path,
    ) {
        command.arg("proxy").env("XDG_RUNTIME_DIR", files);
        if variant == Variant::Recording {
            command
                .arg("--session-file")
                .arg(files.join("record.jsonl"));
        } else {
            // With a control socket a run keeps its messages for viewers; that is a record too.
            command.args(["--no-record", "--no-control"]);
        }
        if pairing.client_is_http() {
            command.args(["--listen", "http", "--listen-port", "0"]);
        } else {
            command.args(["--listen", "stdio"]);
        }
        if pairing.server_is_http() {
            command.args(["--transport", "streamable-http", "--target-url"]);
            command.arg(self.server_url());
        }
    }

    fn server_url(&self) -> String {
        format!("http://{}{}", self.server.address, self.server.path)
    }
}

/// nginx as a plain reverse proxy that does well: a worker a core, kept connections to the server, buffers of 64 KB,
/// nothing logged, nothing on disk.
fn nginx_conf(folder: &Path, port: &str, server: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
worker_processes auto;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream server {{
        server {server};
        keepalive 64;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 256m;
        location / {{
            proxy_pass http://server;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffer_size 64k;
            proxy_buffers 16 64k;
            proxy_busy_buffers_size 128k;
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"
    )
}
