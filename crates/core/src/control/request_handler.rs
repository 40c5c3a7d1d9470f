//! One viewer's requests, answered in order: one line in, one line out.
//!
//! Nothing here waits for traffic, and what reads or writes files does so on another thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_proxy_control::{
    BreakpointsAddRequest, BreakpointsListRequest, BreakpointsRemoveRequest, ConnectionNumber,
    ConnectionsListRequest, ContinueRequest, ControlRequest, ExportRequest, Fault, FileResult,
    HelloRequest, HelloResult, HoldEditRequest, HoldExtendRequest, HoldResolveRequest,
    InterceptGetRequest, InterceptSetRequest, MarkChange, Method, NoResult, NoteRequest, PROTOCOL,
    RelayPairRequest, RelayPairResult, RulesListRequest, RulesReloadRequest, SaveRequest,
    ServersDisableRequest, ServersEnableRequest, ServersListRequest, ServersListResult,
    ServersReloadRequest, ServersRestartRequest, ShutdownRequest, StatsRequest, StatsResult,
    StepRequest, SubscribeRequest, SubscribeResult, read_params,
};
use mcp_proxy_session::{BodyInclusion, MarkOperation, RecordEvent, export};
use mcp_proxy_wire::{ErrorCode, Kind, Message};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::{
    OverwritePolicy, ServerOrder, ViewerSlot, decisions, holds, replay_request, rows, rules,
    servers,
};
use crate::intercept::HoldScope;

/// The longest note that is accepted.
const NOTE: usize = 64 * 1024;
/// What a viewer calls itself is cut here.
const NAME: usize = 60;

/// Answers one viewer.
pub struct ControlRequestHandler {
    place: ViewerSlot,
    process: Option<i32>,
    name: Mutex<String>,
    subscribe: watch::Sender<bool>,
}

impl ControlRequestHandler {
    pub(super) fn new(
        place: ViewerSlot,
        process: Option<i32>,
        subscribe: watch::Sender<bool>,
    ) -> ControlRequestHandler {
        ControlRequestHandler {
            place,
            process,
            name: Mutex::default(),
            subscribe,
        }
    }

    /// Answers one line. `None`: it asked for no answer.
    pub async fn answer(&self, line: Bytes) -> Option<Vec<u8>> {
        let request = Message::parse(line);
        let id = match request.kind() {
            Kind::Request => request.id_token().unwrap_or(b"null").to_vec(),
            Kind::Notification => {
                // A notification: it is carried out, and its result is discarded.
                drop(self.handle_request(&request).await);
                return None;
            }
            Kind::Malformed => {
                let code = ErrorCode::PARSE_ERROR.get();
                return Some(fault_response(
                    b"null",
                    &Fault::new(code, "the line is not JSON"),
                ));
            }
            _ => {
                let code = ErrorCode::INVALID_REQUEST.get();
                let text = "the line is not a JSON-RPC request (batches are not supported)";
                let id = request.id_token().unwrap_or(b"null");
                return Some(fault_response(id, &Fault::new(code, text)));
            }
        };
        Some(match self.handle_request(&request).await {
            Ok(result) => result_response(&id, &result),
            Err(fault) => fault_response(&id, &fault),
        })
    }

    /// The answer to a line that was longer than allowed and is gone.
    pub fn too_long(&self, limit: usize) -> Vec<u8> {
        let text = format!("a line may be {limit} bytes long");
        let code = ErrorCode::INVALID_REQUEST.get();
        fault_response(b"null", &Fault::new(code, text))
    }

    async fn handle_request(&self, request: &Message) -> Result<Vec<u8>, Fault> {
        let name = request.method().unwrap_or_default();
        let method = Method::named(&name).ok_or_else(|| {
            let code = ErrorCode::METHOD_NOT_FOUND.get();
            Fault::new(code, format!("unknown method `{name}`"))
        })?;
        let params = request.params().map(|span| request.slice(span));
        self.run_method(method, params).await
    }

