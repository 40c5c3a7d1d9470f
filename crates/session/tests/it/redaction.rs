//! Redaction through the record: what was asked to be hidden is in no file of it, and in no export.

mod messages;
mod presets;
mod properties;
mod text;

use crate::sample::*;
use mcp_proxy_session::redact::RedactionPreset;
use mcp_proxy_session::*;
use mcp_proxy_wire::{Direction, Message, SseEvent, Transport, TransportEnvelope};
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

/// Bytes of a large body.
const LARGE: usize = 100_000;

/// Nothing that the record writes of its own accord looks like this.
const SECRET: &str = "S3CRET-VALUE";

static RULES: LazyLock<Redaction> = LazyLock::new(|| {
    let rules = RedactionRules {
        keys: vec!["password".to_owned(), "card*".to_owned()],
        values: vec!["S3CRET-[A-Z]+".to_owned()],
        paths: vec!["$.params.name".to_owned()],
        presets: vec![RedactionPreset::Tokens],
    };
    Redaction::new(&rules).unwrap().unwrap()
});

fn rules(keys: &[&str], values: &[&str], paths: &[&str]) -> Redaction {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let rules = RedactionRules {
        keys: owned(keys),
        values: owned(values),
        paths: owned(paths),
        presets: Vec::new(),
    };
    Redaction::new(&rules).unwrap().unwrap()
}

fn preset(preset: RedactionPreset) -> Redaction {
    let rules = RedactionRules {
        presets: vec![preset],
        ..RedactionRules::default()
    };
    Redaction::new(&rules).unwrap().unwrap()
}

/// What is left, with `#1` for the first mark.
fn left(redaction: &Redaction, raw: &str) -> String {
    match redaction.message(&Message::parse(raw.as_bytes().to_vec())) {
        None => raw.to_owned(),
        Some(redacted) => {
            let text = String::from_utf8(redacted.message.into_raw().into()).unwrap();
            let front = format!("[redacted:{}:", redaction.facts().nonce);
            assert_eq!(text.matches(&front).count(), redacted.count as usize);
            let pieces: Vec<String> = text.split(&front).map(str::to_owned).collect();
            pieces[1..].iter().fold(pieces[0].clone(), |text, piece| {
                format!("{text}#{}", piece.replacen(']', "", 1))
            })
        }
    }
}

/// A record to be written with this redaction.
fn captured_with(redaction: &Redaction) -> SampleRecord {
    let options = RecordOptions {
        redaction: Some(redaction.clone()),
        ..options()
    };
    SampleRecord::with(options, &header())
}

fn hiding() -> RecordOptions {
    RecordOptions {
        redaction: Some(RULES.clone()),
        ..options()
    }
}

/// All bytes of a folder.
fn everything_in(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(everything_in(&path));
        } else {
            bytes.extend(std::fs::read(&path).unwrap());
        }
    }
    bytes
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

