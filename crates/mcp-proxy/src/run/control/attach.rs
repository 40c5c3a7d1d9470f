//! `attach`: follows a running proxy line by line, and asks about what it holds.
//!
//! Rows go to stdout, as `inspect` prints them; questions and their answers go over stderr and stdin, so that rows can be
//! piped. Whatever happens here, the proxy keeps running.

mod feed;
mod hold_prompt;
mod keyboard;
mod keyboard_command;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_control::{
    ContinueRequest, ControlRequest, HelloRequest, HoldAction, HoldListRequest, HoldResolveRequest,
    InterceptGetRequest, InterceptSetRequest, ModeChange, Notice, Replacement, StepRequest,
    SubscribeRequest,
};
use mcp_proxy_transport::control::ControlNotification;
use mcp_proxy_transport::control::{ControlClient, ControlClientError, RunningProxy};
use mcp_proxy_wire::Message;

use super::choose_or_ask;
use crate::cli::control::AttachArgs;
use crate::cli::sessions::InspectArgs;
use crate::printer;
use crate::run::editor::{self, EditOutcome};
use crate::run::runtime;
use crate::run::sessions::ignore_broken_pipe;
use crate::run::tui::{self, UiSignals};
use feed::RowFeed;
use hold_prompt::HoldPrompt;
use keyboard::Keyboard;
use keyboard_command::{KeyboardCommand, ReplacementCheck};
use mcp_proxy_wire::terminal_text::sanitize;

/// What can be answered.
const CHOICES: &str = "[f]orward [m]odify [d]rop [e]rror (s step, c continue, q quit) > ";

/// Follows.
pub fn run(args: &AttachArgs) -> Result<ExitCode> {
    let running = choose_or_ask(args.id.as_deref())?;
    if !args.plain && tui::has_terminal("--plain") {
        return tui::attach(&running.socket, args.tui);
    }
    ignore_broken_pipe(
        runtime()
            .context("cannot start")?
            .block_on(Box::pin(follow(args, &running))),
    )
}

async fn follow(args: &AttachArgs, running: &RunningProxy) -> Result<ExitCode> {
    let mut client = ControlClient::connect(&running.socket).await?;
    let hello = HelloRequest {
        name: Some("attach".to_owned()),
    };
    let hello = client.call(&hello).await?;
    let inspect = InspectArgs::default();
    let feed = RowFeed::open(&inspect, &hello, args.last, &mut client).await?;
    client.call(&SubscribeRequest {}).await?;
    let mut viewer = PlainViewer {
        client,
        feed,
        running,
        keyboard: Keyboard::open(),
        signals: UiSignals::watch_editors(),
        asking: None,
        awaits_message: None,
        draft: None,
    };
    match viewer.run().await {
        Err(error) if is_gone(&error) => viewer.feed.finish()?,
        other => other?,
    }
    let Some((number, name)) = viewer.signals.end() else {
        return Ok(ExitCode::SUCCESS);
    };
    printer::say(&format!("mcp-proxy: stopped by {name}"));
    Ok(tui::code_of_signal(number))
}

/// A viewer that is attached.
struct PlainViewer<'a> {
    client: ControlClient,
    feed: RowFeed<'a>,
    running: &'a RunningProxy,
    keyboard: Option<Keyboard>,
    /// Those that come while an editor has the terminal.
    signals: UiSignals,
    /// The held message that was asked about.
    asking: Option<HoldPrompt>,
    /// The next line is the new message for it.
    awaits_message: Option<ReplacementCheck>,
    /// The last new message, and for which hold: if it is refused, it is not to be written twice.
    draft: Option<(u64, Vec<u8>)>,
}

/// What an event leads to.
enum ViewerEvent {
    Event(Result<ControlNotification, ControlClientError>),
    Line(Option<String>),
}