    /// One arm for each method.
    async fn run_method(&self, method: Method, params: Option<&[u8]>) -> Result<Vec<u8>, Fault> {
        let control = &self.place.control;
        let intercept = control.run.intercept();
        match method {
            Method::Hello => reply(params, |request: HelloRequest| Ok(self.hello(request))),
            Method::Subscribe => reply(params, |_: SubscribeRequest| {
                self.subscribe.send_replace(true);
                Ok(self.current_state())
            }),
            Method::ServersList => reply(params, |_: ServersListRequest| {
                let servers = servers::list(control);
                let hub = control.callbacks.management.as_ref().map(|hub| hub.load());
                Ok(ServersListResult { servers, hub })
            }),
            Method::ServersRestart => reply(params, |request: ServersRestartRequest| {
                servers::change(control, ServerOrder::Restart(&request.server))
            }),
            Method::ServersEnable => reply(params, |request: ServersEnableRequest| {
                servers::change(control, ServerOrder::Enable(&request.server))
            }),
            Method::ServersDisable => reply(params, |request: ServersDisableRequest| {
                servers::change(control, ServerOrder::Disable(&request.server))
            }),
            Method::ServersReload => {
                read_params::<ServersReloadRequest>(params)?;
                let reloaded = servers::reload(control).await?;
                Ok(to_json(&reloaded))
            }
            Method::ConnectionsList => reply(params, |request: ConnectionsListRequest| {
                servers::connections(control, &request)
            }),
            Method::Get => rows::get(control, read_params(params)?).await,
            Method::Stats => reply(params, |_: StatsRequest| Ok(self.stats())),
            Method::InterceptGet => reply(params, |request: InterceptGetRequest| {
                let scope = self.scope(request.connection, request.server.as_deref())?;
                Ok(holds::present_of(&control.run, &scope))
            }),
            Method::InterceptSet => reply(params, |request: InterceptSetRequest| {
                let scope = self.scope(request.connection, request.server.as_deref())?;
                holds::set(&control.run, request.mode, &scope, &self.viewer_label())
            }),
            Method::HoldList => {
                let wanted = read_params(params)?;
                let answers = holds::answers(intercept, &wanted);
                let asked = rows::request_summaries(control, answers).await;
                let hidden = control.summary.redaction.as_ref();
                holds::list(intercept, &wanted, control.run.now(), (hidden, &asked))
            }
            Method::HoldEdit => reply(params, |request: HoldEditRequest| {
                decisions::edit(
                    intercept,
                    request,
                    (self.place.viewer, &self.viewer_label()),
                )
            }),
            Method::HoldExtend => reply(params, |request: HoldExtendRequest| {
                decisions::extend(intercept, request)
            }),
            Method::HoldResolve => reply(params, |request: HoldResolveRequest| {
                let hidden = control.summary.redaction.as_ref();
                decisions::resolve(intercept, request, &self.viewer_label(), hidden)
            }),
            Method::Step => reply(params, |_: StepRequest| {
                Ok(holds::step(&control.run, &self.viewer_label()))
            }),
            Method::Continue => reply(params, |_: ContinueRequest| {
                Ok(holds::resume(&control.run, &self.viewer_label()))
            }),
            Method::BreakpointsList => reply(params, |_: BreakpointsListRequest| {
                Ok(holds::breakpoints(intercept))
            }),
            Method::BreakpointsAdd => {
                let request: BreakpointsAddRequest = read_params(params)?;
                let scope = self.scope(request.connection, request.server.as_deref())?;
                let added = holds::add_breakpoint(intercept, request, scope).await;
                added.map(|number| to_json(&number))
            }
            Method::BreakpointsRemove => reply(params, |request: BreakpointsRemoveRequest| {
                holds::remove_breakpoint(intercept, request)
            }),
            Method::RulesList => reply(params, |request: RulesListRequest| {
                let server = request.server.as_deref();
                let server = servers::named_server(control, request.connection, server)?;
                Ok(rules::list(control.run.rules(), server.as_ref()))
            }),
            Method::RulesReload => {
                let RulesReloadRequest {} = read_params(params)?;
                let read = rules::reload(&control.run, &self.viewer_label()).await;
                read.map(|rules| to_json(&rules))
            }
            Method::Replay => {
                replay_request::replay(control, read_params(params)?, &self.viewer_label()).await
            }
            Method::Note => reply(params, |request: NoteRequest| self.note(&request)),
            Method::Export => self.export(read_params(params)?).await,
            Method::Save => self.save(read_params(params)?).await,
            Method::RelayPair => reply(params, |request: RelayPairRequest| self.pair(&request)),
            Method::Shutdown => reply(params, |_: ShutdownRequest| {
                control.ended_by.send_replace(Some(self.viewer_label()));
                Ok(NoResult {})
            }),
        }
    }

