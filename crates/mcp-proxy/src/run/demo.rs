//! `demo`: a scripted client, the real proxy, the embedded server, and the terminal UI on it; without a terminal a list of
//! what crosses.
//!
//! The server is our own binary started again (`demo-server stdio`) under the supervisor, the messages take the
//! ordinary way, and the list is read back from the record while it grows: what is seen is what was recorded.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_core::{DEFAULT_MEMORY_BUDGET, HoldOptions, Link, ProxyRun, RunOptions, carry};
use mcp_proxy_demo::{ScriptEra, run_script, serve_http, serve_stdio};
use mcp_proxy_session::{
    CredentialRedaction, RecordErrorPolicy, RecordLocation, RecordOptions, SessionRecord,
};
use mcp_proxy_transport::process::ServerCommand;
use mcp_proxy_transport::{LineReader, LineWriter};
use mcp_proxy_tui::ProxyOwner;
use mcp_proxy_wire::Side;
use tokio::sync::oneshot;

use super::proxy::{RunControl, carry_options, child, open, open_control};
use super::runtime;
use super::sessions::table::MessageTable;
use super::tui;
use crate::cli::{DemoArgs, DemoServerArgs, DemoTransport};
use crate::config::{ClientEndpoint, Config, RecordConfig, RunLimits, Target, supervisor};
use crate::printer;

const MESSAGE_MAX: usize = 64 << 20;
/// What the pipe between the script and the proxy holds.
const PIPE_BYTES: usize = 64 << 10;
/// Why a session ended that was not played to its end.
const LEFT: &str = "the demo was left";
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Plays the demo.
pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let path = runtime().context("cannot start")?.block_on(play(args))?;
    // Named as it was started: after `cargo run` it is not in the PATH.
    let program = std::env::args()
        .next()
        .unwrap_or_else(|| "mcp-proxy".to_owned());
    let path = path.display();
    printer::say(&format!(
        "\nThat was an MCP session through the proxy. The record: {path}\n\n\
         What to type next:\n  \
         {program} inspect {path}\n      the same list again; --seq 12 shows one message in full\n  \
         {program} export {path} --output-format markdown\n      a report of it\n  \
         {program} -- npx -y @modelcontextprotocol/server-everything\n      put it in front of a real server: \
         this is what goes into a client's config"
    ));
    Ok(ExitCode::SUCCESS)
}