/// The secret in every place that a record has.
fn secrets_everywhere(options: RecordOptions) -> SampleRecord {
    let mut header = header();
    header.server_command = Some(format!("server --x {SECRET}"));
    header.server.name = Some(SECRET.to_owned());
    header.argv = ["p", "--redact-value", SECRET, "--", "server", SECRET]
        .map(str::to_owned)
        .into();
    let mut sample = SampleRecord::with(options, &header);
    let call = sample.client(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{SECRET}","arguments":{{"password":"{SECRET}","n":1.0}}}}}}"#
    ));
    let changed = format!(
        r#"{{"id":1,"method":"tools/call","a":"{SECRET}","pad":"{}"}}"#,
        "x".repeat(LARGE)
    );
    sample
        .verdict("modify", call)
        .why(&format!("because of {SECRET}"))
        .original(format!(r#"{{"password":"{SECRET}"}}"#))
        .raw(changed)
        .write();
    sample.answer(
        call,
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{{\"password\":\"{SECRET}\"}}"}}]}}}}"#),
    );
    // Large, and the same again.
    let large = format!(
        r#"{{"id":"{SECRET}","method":"big","params":{{"password":"{SECRET}","x":"{}"}}}}"#,
        "y".repeat(LARGE)
    );
    sample.client(&large);
    sample.client(&large);
    // A batch, broken JSON, bytes that are no text.
    let batch = format!(r#"[{{"id":"{SECRET}","method":"{SECRET}"}},{{"id":2,"method":"b"}}]"#);
    let parts: Vec<NewBatchPart> = Message::parse(batch.clone())
        .parts()
        .unwrap()
        .iter()
        .map(|part| NewBatchPart {
            kind: part.kind(),
            id: part.id(),
            method: part.method().map(|method| method.into_owned()),
            answered_request: None,
        })
        .collect();
    sample.from_client(batch).with_parts(&parts).write();
    sample.from_client("").with_body(NewBody::Empty).write();
    sample.client(format!(r#"{{"password":"{SECRET}","#));
    sample.client([format!("{SECRET} ").as_bytes(), b"\xff"].concat());
    // HTTP and SSE.
    let request = http::Request::post(format!("/mcp?q={SECRET}"))
        .header("mcp-param-region", SECRET)
        .header("mcp-name", "S3CR=")
        .header("x-card", SECRET)
        .header("x-other", format!("is {SECRET}"))
        .body(())
        .unwrap();
    let envelope = TransportEnvelope::Request(Box::new(request.into_parts().0));
    let body = format!(r#"{{"id":7,"method":"m","params":{{"cardNumber":"{SECRET}"}}}}"#);
    sample.from_client(&body).carried_by(&envelope).write();
    let event = TransportEnvelope::Event(Box::new(SseEvent {
        id: Some(SECRET.to_owned()),
        ..SseEvent::default()
    }));
    sample.from_server(body).carried_by(&event).write();
    let zipped = response(200, &[("content-encoding", "gzip")]);
    sample.from_server(SECRET).carried_by(&zipped).write();
    // What is no message.
    let line = format!("login with {SECRET} and {{\"password\": \"{SECRET}\"}}");
    let bytes = [line.as_bytes(), b"\xff"].concat();
    let wire = TransportEnvelope::Event(Box::new(SseEvent {
        wire: format!(": {SECRET}\n\n").into(),
        ..SseEvent::default()
    }));
    let named = PeerInfo::in_process(&line);
    let called = PeerInfo {
        caller: Some(CallerInfo {
            path: format!("/mcp/{SECRET}"),
            address: Some(SECRET.to_owned()),
        }),
        ..named.clone()
    };
    for io in [
        RecordEvent::Stderr {
            connection: 1,
            line: line.as_bytes(),
        },
        RecordEvent::Stderr {
            connection: 1,
            line: &bytes,
        },
        RecordEvent::Stray {
            connection: 1,
            direction: Direction::ServerToClient,
            bytes: line.as_bytes(),
        },
        RecordEvent::Note { text: &line },
        RecordEvent::Open {
            connection: 1,
            client: &called,
            server: &named,
            parent: None,
        },
        RecordEvent::Close {
            connection: 1,
            why: &line,
        },
        RecordEvent::Http {
            connection: 1,
            exchange: 1,
            direction: Direction::ServerToClient,
            transport: Transport::StreamableHttp,
            envelope: &wire,
        },
    ] {
        sample.recorder.record_event(at(9), &io);
    }
    sample.recorder.end(at(10), &line).unwrap();
    sample
}

#[test]
fn what_is_hidden_is_in_no_file_of_the_record() {
    let sample = secrets_everywhere(options());
    assert!(
        holds(&everything_in(sample.folder()), SECRET),
        "the test tests nothing"
    );
    let sample = secrets_everywhere(hiding());
    let bytes = everything_in(sample.folder());
    for word in [SECRET, "S3CR", "UzNDUkVU"] {
        assert!(
            !holds(&bytes, word),
            "{word} in {}",
            String::from_utf8_lossy(&bytes)
        );
    }
    let session = SessionRecord::open(sample.path()).unwrap();
    assert_eq!(session.damaged(), 0);
    let facts = session.redaction().unwrap();
    assert_eq!(
        (facts.keys.len(), facts.values, facts.paths.len()),
        (2, 1, 1)
    );
    let counts: Vec<u32> = session
        .messages(0)
        .map(|message| message.unwrap().redacted)
        .collect();
    assert_eq!(counts, [2 + 3, 1, 2, 2, 2, 0, 1, 1, 1, 1, 1]);
    let call = session.message(0).unwrap();
    assert_eq!(
        session.name(session.row(0).unwrap()),
        Some(format!("[redacted:{}:1]", facts.nonce).as_str())
    );
    // What was sent instead names nothing.
    assert_eq!(call.name, None);
    assert_eq!(call.verdicts[0].redacted, 3);
    // Large bodies are whole, and short of the secret only.
    let large = session.message(3).unwrap();
    let body = large.raw.to_bytes();
    assert_eq!(body.len() as u64, large.len);
    assert!(body.ends_with(b"yyyy\"}}"));
    assert!(matches!(
        session.message(10).unwrap().raw,
        RawBody::NotStored { .. }
    ));
}

#[test]
fn what_is_hidden_is_in_no_export() {
    let sample = secrets_everywhere(options());
    let session = SessionRecord::open(sample.path()).unwrap().redacted(&RULES);
    for exporter in exporters() {
        let mut out = Vec::new();
        exporter.export(&session, &mut out, &mut |_, _| {}).unwrap();
        let text = String::from_utf8_lossy(&out);
        for word in [SECRET, "S3CR", "UzNDUkVU"] {
            assert!(
                !text.contains(word),
                "{}: {word} in {text}",
                exporter.name()
            );
        }
        assert!(text.contains("[redacted:"), "{}", exporter.name());
        assert!(
            text.contains("redacted\":") || text.contains("2 redacted"),
            "{}",
            exporter.name()
        );
    }
}

#[test]
fn an_export_hides_what_a_capture_would_have_hidden() {
    let captured = secrets_everywhere(hiding());
    let captured = SessionRecord::open(captured.path()).unwrap();
    let plain = secrets_everywhere(options());
    let exported = SessionRecord::open(plain.path()).unwrap().redacted(&RULES);
    for index in 0..captured.len() {
        let (one, other) = (
            captured.message(index).unwrap(),
            exported.message(index).unwrap(),
        );
        assert_eq!(one.redacted, other.redacted, "{index}");
        assert_eq!(one.jsonrpc_id, other.jsonrpc_id);
        assert_eq!(one.method, other.method);
        assert_eq!(one.name, other.name);
        assert_eq!(one.http, other.http);
        assert_eq!(one.sse, other.sse);
        let text = |raw: &RawBody| String::from_utf8_lossy(&raw.to_bytes()).into_owned();
        assert_eq!(text(&one.raw), text(&other.raw));
    }
}

#[test]
fn an_export_of_lines_is_a_record_of_its_own() {
    let sample = secrets_everywhere(hiding());
    let more = RedactionRules {
        keys: vec!["n".to_owned()],
        ..RedactionRules::default()
    };
    let more = Redaction::new(&more).unwrap().unwrap();
    let session = SessionRecord::open(sample.path()).unwrap();
    let nonce = session.redaction().unwrap().nonce.clone();
    let session = session.redacted(&more);
    let mut out = Vec::new();
    export::exporter("jsonl")
        .unwrap()
        .export(&session, &mut out, &mut |_, _| {})
        .unwrap();
    let path = sample.beside("copy.jsonl");
    std::fs::write(&path, &out).unwrap();
    let copy = SessionRecord::open(&path).unwrap();
    assert_eq!((copy.len(), copy.damaged()), (session.len(), 0));
    let facts = copy.redaction().unwrap();
    assert_eq!(
        (&facts.nonce, facts.keys.len(), facts.values),
        (&nonce, 3, 1)
    );
    let call = copy.message(0).unwrap();
    assert_eq!(call.redacted, 2 + 1 + 3);
    let original = call.original_raw.unwrap();
    assert!(holds(original.bytes().unwrap(), "redacted"));
    // Large bodies came along.
    assert!(copy.message(2).unwrap().raw.len() > LARGE as u64);
    assert!(matches!(copy.message(2).unwrap().raw, RawBody::Json(_)));
}

#[test]
fn json_tells_of_redaction_in_its_metadata_and_only_then() {
    let sample = secrets_everywhere(hiding());
    let session = SessionRecord::open(sample.path()).unwrap();
    let mut out = Vec::new();
    export::exporter("json")
        .unwrap()
        .export(&session, &mut out, &mut |_, _| {})
        .unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    let told = &json["metadata"]["redaction"];
    assert_eq!(told["nonce"], session.redaction().unwrap().nonce.as_str());
    assert_eq!(told["redacted"]["1"], 5);
    assert!(json["messages"][0].get("redacted").is_none());

    let mut sample = SampleRecord::with(hiding(), &header());
    sample.client("{}");
    let mut out = Vec::new();
    export::exporter("json")
        .unwrap()
        .export(&sample.open(), &mut out, &mut |_, _| {})
        .unwrap();
    assert!(!holds(&out, "redact"));
}

#[test]
fn an_import_still_knows_what_was_redacted() {
    let sample = secrets_everywhere(hiding());
    let session = SessionRecord::open(sample.path()).unwrap();
    let document = sample.beside("s.json");
    let mut out = std::fs::File::create(&document).unwrap();
    export::exporter("json")
        .unwrap()
        .export(&session, &mut out, &mut |_, _| {})
        .unwrap();
    let place = RecordLocation::File(sample.beside("imported.jsonl"));
    let imported = SessionRecord::open(import(&document, place).unwrap()).unwrap();
    let nonce = |session: &SessionRecord| session.redaction().unwrap().nonce.clone();
    assert_eq!(nonce(&imported), nonce(&session));
    for index in 0..session.len() {
        let redacted = |session: &SessionRecord| session.message(index).unwrap().redacted;
        assert_eq!(redacted(&imported), redacted(&session), "{index}");
    }
}

#[test]
fn rules_that_find_nothing_change_no_line() {
    let (_sample, path) = everything();
    let rules = RedactionRules {
        keys: vec!["nothing-is-called-so".to_owned()],
        values: vec!["nothing reads so".to_owned()],
        ..RedactionRules::default()
    };
    let rules = Redaction::new(&rules).unwrap().unwrap();
    let session = SessionRecord::open(&path).unwrap().redacted(&rules);
    let mut out = Vec::new();
    export::exporter("jsonl")
        .unwrap()
        .export(&session, &mut out, &mut |_, _| {})
        .unwrap();
    let lines = String::from_utf8(out).unwrap();
    let record = std::fs::read_to_string(&path).unwrap();
    assert!(lines.lines().skip(1).eq(record.lines().skip(1)));
}

proptest! {
    /// Off: bytes are identical. On: they are, around the marks, and the secret is in no file.
    #[test]
    fn bodies_outside_of_the_marks_are_what_they_were(
        before in "[ -~\\n]{0,40}", after in "[ -~\\n]{0,40}", pad in prop_oneof![9 => Just(0), 1 => Just(LARGE)]
    ) {
        let body = format!("{before}{SECRET}{after}{}", " ".repeat(pad));
        let raws = [body.clone(), serde_json::json!({"a": body, "password": body, "b": [before]}).to_string()];
        for (options, hides) in [(options(), false), (hiding(), true)] {
            let mut sample = SampleRecord::with(options, &header());
            for raw in &raws {
                sample.client(raw);
            }
            let session = sample.open();
            prop_assert_eq!(holds(&everything_in(sample.folder()), SECRET), !hides);
            for (index, raw) in raws.iter().enumerate() {
                let shown = session.message(index).unwrap().raw.to_bytes();
                let shown = String::from_utf8(shown.into()).unwrap();
                if !hides {
                    prop_assert_eq!(&shown, raw);
                    continue;
                }
                let mut from = 0;
                for (number, piece) in shown.split("[redacted:").enumerate() {
                    let kept = if number == 0 { piece } else { piece.split_once(']').unwrap().1 };
                    let at = raw[from..].find(kept.trim_matches('"'));
                    prop_assert!(at.is_some(), "{} in {}", kept, raw);
                    from += at.unwrap();
                }
            }
        }
    }
}