    fn scope(
        &self,
        connection: Option<ConnectionNumber>,
        server: Option<&str>,
    ) -> Result<HoldScope, Fault> {
        servers::hold_scope(&self.place.control, connection, server)
    }

    fn hello(&self, request: HelloRequest) -> HelloResult {
        if let Some(name) = request.name {
            *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name
                .chars()
                .filter(|c| !c.is_control())
                .take(NAME)
                .collect();
        }
        let control = &*self.place.control;
        let facts = control.facts();
        let record = control.record_path();
        HelloResult {
            protocol: PROTOCOL,
            version: facts.version.to_owned(),
            session: facts.session.clone(),
            target: facts.target.clone(),
            client: facts.client.as_str().to_owned(),
            listens: control.run.address().map(str::to_owned),
            token_file: facts.token_file.as_deref().map(shown_path),
            config_files: facts
                .config_files
                .iter()
                .map(|path| shown_path(path))
                .collect(),
            server: facts.server.as_str().to_owned(),
            record: record.as_deref().map(shown_path),
            started: mcp_proxy_session::time_text(facts.started),
            pid: facts.pid,
            servers: servers::list(control),
            connections: servers::newest(control),
            connection_count: control.run.connections().into(),
            breakpoints: control.run.intercept().breakpoints().len(),
            rules: control.run.rules().current().list().len(),
        }
    }

    /// What a new subscriber sees first.
    fn current_state(&self) -> SubscribeResult {
        let run = &self.place.control.run;
        let present = holds::intercept_state(run);
        SubscribeResult {
            mode: present.mode,
            held: present.held,
            overrides: present.overrides,
            breakpoints: present.breakpoints,
            rules: present.rules,
            decided: present.decided,
            upto: run.progress().upto,
        }
    }

    fn stats(&self) -> StatsResult {
        let control = &*self.place.control;
        let run = &control.run;
        let state = run.intercept().state();
        StatsResult {
            messages: run.messages(),
            connections: run.connections(),
            viewers: control.viewers.load(std::sync::atomic::Ordering::Relaxed),
            uptime_ms: u64::try_from(run.now().as_millis()).unwrap_or(u64::MAX),
            mode: state.mode,
            held: state.held.len(),
            breakpoints: state.breakpoints,
            rules: run.rules().current().list().len(),
            relay: control.callbacks.relay.as_ref().map(|relay| relay.stats()),
        }
    }

    fn pair(&self, request: &RelayPairRequest) -> Result<RelayPairResult, Fault> {
        let Some(relay) = &self.place.control.callbacks.relay else {
            let text = "only `mcp-proxy relay` has browsers to pair";
            return Err(Fault::new(Fault::FAILED, text).because("not_a_relay"));
        };
        relay
            .pair(request)
            .map_err(|why| Fault::new(Fault::FAILED, why))
    }

    fn note(&self, note: &NoteRequest) -> Result<NoResult, Fault> {
        let run = &self.place.control.run;
        if let Some(sequence) = note.sequence
            && (sequence == 0 || sequence > run.messages())
        {
            return Err(Fault::params(format!("message {sequence} does not exist")));
        }
        match (note.sequence, note.mark) {
            (_, None) => {}
            (Some(sequence), Some(mark)) if note.text.is_empty() => {
                return Ok(self.mark(sequence, mark));
            }
            (Some(_), Some(_)) => return Err(Fault::params("give either text or mark, not both")),
            (None, Some(_)) => return Err(Fault::params("mark needs sequence")),
        }
        if note.text.trim().is_empty() || note.text.len() > NOTE {
            return Err(Fault::params(format!(
                "text must have 1 to {NOTE} bytes, not {}",
                note.text.len()
            )));
        }
        run.record_event(&RecordEvent::UserNote {
            sequence: note.sequence,
            by: &self.viewer_label(),
            text: &note.text,
        });
        Ok(NoResult {})
    }

