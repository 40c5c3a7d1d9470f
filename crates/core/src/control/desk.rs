//! One viewer's requests, answered in order: one line in, one line out.
//!
//! Nothing here waits for traffic, and what reads or writes files does so on a thread beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_proxy_session::{Io, Mark, export};
use mcp_proxy_wire::{ErrorCode, Kind, Message, json_string};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::method::Method;
use super::{Existing, PROTOCOL, Place, again, holds, params, rows, rules};

/// A note longer than this is no note.
const NOTE: usize = 64 * 1024;
/// What a viewer calls itself is cut here.
const NAME: usize = 60;

/// Answers one viewer.
pub struct Desk {
    place: Place,
    process: Option<i32>,
    name: Mutex<String>,
    subscribe: watch::Sender<bool>,
}

/// Why a request was refused: a JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its code.
    pub code: i64,
    /// Its text.
    pub text: String,
    /// More for programs.
    pub data: Option<Value>,
}

impl Fault {
    /// There is no such hold.
    pub const NO_SUCH_HOLD: i64 = -31101;
    /// Somebody else decided before.
    pub const RESOLVED: i64 = -31102;
    /// The run does not keep what was asked for.
    pub const NOT_KEPT: i64 = -31103;
    /// It was tried and did not work.
    pub const FAILED: i64 = -31104;

    /// The parameters are wrong.
    pub fn params(text: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::INVALID_PARAMS.get(), text)
    }

    pub(super) fn new(code: i64, text: impl Into<String>) -> Fault {
        Fault {
            code,
            text: text.into(),
            data: None,
        }
    }
}