async fn play(args: &DemoArgs) -> Result<std::path::PathBuf> {
    let config = config(args)?;
    let Target::Command(command) = &config.target else {
        anyhow::bail!("the demo has no server");
    };
    let recording = open(&config)?;
    let path = recording
        .about
        .path
        .clone()
        .context("the demo has no record")?;
    let run = ProxyRun::new(RunOptions {
        recorder: recording.recorder,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let connection = run.connect(config.client(), config.target.peer());
    let server = child(&config, command).link(&connection)?;
    let (client_end, proxy_end) = tokio::io::duplex(PIPE_BYTES);
    let (from_client, to_client) = tokio::io::split(proxy_end);
    let client = Link::new(
        LineReader::new(from_client, Side::Client, MESSAGE_MAX, run.memory()),
        LineWriter::new(to_client, Side::Client),
    );
    let carrying = async {
        let options = carry_options(config.limits);
        let end = carry(&connection, client, server, options, std::future::pending()).await;
        connection.close(end.text());
        end
    };
    let (reader, writer) = tokio::io::split(client_end);
    let pace = Duration::from_millis(args.pace);
    let script = run_script(reader, writer, ScriptEra::Legacy, pace, |_| {});
    let control = match !args.plain && tui::has_terminal("--plain") {
        true => open_control(&config, &run, &recording.about),
        false => None,
    };
    let (ended, end) = oneshot::channel();
    let playing = async {
        let (played, carried) = tokio::join!(script, carrying);
        let _ = ended.send(());
        (played, carried)
    };
    let shown = async {
        match &control {
            Some(own) => show_ui(own, args, end).await,
            None => show(&path, end).await,
        }
    };
    // In a box, so that it can be dropped before the record ends.
    let mut playing = Box::pin(playing);
    tokio::pin!(shown);
    let played = tokio::select! {
        (played, carried) = &mut playing => {
            let shown = shown.await;
            run.end(carried.text());
            shown?;
            played
        }
        // A user who leaves early does not wait for the rest, or for what is held.
        left = &mut shown => {
            // The messages that are held are dropped with it, and the record says so.
            drop(playing);
            connection.close(LEFT);
            run.end(LEFT);
            left?;
            return Ok(path.clone());
        }
    };
    played.context("the demo's client did not get what it expected")?;
    Ok(path.clone())
}

/// Shows the terminal UI until the user leaves. The session can be looked at, and sent again, for as long as that.
async fn show_ui(own: &RunControl, args: &DemoArgs, mut end: oneshot::Receiver<()>) -> Result<()> {
    let editor = tui::EditorFlag::default();
    let ui = tui::start_in_background(own.socket.clone(), args.tui, ProxyOwner::Demo, editor)?;
    let mut over = false;
    while !ui.is_over() {
        tokio::select! {
            _ = &mut end, if !over => {
                over = true;
                printer::say_while_running(
                    "the demo's session is over: look around (F1 shows the keys), q quits",
                );
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = own.control.wait_for_shutdown_request() => break,
        }
    }
    Ok(())
}

/// Prints the record's rows as they come.
async fn show(path: &Path, mut end: oneshot::Receiver<()>) -> Result<()> {
    let mut session = SessionRecord::open(path)?;
    let mut table = MessageTable::new(printer::colours());
    let mut shown = 0;
    loop {
        let over = tokio::select! {
            _ = &mut end => true,
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        session.refresh()?;
        let mut out = printer::stdout_writer();
        while shown < session.len() {
            table.row(&session, shown, &mut out)?;
            shown += 1;
        }
        out.flush()?;
        if over {
            return Ok(());
        }
    }
}

fn config(args: &DemoArgs) -> Result<Config> {
    let program = std::env::current_exe().context("cannot find our own binary")?;
    let place = match &args.session_file {
        Some(path) => RecordLocation::File(std::path::absolute(path)?),
        None => RecordLocation::Default,
    };
    Ok(Config {
        target: Target::Command(ServerCommand {
            program: program.into(),
            args: vec!["demo-server".into(), "stdio".into()],
            ..ServerCommand::default()
        }),
        listen: ClientEndpoint::InProcess("demo"),
        replay_of: None,
        record: Some(RecordConfig {
            place,
            // What is shown is the record: without one there is no demo.
            options: RecordOptions {
                on_error: RecordErrorPolicy::Stop,
                ..RecordOptions::default()
            },
            export: None,
        }),
        limits: RunLimits {
            message: MESSAGE_MAX,
            memory: DEFAULT_MEMORY_BUDGET,
            sessions: 1,
            requests: 1,
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(60),
        },
        pass_noise: false,
        reconnect: false,
        quiet: true,
        escapes_stderr: false,
        control: true,
        tui: None,
        masks: CredentialRedaction::default(),
        redaction: None,
        hold: HoldOptions::default(),
        breakpoints: Vec::new(),
        tools: Arc::default(),
        sign_ins: crate::config::SignInStore::default(),
        supervisor: supervisor()?,
        rules: None,
    })
}

/// Runs the embedded server by itself.
pub fn serve(args: &DemoServerArgs) -> Result<ExitCode> {
    runtime().context("cannot start")?.block_on(async {
        match args.transport {
            DemoTransport::Stdio => serve_stdio().await?,
            DemoTransport::Http => {
                let socket = tokio::net::TcpListener::bind(("127.0.0.1", args.port))
                    .await
                    .with_context(|| format!("cannot listen on port {}", args.port))?;
                printer::say_while_running(&format!(
                    "listening on http://{}/mcp",
                    socket.local_addr()?
                ));
                let stop = async {
                    drop(tokio::signal::ctrl_c().await);
                };
                serve_http(socket, stop).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}