    fn mark(&self, sequence: u64, mark: MarkChange) -> NoResult {
        let run = &self.place.control.run;
        let mark = match mark {
            MarkChange::Set => MarkOperation::Set,
            MarkChange::Removed => MarkOperation::Removed,
        };
        run.record_event(&RecordEvent::Mark {
            sequence,
            mark,
            by: &self.viewer_label(),
        });
        NoResult {}
    }

    async fn export(&self, wanted: ExportRequest) -> Result<Vec<u8>, Fault> {
        let record = self.record("export")?;
        if export::exporter(&wanted.format).is_none() {
            let known: Vec<_> = export::exporters().iter().map(|one| one.name()).collect();
            let known = known.join(", ");
            return Err(Fault::params(format!(
                "format: `{}` is not known: {known}",
                wanted.format
            )));
        }
        let write = Arc::clone(&self.place.control.callbacks.export);
        let format = wanted.format;
        let existing = match wanted.force {
            true => OverwritePolicy::Replace,
            false => OverwritePolicy::Keep,
        };
        write_in_background(wanted.output, move |output| {
            write(&record, &format, output, existing)
        })
        .await
    }

    async fn save(&self, wanted: SaveRequest) -> Result<Vec<u8>, Fault> {
        let record = self.record("copy")?;
        let copy = Arc::clone(&self.place.control.callbacks.save);
        write_in_background(wanted.output, move |output| copy(&record, output)).await
    }

    fn record(&self, what_for: &str) -> Result<PathBuf, Fault> {
        let record = self.place.control.record_path();
        record.ok_or_else(|| {
            let text = format!(
                "this run keeps no record (--no-record), so there is nothing to {what_for}"
            );
            Fault::new(Fault::NOT_KEPT, text)
        })
    }

    /// How records name this viewer: `user (attach, pid 77)`.
    fn viewer_label(&self) -> String {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        let process = self.process.map(|pid| format!("pid {pid}"));
        let facts: Vec<_> = [
            Some(name.as_str()).filter(|name| !name.is_empty()),
            process.as_deref(),
        ]
        .into_iter()
        .flatten()
        .collect();
        if facts.is_empty() {
            "user".to_owned()
        } else {
            format!("user ({})", facts.join(", "))
        }
    }
}

/// Reads the parameters of a request, and writes its result: the two belong to one method, which the compiler checks.
fn reply<R: ControlRequest + DeserializeOwned>(
    params: Option<&[u8]>,
    work: impl FnOnce(R) -> Result<R::Result, Fault>,
) -> Result<Vec<u8>, Fault> {
    work(read_params(params)?).map(|result| to_json(&result))
}

/// A result as it is written.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and lists of them: writing these cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// What the parameter `raw` means.
pub(super) fn bodies(raw: bool) -> BodyInclusion {
    if raw {
        BodyInclusion::Include
    } else {
        BodyInclusion::Omit
    }
}

fn result_response(id: &[u8], result: &[u8]) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":"#,
        result,
        b"}",
    ]
    .concat()
}

fn fault_response(id: &[u8], fault: &Fault) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","error":"#,
        &to_json(fault),
        b"}",
    ]
    .concat()
}

/// Has a file written on another thread, and tells how large it is.
async fn write_in_background(
    output: String,
    write: impl FnOnce(&Path) -> Result<u64, String> + Send + 'static,
) -> Result<Vec<u8>, Fault> {
    if !Path::new(&output).is_absolute() {
        return Err(Fault::params(
            "output: the proxy runs in another folder, so give an absolute path",
        ));
    }
    let path = PathBuf::from(&output);
    let writing = move || {
        refuse_special_file(&path)?;
        write(&path)
    };
    match tokio::task::spawn_blocking(writing).await {
        Ok(Ok(bytes)) => Ok(to_json(&FileResult {
            output,
            bytes: Some(bytes),
        })),
        Ok(Err(text)) => Err(Fault::new(Fault::FAILED, text)),
        Err(_) => Err(Fault::new(Fault::FAILED, "the writing was stopped")),
    }
}

/// JSON has no place for a path that is not UTF-8.
fn shown_path(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// Opening a pipe waits for its reader, perhaps for ever.
fn refuse_special_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(facts) if !facts.is_file() && !facts.is_dir() => {
            Err(format!("{} is not a regular file", path.display()))
        }
        _ => Ok(()),
    }
}
