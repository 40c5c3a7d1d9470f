//! `login`: a person signs in to a server, in a browser.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use mcp_proxy_auth::{
    AuthError, PendingLogin, ServerSignIn, SignInFacts, SignInState, open_browser,
};
use mcp_proxy_wire::terminal_text::sanitize;
use tokio::sync::mpsc;
use url::Url;

use super::server::find;
use super::{beginning_failed, until_text};
use crate::cli::sign_in::LoginArgs;
use crate::printer;
use crate::run::runtime;

/// Signs in.
pub fn run(args: &LoginArgs) -> Result<ExitCode> {
    let server = find(&args.server)?;
    if server.has_credentials {
        bail!(
            "{}: its entry has an Authorization header, which is sent instead of a sign-in; remove the header first",
            args.server.server
        );
    }
    let sign_in = server.sign_in;
    let runtime = runtime().context("cannot start")?;
    let facts = runtime.block_on(log_in(args, &sign_in))?;
    let mut out = printer::stdout_writer();
    writeln!(out, "{}", signed_in(sign_in.server(), &facts))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn log_in(args: &LoginArgs, sign_in: &ServerSignIn) -> Result<SignInFacts> {
    if sign_in.needs_no_person() {
        sign_in.token().await?;
        return match sign_in.state() {
            SignInState::SignedIn(facts) => Ok(facts),
            SignInState::SignedOut => bail!("the authorization server gave no token"),
        };
    }
    let scopes = args.scope.iter().flat_map(|text| text.split_whitespace());
    let scopes: Vec<String> = scopes.map(str::to_owned).collect();
    let login = sign_in.begin(&scopes).await;
    let mut login = login.map_err(|error| anyhow!(beginning_failed(&error)))?;
    let showing = show_page(args, sanitize(sign_in.server()), login.url().clone());
    let lines = match args.no_browser {
        true => stdin_lines(),
        false => mpsc::channel(1).1,
    };
    // A browser may be back before the program that opened it has ended.
    let waiting = async { tokio::try_join!(wait(&mut login, lines), showing) };
    match tokio::time::timeout(args.timeout, waiting).await {
        Ok(done) => done.map(|(facts, ())| facts),
        Err(_) => bail!(
            "nobody signed in within {} s; run the command again",
            args.timeout.as_secs()
        ),
    }
}

/// Opens the page to sign in on, or says where it is.
async fn show_page(args: &LoginArgs, host: String, url: Url) -> Result<()> {
    if args.no_browser {
        printer::say(&format!(
            "Open this URL in any browser to sign in to {host}:"
        ));
        print_url(&url)?;
        printer::say(
            "If the browser then cannot reach this machine, paste the URL of the page that it ends on here:",
        );
        return Ok(());
    }
    let page = url.clone();
    match tokio::task::spawn_blocking(move || open_browser(&page)).await? {
        Ok(()) => printer::say(&format!(
            "Opened your browser to sign in to {host}. If no page appears, open this URL:"
        )),
        Err(error) => printer::say(&format!("{error}. Open this URL to sign in to {host}:")),
    }
    print_url(&url)
}

/// Waits for the redirect, or for its URL on stdin. A line that is not that URL does no harm.
async fn wait(login: &mut PendingLogin, mut lines: mpsc::Receiver<String>) -> Result<SignInFacts> {
    let mut takes_lines = true;
    loop {
        tokio::select! {
            facts = login.redirected() => return Ok(facts?),
            line = lines.recv(), if takes_lines => match line {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => match login.pasted(line.trim()).await {
                    Ok(facts) => return Ok(facts),
                    Err(error @ AuthError::NotTheRedirect { .. }) => {
                        printer::say(&format!("mcp-proxy: {error}"));
                    }
                    Err(error) => return Err(error.into()),
                },
                None => takes_lines = false,
            },
        }
    }
}

/// The lines of stdin, read on a thread that ends with the program.
fn stdin_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn print_url(url: &Url) -> Result<()> {
    let mut out = printer::stdout_writer();
    writeln!(out, "{url}")?;
    Ok(out.flush()?)
}

/// One line: where, as whom, until when.
fn signed_in(server: &str, facts: &SignInFacts) -> String {
    let account = match &facts.account {
        Some(account) => format!(" as {}", sanitize(account)),
        None => String::new(),
    };
    let until = until_text(facts);
    format!("signed in to {}{account}, {until}", sanitize(server))
}
