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
    BreakpointsListRequest, BreakpointsRemoveRequest, ContinueRequest, ControlRequest, DecidedHold,
    HelloRequest, HoldAction, HoldEditRequest, HoldExtendRequest, HoldListRequest,
    HoldResolveRequest, InterceptGetRequest, InterceptMode, InterceptResult, InterceptSetRequest,
    ModeChange, Notice, Replacement, StepRequest, SubscribeRequest,
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
const CHOICES: &str =
    "[f]orward [m]odify [d]rop [e]rror (t more time, s step, c continue, q quit) > ";

/// What can be answered before it quits.
const QUIT_CHOICES: &str =
    "c: remove breakpoints, forward all and quit   l: keep holding and quit   n: cancel > ";

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
        awaits: None,
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
    /// What the next line is, if it is not a command.
    awaits: Option<AwaitedLine>,
    /// The last new message, and for which hold: if it is refused, it is not to be written twice.
    draft: Option<(u64, Vec<u8>)>,
}

/// A line that answers a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AwaitedLine {
    /// The new message.
    Message(ReplacementCheck),
    /// What to do about holding before it quits.
    QuitChoice,
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
                ViewerEvent::Line(None) if self.awaits == Some(AwaitedLine::QuitChoice) => {
                    return Ok(());
                }
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
        self.look(&present).await
    }

    /// Asks about the oldest held message, unless one is asked about already.
    async fn look(&mut self, present: &InterceptResult) -> Result<()> {
        if let Some(asking) = &self.asking {
            if present.held.contains(&asking.hold) {
                return Ok(());
            }
            let mut decided = present.decided.iter();
            let decided = decided.find(|decided| decided.hold == asking.hold);
            printer::say(&decided_elsewhere(decided));
            self.asking = None;
            self.awaits = None;
        }
        let Some(first) = present.held.first() else {
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
        match self.awaits.take() {
            Some(AwaitedLine::Message(checked)) => {
                let text = line.trim_end_matches(['\r', '\n']).to_owned();
                self.set_editing(false).await?;
                return self.modify(text.into_bytes(), checked).await;
            }
            Some(AwaitedLine::QuitChoice) => return self.quit_as(line.trim()).await,
            None => {}
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
            KeyboardCommand::MoreTime => self.extend().await,
            KeyboardCommand::Step => self.tell(&StepRequest {}).await,
            KeyboardCommand::Continue => self.tell(&ContinueRequest {}).await,
            KeyboardCommand::Intercept => {
                let request = InterceptSetRequest::run(ModeChange::Intercept);
                self.tell(&request).await
            }
            KeyboardCommand::Quit => self.quit().await,
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
            self.awaits = Some(AwaitedLine::Message(checked));
            self.set_editing(true).await?;
            return Ok(ShouldQuit::No);
        };
        let folder = self.running.socket.parent().unwrap_or(Path::new("."));
        let raw = self.draft().unwrap_or(&held.raw).to_vec();
        let folder = folder.to_owned();
        self.set_editing(true).await?;
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
            (Ok(EditOutcome::Text(edited)), None) => {
                self.set_editing(false).await?;
                self.modify(edited, checked).await
            }
            (Err(error), None) => {
                self.set_editing(false).await?;
                printer::fail(&error);
                printer::ask(CHOICES);
                Ok(ShouldQuit::No)
            }
        }
    }

    /// Tells the proxy that the message is being edited: its time does not run meanwhile.
    async fn set_editing(&mut self, open: bool) -> Result<()> {
        let Some(held) = &self.asking else {
            return Ok(());
        };
        let request = HoldEditRequest {
            hold: held.hold,
            open,
        };
        match self.client.call(&request).await {
            // If it was decided meanwhile, the decision that follows is refused with the reason.
            Ok(_) | Err(ControlClientError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the held message more time.
    async fn extend(&mut self) -> Result<ShouldQuit> {
        let Some(held) = &self.asking else {
            printer::say("no message is held");
            return Ok(ShouldQuit::No);
        };
        let request = HoldExtendRequest {
            hold: held.hold,
            seconds: None,
        };
        match self.client.call(&request).await {
            Ok(clock) => {
                let left = clock.left_ms.map_or(0, |left| left / 1000);
                printer::say(&format!("{left} s left"));
            }
            Err(ControlClientError::Refused { text, .. }) => printer::say(&sanitize(&text)),
            Err(error) => return Err(error.into()),
        }
        self.ask_again().await
    }

    /// Quits, unless messages would be held with nobody there to decide: then it asks first.
    async fn quit(&mut self) -> Result<ShouldQuit> {
        let present = self.client.call(&InterceptGetRequest::default()).await?;
        let is_on = |mode: InterceptMode| mode == InterceptMode::Intercept;
        let holds_all =
            is_on(present.mode) || present.overrides.iter().any(|part| is_on(part.mode));
        let why = match (holds_all, present.breakpoints) {
            (false, 0) => return Ok(ShouldQuit::Yes),
            (true, 0) => "intercept is on".to_owned(),
            (true, count) => format!("intercept is on and {}", breakpoints_set(count)),
            (false, count) => breakpoints_set(count),
        };
        printer::say(&format!(
            "{why}: messages will still be held after you quit"
        ));
        printer::ask(QUIT_CHOICES);
        self.awaits = Some(AwaitedLine::QuitChoice);
        Ok(ShouldQuit::No)
    }

    async fn quit_as(&mut self, choice: &str) -> Result<ShouldQuit> {
        match choice {
            "l" => Ok(ShouldQuit::Yes),
            "c" => {
                let set = self.client.call(&BreakpointsListRequest {}).await?;
                for breakpoint in set.breakpoints {
                    let id = breakpoint.id;
                    match self.client.call(&BreakpointsRemoveRequest { id }).await {
                        // It may have had its last hit.
                        Ok(_) | Err(ControlClientError::Refused { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                self.client.call(&ContinueRequest {}).await?;
                Ok(ShouldQuit::Yes)
            }
            _ => self.ask_again().await,
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
        self.tell(&HoldResolveRequest::new(hold, action)).await
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

fn breakpoints_set(count: usize) -> String {
    match count {
        1 => "1 breakpoint is set".to_owned(),
        count => format!("{count} breakpoints are set"),
    }
}

/// What became of a message that was asked about.
fn decided_elsewhere(decided: Option<&DecidedHold>) -> String {
    let Some(decided) = decided else {
        return "\n(decided elsewhere)".to_owned();
    };
    let done = match decided.action.as_str() {
        "forward" => "forwarded",
        "modify" => "forwarded with changes",
        "drop" => "dropped",
        _ => "answered with an error",
    };
    let why = match decided.why.as_str() {
        "" => String::new(),
        why => format!(": {}", sanitize(why)),
    };
    let (sequence, by) = (decided.sequence, sanitize(&decided.by));
    format!("\n(decided elsewhere: #{sequence} was {done} by {by}{why})")
}

#[derive(PartialEq, Eq)]
enum ShouldQuit {
    Yes,
    No,
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ControlClientError::Gone))
}
