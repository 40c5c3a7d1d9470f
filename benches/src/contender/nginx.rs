//! nginx as the plain reverse proxy that HTTP→HTTP is judged against: it knows nothing of MCP.
//!
//! Set up to do well: a worker a core, kept connections to the server, buffers of 64 KB, nothing logged,
//! nothing spilled to disk.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

/// The nginx that a shell would find, or that a system path holds.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders
        .map(|folder| folder.join("nginx"))
        .find(|program| program.is_file())
}

pub fn command(program: &Path, folder: &Path, port: &str, server: SocketAddr) -> Result<Command> {
    let configuration = folder.join("nginx.conf");
    fs::write(&configuration, text(folder, port, server))?;
    let mut command = Command::new(program);
    command
        .arg("-e")
        .arg("stderr")
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(configuration);
    Ok(command)
}

fn text(folder: &Path, port: &str, server: SocketAddr) -> String {
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
