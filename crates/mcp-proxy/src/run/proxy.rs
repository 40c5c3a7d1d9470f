//! `proxy`: puts the parts together and waits for the end.

mod control;
mod dial;
mod health;
mod listen;
mod record;
mod rules;
mod signals;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_core::intercept::NewBreakpoint;
use mcp_proxy_core::{CarryEnd, CarryOptions, Link, ProxyRun, RunOptions, carry};
use mcp_proxy_transport::process::ProgramProblem;
use mcp_proxy_transport::stdio;
use mcp_proxy_tui::ProxyOwner;
use mcp_proxy_wire::Transport;

use crate::cli::ProxyArgs;
use crate::config::{ClientEndpoint, Config, RunLimits, Target};
use crate::printer;
use crate::run::{UsageError, runtime, runtime_with, serve, tui};
use signals::StopRequest;

pub use control::{RunControl, open as open_control};
pub use dial::{child, dial, dial_named, words};
pub use record::{export, open};
pub use signals::{HangupMeaning, RunSignals, on_hangup};

/// Sessions have this long to stop their servers when the proxy ends.
const STOP_DEADLINE: Duration = Duration::from_secs(8);
/// Files that are still being written for viewers have this long to be finished.
const FILES_DEADLINE: Duration = Duration::from_secs(3);

/// Runs the proxy until its client ends, its server fails, or a signal comes.
pub fn run(args: &ProxyArgs) -> Result<ExitCode> {
    let config = Config::new(args).map_err(|error| UsageError(format!("{error:#}")))?;
    run_with(&config)
}

/// The same, with the flags checked.
pub fn run_with(config: &Config) -> Result<ExitCode> {
    // If a guard is killed, what it left behind becomes ours to clean up. Where that is not possible it is left out.
    let _ = mcp_proxy_transport::process::become_subreaper();
    printer::background::start();
    let runtime = match &config.target {
        Target::Hub(hub) => runtime_with(hub.threads),
        Target::Relay(relay) => runtime_with(relay.threads),
        _ => runtime(),
    };
    let runtime = runtime.context("cannot start")?;
    let outcome = runtime.block_on(run_on(config));
    // A file that a viewer has us write may be on a file system that hangs: the end does not wait for that.
    runtime.shutdown_timeout(FILES_DEADLINE);
    outcome
}

async fn run_on(config: &Config) -> Result<ExitCode> {
    let signals =
        RunSignals::new(HangupMeaning::of(&config.target)).context("cannot watch for signals")?;
    if let (ClientEndpoint::Port { .. }, Some(problem)) = (&config.listen, server_problem(config)) {
        return Err(problem.into());
    }
    let recording = record::open(config)?;
    let run = ProxyRun::new(RunOptions {
        recorder: recording.recorder,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: config.pass_noise,
        hold: config.hold,
    });
    run.memory().set_limit(config.limits.memory);
    for filter in &config.breakpoints {
        let new = NewBreakpoint {
            filter: filter.clone(),
            ..NewBreakpoint::default()
        };
        run.intercept().add_breakpoint(new);
    }
    let target = control::shown_target(config, &recording.about);
    // A start that fails leaves no record behind: the last one is still that of a session.
    let _following =
        rules::follow(config, &run, &target).inspect_err(|_| run.discard_empty_record())?;
    let control = control::open(config, &run, &recording.about);
    let editor = tui::EditorFlag::default();
    let asked = control.as_ref().map(|own| Arc::clone(&own.control));
    let stop = signals.into_stop_request(asked, editor.clone());
    let mut again = stop.clone();
    let attach = control::notice(config, control.as_ref());
    let notices = [recording.warning.clone(), recording.notice, attach];
    let notices: Vec<_> = notices.into_iter().flatten().collect();
    let opens_tui = config.tui.is_some() && matches!(config.listen, ClientEndpoint::Port { .. });
    let mut tui = None;
    let open_tui = || {
        if let (Some(own), Some(args)) = (&control, config.tui)
            && opens_tui
            && tui::has_terminal("--headless")
        {
            let (socket, owner) = (own.socket.clone(), ProxyOwner::Here);
            tui = Some(tui::start_in_background(socket, args, owner, editor)?);
        }
        Ok(())
    };
    let outcome = match &config.listen {
        ClientEndpoint::Stdio => over_stdio(config, &run, stop, &notices).await,
        ClientEndpoint::Port { .. } => {
            listen::over_port(config, &run, stop, &notices, open_tui).await
        }
        ClientEndpoint::InProcess(name) => Err(anyhow::anyhow!("{name} brings its own link")),
    };
    if let Target::Hub(hub) = &config.target
        && let Some(driver) = hub.driver.get()
    {
        tokio::select! {
            () = driver.shut_down(STOP_DEADLINE) => {}
            // What still runs is killed with us.
            () = again.hurry() => {}
        }
    }
    let why = match &outcome {
        Ok(end) => end.why.clone(),
        Err(error) => format!("{error:#}"),
    };
    if outcome.is_err() {
        run.discard_empty_record();
    }
    run.end(&why);
    // Viewers that see the connection close find the whole record.
    drop(control);
    let had_screen = tui.is_some();
    drop(tui);
    let files = run.record_files();
    record::finish(&files, config.record.as_ref(), config.quiet)?;
    // What was said at the start about the record, the screen has hidden.
    let recorded = files.last().filter(|_| !config.quiet);
    let recorded = recorded.map(|path| format!("mcp-proxy: recorded to {}", path.display()));
    if let Some(text) = recorded.or(recording.warning).filter(|_| had_screen) {
        printer::say(&text);
    }
    outcome.map(|end| end.code)
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// For the record.
    pub why: String,
    /// For the shell.
    pub code: ExitCode,
}