impl PlainViewer<'_> {
    /// Until the proxy ends (an error that says so) or the person has enough.
    async fn run(&mut self) -> Result<()> {
        loop {
            let next = tokio::select! {
                told = self.client.notice() => ViewerEvent::Event(told),
                line = Keyboard::line(&mut self.keyboard) => ViewerEvent::Line(line),
            };
            match next {
                ViewerEvent::Event(told) => self.take(&told?).await?,
                ViewerEvent::Line(None) => self.keyboard = None,
                ViewerEvent::Line(Some(line)) => {
                    if self.decide(&line).await? == ShouldQuit::Yes {
                        return Ok(());
                    }
                    if let Some(keyboard) = &self.keyboard {
                        keyboard.read_on();
                    }
                }
            }
        }
    }

    async fn take(&mut self, told: &ControlNotification) -> Result<()> {
        self.feed.show(&mut self.client).await?;
        if let Some(Notice::Holds(_)) = told.notice {
            self.look_again().await?;
        }
        Ok(())
    }

    /// A notice may have waited here while something was decided, so the present is asked for.
    async fn look_again(&mut self) -> Result<()> {
        let present = self.client.call(&InterceptGetRequest::default()).await?;
        self.look(&present.held).await
    }

    /// Asks about the oldest held message, unless one is asked about already.
    async fn look(&mut self, held: &[u64]) -> Result<()> {
        if let Some(asking) = &self.asking {
            if held.contains(&asking.hold) {
                return Ok(());
            }
            self.asking = None;
            self.awaits_message = None;
            printer::say("\n(decided elsewhere)");
        }
        let Some(first) = held.first() else {
            return Ok(());
        };
        let request = HoldListRequest {
            hold: Some(*first),
            raw: true,
        };
        let list = self.client.call(&request).await?;
        // Gone meanwhile: the next notice says so.
        if let Some(held) = HoldPrompt::first(list) {
            printer::say(&held.shown());
            if self.keyboard.is_some() {
                printer::ask(CHOICES);
            } else {
                let id = &self.running.descriptor.id;
                printer::say(&format!(
                    "decide with: mcp-proxy ctl {id} hold.resolve hold={first} action=forward"
                ));
            }
            self.asking = Some(held);
        }
        Ok(())
    }

    /// Does what was typed.
    async fn decide(&mut self, line: &str) -> Result<ShouldQuit> {
        if let Some(checked) = self.awaits_message.take() {
            let text = line.trim_end_matches(['\r', '\n']).to_owned();
            return self.modify(text.into_bytes(), checked).await;
        }
        match KeyboardCommand::read(line) {
            KeyboardCommand::Forward => self.resolve(HoldAction::Forward).await,
            KeyboardCommand::Drop => self.resolve(HoldAction::Drop).await,
            KeyboardCommand::Error(code, message) => {
                self.resolve(HoldAction::Error { code, message }).await
            }
            KeyboardCommand::Modify(Some(text), checked) => {
                self.modify(text.into_bytes(), checked).await
            }
            KeyboardCommand::Modify(None, checked) => match self.draft().map(<[u8]>::to_vec) {
                Some(draft) if checked == ReplacementCheck::AsIs => {
                    self.modify(draft, checked).await
                }
                _ => self.ask_message(checked).await,
            },
            KeyboardCommand::Step => self.tell(&StepRequest {}).await,
            KeyboardCommand::Continue => self.tell(&ContinueRequest {}).await,
            KeyboardCommand::Intercept => {
                let request = InterceptSetRequest::run(ModeChange::Intercept);
                self.tell(&request).await
            }
            KeyboardCommand::Quit => Ok(ShouldQuit::Yes),
            KeyboardCommand::Unknown => {
                printer::ask(CHOICES);
                Ok(ShouldQuit::No)
            }
        }
    }

    /// What was written for the held message, and refused.
    fn draft(&self) -> Option<&[u8]> {
        let (hold, draft) = self.draft.as_ref()?;
        let is_for_it = self.asking.as_ref().is_some_and(|held| held.hold == *hold);
        is_for_it.then_some(draft)
    }

    /// Has the new message written: in the editor, or on the next line.
    async fn ask_message(&mut self, checked: ReplacementCheck) -> Result<ShouldQuit> {
        let Some(held) = &self.asking else {
            printer::say("no message is held");
            return Ok(ShouldQuit::No);
        };
        let Some(editor) = editor::configured_editor() else {
            printer::ask("the new message, on one line: ");
            self.awaits_message = Some(checked);
            return Ok(ShouldQuit::No);
        };
        let folder = self.running.socket.parent().unwrap_or(Path::new("."));
        let raw = self.draft().unwrap_or(&held.raw).to_vec();
        let folder = folder.to_owned();
        let (signals, place, before) = (self.signals.clone(), folder.clone(), raw.clone());
        let mut editing = tokio::task::spawn_blocking(move || {
            let stops = || signals.end().is_some();
            signals.while_editing(|| editor::edit(&editor, &folder, &raw, stops))
        });
        let mut gone = None;
        let edited = loop {
            // Notices are taken all the while: a viewer that reads nothing is given up.
            tokio::select! {
                edited = &mut editing => break edited.context("the editor was stopped")?,
                told = self.client.notice(), if gone.is_none() => gone = told.err(),
            }
        };
        match (edited, gone) {
            (Ok(EditOutcome::Stopped(draft)), _) => {
                draft.iter().for_each(|draft| tui::say_draft(draft));
                Ok(ShouldQuit::Yes)
            }
            (Ok(EditOutcome::Text(edited)), Some(gone)) => {
                if edited != before {
                    tui::say_draft(&editor::keep(&place, &edited)?);
                }
                Err(gone.into())
            }
            (Err(_), Some(gone)) => Err(gone.into()),
            (Ok(EditOutcome::Text(edited)), None) => self.modify(edited, checked).await,
            (Err(error), None) => {
                printer::fail(&error);
                printer::ask(CHOICES);
                Ok(ShouldQuit::No)
            }
        }
    }

    async fn modify(&mut self, message: Vec<u8>, checked: ReplacementCheck) -> Result<ShouldQuit> {
        if let Some(held) = &self.asking {
            self.draft = Some((held.hold, message.clone()));
        }
        let Ok(text) = String::from_utf8(message) else {
            return self.refuse("the new message is not UTF-8").await;
        };
        if checked == ReplacementCheck::Json && !Message::parse(text.clone()).is_json() {
            let why = "the new message is not JSON: m! sends it anyway";
            return self.refuse(why).await;
        }
        self.resolve(HoldAction::Modify {
            message: Replacement::Text(text),
            as_is: checked == ReplacementCheck::AsIs,
        })
        .await
    }

    /// Says why a new message is not sent.
    async fn refuse(&mut self, why: &str) -> Result<ShouldQuit> {
        if self.asking.is_none() {
            printer::say("no message is held");
            return Ok(ShouldQuit::No);
        }
        let again = match editor::configured_editor() {
            Some(_) => "m opens it again",
            None => "m takes another",
        };
        printer::say(&format!("{why}, {again}"));
        self.ask_again().await
    }

    async fn resolve(&mut self, action: HoldAction) -> Result<ShouldQuit> {
        let Some(held) = &self.asking else {
            printer::say("no message is held");
            return Ok(ShouldQuit::No);
        };
        let hold = held.hold;
        self.tell(&HoldResolveRequest { hold, action }).await
    }

    /// Tells the proxy, and asks about what is held then.
    async fn tell(&mut self, request: &impl ControlRequest) -> Result<ShouldQuit> {
        match self.client.call(request).await {
            Ok(_) => self.asking = None,
            Err(ControlClientError::Refused { text, .. }) => printer::say(&sanitize(&text)),
            Err(error) => return Err(error.into()),
        }
        self.ask_again().await
    }

    /// Asks about what is held now; what was refused may still be held.
    async fn ask_again(&mut self) -> Result<ShouldQuit> {
        let again = self.asking.is_some();
        self.feed.show(&mut self.client).await?;
        self.look_again().await?;
        if again && self.asking.is_some() {
            printer::ask(CHOICES);
        }
        Ok(ShouldQuit::No)
    }
}

#[derive(PartialEq, Eq)]
enum ShouldQuit {
    Yes,
    No,
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ControlClientError::Gone))
}