impl Desk {
    pub(super) fn new(place: Place, process: Option<i32>, subscribe: watch::Sender<bool>) -> Desk {
        Desk {
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
                // What it does is done, what it would be answered is nobody's.
                drop(self.ask(&request).await);
                return None;
            }
            Kind::Malformed => {
                let code = ErrorCode::PARSE_ERROR.get();
                return Some(refused(b"null", &Fault::new(code, "the line is no JSON")));
            }
            _ => {
                let code = ErrorCode::INVALID_REQUEST.get();
                let text = "the line is no JSON-RPC request (batches are not taken)";
                let id = request.id_token().unwrap_or(b"null");
                return Some(refused(id, &Fault::new(code, text)));
            }
        };
        Some(match self.ask(&request).await {
            Ok(result) => answered(&id, &result),
            Err(fault) => refused(&id, &fault),
        })
    }

    /// The answer to a line that was longer than allowed and is gone.
    pub fn too_long(&self, limit: usize) -> Vec<u8> {
        let text = format!("a line may be {limit} bytes long");
        let code = ErrorCode::INVALID_REQUEST.get();
        refused(b"null", &Fault::new(code, text))
    }

    async fn ask(&self, request: &Message) -> Result<Vec<u8>, Fault> {
        let name = request.method().unwrap_or_default();
        let method = Method::named(&name).ok_or_else(|| {
            let code = ErrorCode::METHOD_NOT_FOUND.get();
            Fault::new(code, format!("there is no method `{name}`"))
        })?;
        let params = request.params().map(|span| request.slice(span));
        self.run(method, params).await
    }

    /// One arm for each line of [`super::METHODS`].
    async fn run(&self, method: Method, params: Option<&[u8]>) -> Result<Vec<u8>, Fault> {
        let control = &*self.place.0;
        let intercept = control.pipeline.intercept();
        match method {
            Method::Hello => self.hello(params::read(params)?),
            Method::Subscribe => {
                params::read::<params::Nothing>(params)?;
                self.subscribe.send_replace(true);
                Ok(to_json(&self.present()))
            }
            Method::Get => rows::get(&self.place.0, params::read(params)?).await,
            Method::Stats => {
                params::read::<params::Nothing>(params)?;
                Ok(to_json(&self.stats()))
            }
            Method::InterceptGet => {
                params::read::<params::Nothing>(params)?;
                Ok(to_json(&holds::present(intercept)))
            }
            Method::InterceptSet => holds::set(intercept, &params::read(params)?, &self.by()),
            Method::HoldList => {
                let wanted = params::read(params)?;
                let answers = holds::answers(intercept, &wanted);
                let asked = rows::asked(&self.place.0, answers).await;
                let hidden = control.facts.redaction.as_ref();
                holds::list(intercept, &wanted, control.pipeline.now(), (hidden, &asked))
            }
            Method::HoldResolve => {
                let hidden = control.facts.redaction.as_ref();
                holds::resolve(intercept, params::read(params)?, &self.by(), hidden)
            }
            Method::Step => {
                params::read::<params::Nothing>(params)?;
                holds::step(intercept, &self.by())
            }
            Method::Continue => {
                params::read::<params::Nothing>(params)?;
                holds::resume(intercept, &self.by())
            }
            Method::BreakpointsList => {
                params::read::<params::Nothing>(params)?;
                holds::breakpoints(intercept)
            }
            Method::BreakpointsAdd => holds::add_breakpoint(intercept, params::read(params)?).await,
            Method::BreakpointsRemove => {
                holds::remove_breakpoint(intercept, &params::read(params)?)
            }
            Method::RulesList => {
                params::read::<params::Nothing>(params)?;
                Ok(to_json(&rules::list(control.pipeline.rules())))
            }
            Method::RulesReload => {
                params::read::<params::Nothing>(params)?;
                let read = rules::reload(&control.pipeline, &self.by()).await;
                read.map(|rules| to_json(&rules))
            }
            Method::Replay => again::replay(&self.place.0, params::read(params)?, &self.by()).await,
            Method::Note => self.note(&params::read(params)?),
            Method::Export => self.export(params::read(params)?).await,
            Method::Save => self.save(params::read(params)?).await,
            Method::Shutdown => {
                params::read::<params::Nothing>(params)?;
                control.ended_by.send_replace(Some(self.by()));
                Ok(to_json(&json!({})))
            }
        }
    }

    fn hello(&self, params: params::Hello) -> Result<Vec<u8>, Fault> {
        if let Some(name) = params.name {
            *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name
                .chars()
                .filter(|c| !c.is_control())
                .take(NAME)
                .collect();
        }
        let facts = self.place.0.facts();
        Ok(to_json(&json!({
            "protocol": PROTOCOL,
            "version": facts.version,
            "session": facts.session,
            "target": facts.target,
            "client": facts.client.as_str(),
            "listens": self.place.0.pipeline.address(),
            "server": facts.server.as_str(),
            "record": facts.record.as_ref().map(|path| path.to_string_lossy()),
            "started": mcp_proxy_session::time_text(facts.started),
            "pid": facts.pid,
        })))
    }

    /// What a new subscriber sees first.
    fn present(&self) -> Value {
        let pipeline = &self.place.0.pipeline;
        let mut present = holds::present(pipeline.intercept());
        if let Value::Object(members) = &mut present {
            members.insert("upto".to_owned(), pipeline.progress().upto.into());
        }
        present
    }

    fn stats(&self) -> Value {
        let control = &*self.place.0;
        let pipeline = &control.pipeline;
        let state = pipeline.intercept().state();
        let ring = pipeline.recent(|ring| {
            let first = ring.range().map(|(first, _)| first);
            json!({"messages": ring.len(), "bytes": ring.bytes(), "first": first})
        });
        json!({
            "messages": pipeline.messages(),
            "connections": pipeline.connections(),
            "viewers": control.viewers.load(std::sync::atomic::Ordering::Relaxed),
            "uptime_ms": u64::try_from(pipeline.now().as_millis()).unwrap_or(u64::MAX),
            "mode": state.mode.as_str(),
            "held": state.held.len(),
            "breakpoints": pipeline.intercept().breakpoints().len(),
            "ring": ring,
        })
    }

    fn note(&self, note: &params::Note) -> Result<Vec<u8>, Fault> {
        match (note.sequence, &note.mark) {
            (None, None) => {}
            (Some(sequence), Some(mark)) => return self.mark(sequence, mark),
            _ => return Err(Fault::params("sequence and mark go together".to_owned())),
        }
        if note.text.trim().is_empty() || note.text.len() > NOTE {
            return Err(Fault::params(format!(
                "text must have 1 to {NOTE} bytes, not {}",
                note.text.len()
            )));
        }
        let text = format!("{}: {}", self.by(), note.text);
        self.place.0.pipeline.note(&Io::Note { text: &text });
        Ok(to_json(&json!({})))
    }

    fn mark(&self, sequence: u64, mark: &str) -> Result<Vec<u8>, Fault> {
        let pipeline = &self.place.0.pipeline;
        if sequence == 0 || sequence > pipeline.messages() {
            return Err(Fault::params(format!("there is no message {sequence}")));
        }
        let Some(mark) = Mark::named(mark) else {
            return Err(Fault::params("mark must be set or removed".to_owned()));
        };
        let text = format!("{}: mark {}", self.by(), mark.as_str());
        pipeline.note(&Io::Mark {
            sequence,
            mark,
            text: &text,
        });
        Ok(to_json(&json!({})))
    }

    async fn export(&self, wanted: params::Export) -> Result<Vec<u8>, Fault> {
        let record = self.record("export")?;
        if export::exporter(&wanted.format).is_none() {
            let known: Vec<_> = export::exporters().iter().map(|one| one.name()).collect();
            let known = known.join(", ");
            return Err(Fault::params(format!(
                "format: `{}` is not known: {known}",
                wanted.format
            )));
        }
        let write = Arc::clone(&self.place.0.means.export);
        let format = wanted.format;
        let existing = match wanted.force {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        written(wanted.output, move |output| {
            write(&record, &format, output, existing)
        })
        .await
    }

    async fn save(&self, wanted: params::Save) -> Result<Vec<u8>, Fault> {
        let record = self.record("copy")?;
        let copy = Arc::clone(&self.place.0.means.save);
        written(wanted.output, move |output| copy(&record, output)).await
    }

    fn record(&self, what_for: &str) -> Result<PathBuf, Fault> {
        let record = self.place.0.facts.record.clone();
        record.ok_or_else(|| {
            let text = format!(
                "this run keeps no record (--no-record), so there is nothing to {what_for}"
            );
            Fault::new(Fault::NOT_KEPT, text)
        })
    }

    /// How records name this viewer: `user (attach, pid 77)`.
    fn by(&self) -> String {
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

pub(super) fn to_json(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn answered(id: &[u8], result: &[u8]) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":"#,
        result,
        b"}",
    ]
    .concat()
}

fn refused(id: &[u8], fault: &Fault) -> Vec<u8> {
    let data = fault.data.as_ref().map(|data| format!(",\"data\":{data}"));
    let error = format!(
        "{{\"code\":{},\"message\":{}{}}}",
        fault.code,
        json_string(&fault.text),
        data.unwrap_or_default()
    );
    [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","error":"#,
        error.as_bytes(),
        b"}",
    ]
    .concat()
}

/// Has a file written beside the messages, and tells how large it is.
async fn written(
    output: String,
    write: impl FnOnce(&Path) -> Result<u64, String> + Send + 'static,
) -> Result<Vec<u8>, Fault> {
    if !Path::new(&output).is_absolute() {
        return Err(Fault::params(
            "output: the proxy runs in another folder, so give an absolute path",
        ));
    }
    let path = PathBuf::from(&output);
    match tokio::task::spawn_blocking(move || write(&path)).await {
        Ok(Ok(bytes)) => Ok(to_json(&json!({"output": output, "bytes": bytes}))),
        Ok(Err(text)) => Err(Fault::new(Fault::FAILED, text)),
        Err(_) => Err(Fault::new(Fault::FAILED, "the writing was stopped")),
    }
}