async fn over_stdio(
    config: &Config,
    run: &Arc<ProxyRun>,
    mut stop: StopRequest,
    notices: &[String],
) -> Result<RunEnd> {
    if let Target::Hub(hub) = &config.target {
        serve::start(config, hub, run)?;
    }
    let dial = dial(config)?;
    let (client, _restore) = stdio::own_link(config.limits.message, run.memory())
        .context("cannot use stdin and stdout")?;
    notices.iter().for_each(|notice| printer::say(notice));
    if !config.quiet && !stdio::stdin_is_a_channel() {
        printer::say(
            "mcp-proxy: stdin is not a pipe, so no MCP client is talking; in a client's config it will be. \
             For HTTP clients add --listen http.",
        );
    }
    // The client is told in an answer, once it asks. A person is told now.
    let problem = server_problem(config);
    if let Some(problem) = &problem {
        printer::say(&format!("mcp-proxy: {problem}"));
    }
    let connection = run.connect(Transport::Stdio, config.target.peer());
    let server = match dial(Arc::clone(&connection)).await {
        Ok(link) => link,
        Err(end) => Link::dead(end),
    };
    let options = carry_options(config.limits);
    let mut stopped = None;
    let stop = async {
        stopped = Some(stop.wait().await);
        drain(config, stop).await;
    };
    let end = carry(&connection, client, server, options, stop).await;
    connection.close(end.text());
    Ok(match (end, stopped) {
        (_, Some(stopped)) => stopped,
        (CarryEnd::Failed(failure), None) => {
            if problem.is_none() {
                printer::say(&format!("mcp-proxy: {}", failure.text));
            }
            RunEnd {
                why: failure.text,
                code: ExitCode::FAILURE,
            }
        }
        (end, None) => RunEnd {
            why: end.text().to_owned(),
            code: match problem {
                Some(_) => ExitCode::FAILURE,
                None => ExitCode::SUCCESS,
            },
        },
    })
}

/// Lets the open calls of a hub finish.
async fn drain(config: &Config, mut stop: StopRequest) {
    if let Target::Hub(hub) = &config.target
        && let Some(driver) = hub.driver.get()
    {
        driver.drain(hub.drain, stop.hurry()).await;
    }
}

/// Why the server's command cannot be started, if that can be seen beforehand.
fn server_problem(config: &Config) -> Option<ProgramProblem> {
    match &config.target {
        Target::Command(command) => command.program_problem(),
        _ => None,
    }
}

/// Deadlines of a conversation.
pub fn carry_options(limits: RunLimits) -> CarryOptions {
    CarryOptions {
        stall: limits.stall,
        ..CarryOptions::default()
    }
}
