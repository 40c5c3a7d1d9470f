//! Who wrote a message, who its connection is between, and which call caused it: in the record and in everything read from it.

use crate::sample::*;
use mcp_proxy_session::*;
use mcp_proxy_wire::{Origin, Transport};
use serde_json::Value;
use std::ops::ControlFlow;

/// A client calls a tool of a hub. The hub asks two servers on connections that this call opened, and a third server on one
/// that was open before. Then a viewer sends the call again, and the proxy answers it.
fn hub() -> SampleRecord {
    let mut record = SampleRecord::new();
    let caller = PeerInfo {
        caller: Some(CallerInfo {
            path: "/mcp".to_owned(),
            address: Some("127.0.0.1:5000".to_owned()),
        }),
        ..PeerInfo::new(Transport::StreamableHttp)
    };
    let hub = PeerInfo::in_process("hub");
    let server = |name: &str| PeerInfo {
        name: Some(name.to_owned()),
        ..PeerInfo::new(Transport::Stdio)
    };
    record.opened(1, &caller, &hub);
    record.opened(2, &hub, &server("shared"));
    let call = record.call(1, "proxy", "{}");
    for (connection, name) in [(3, "files"), (4, "search")] {
        record.opened_by(call, connection, &hub, &server(name));
        record.on(connection);
        let asked = record.client(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
        record.result(7, asked, "{}");
        record.closed(connection, "done");
    }
    let asked = record
        .from_client(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#)
        .on(2)
        .caused_by(call)
        .write();
    record.on(2).result(8, asked, "{}");
    record.on(1).result(1, call, "{}");
    let replay = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"proxy"}}"#;
    let again = record.from_client(replay).by(Origin::Replay).write();
    let refused = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-31001,"message":"no"}}"#;
    let answer = record.from_server(refused).by(Origin::Proxy);
    answer.answering(again).write();
    record.end();
    record
}

fn export(session: &SessionRecord, format: &str) -> String {
    let mut out = Vec::new();
    export::exporter(format)
        .unwrap()
        .export(session, &mut out, &mut |_, _| {})
        .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_lines() {
    insta::assert_snapshot!("hub-lines", hub().text());
}

/// The same from an index that was just built and from one that was stored.
#[test]
fn rows_messages_and_connections_tell_it() {
    let mut record = hub();
    let stored = record.open();
    assert!(record.beside("session.jsonl.idx").exists());
    std::fs::remove_file(record.beside("session.jsonl.idx")).unwrap();
    let built = record.open();
    assert_eq!(built.rows(), stored.rows());
    for session in [stored, built] {
        let parents: Vec<Option<u64>> = session.rows().iter().map(Row::parent).collect();
        let one = Some(1);
        let none = None;
        let expected = [none, one, one, one, one, one, one, none, none, none];
        assert_eq!(parents, expected);
        let origins: Vec<&str> = session.rows()[6..]
            .iter()
            .map(|row| row.origin().as_str())
            .collect();
        assert_eq!(origins, ["server", "server", "replay", "proxy"]);
        for (index, row) in session.rows().iter().enumerate() {
            let message = session.message(index).unwrap();
            assert_eq!(
                (message.parent, message.origin),
                (row.parent(), row.origin())
            );
            assert_eq!(message.is_from_peer(), index < 8);
            let told = session
                .message_with_context(index)
                .unwrap()
                .to_json(BodyInclusion::Include);
            let read = MessageWithContext::from_json(&told.into()).unwrap().message;
            assert_eq!((read.parent, read.origin), (message.parent, message.origin));
        }
        let caused: Vec<usize> = session.caused_by(1).collect();
        assert_eq!(caused, [1, 2, 3, 4, 5, 6]);
        assert_eq!(session.caused_by(2).count(), 0);

        let connections: Vec<ConnectionInfo> = session.connections().collect();
        let shown = connections.iter().map(|connection| {
            let (client, server) = (connection.client.as_ref(), connection.server.as_ref());
            format!(
                "c{} {} ► {} {:?} {}",
                connection.number,
                client.unwrap(),
                server.unwrap(),
                connection.parent,
                if connection.closed { "closed" } else { "open" },
            )
        });
        let shown: Vec<String> = shown.collect();
        insta::assert_snapshot!("hub-connections", shown.join("\n"));
        assert_eq!(session.connection(3).as_ref(), connections.get(2));
        assert_eq!(session.connection(5), None);
    }
}

#[test]
fn a_record_without_open_lines_has_no_connections_and_is_read() {
    let mut record = SampleRecord::new();
    record.client(r#"{"id":1,"method":"a"}"#);
    record.closed(1, "gone");
    let session = record.open();
    assert_eq!((session.connections().count(), session.len()), (0, 1));
}

#[test]
fn filters_choose_by_it() {
    let session = hub().open();
    let found = |filter: &str| {
        let mut found = Vec::new();
        let filter = Filter::parse(filter).unwrap();
        let search = filter.search(&session, 0, |row| {
            found.push(row + 1);
            ControlFlow::Continue(())
        });
        search.unwrap();
        found
    };
    assert_eq!(found(".parent == 1"), [2, 3, 4, 5, 6, 7]);
    assert_eq!(found(".origin == \"replay\""), [9]);
    assert_eq!(
        found(".origin == \"proxy\" or .parent and .kind == \"request\""),
        [2, 4, 6, 10]
    );
    assert_eq!(found(".server == \"files\""), [2, 3]);
    assert_eq!(found(".server == \"shared\""), [6, 7]);
    assert_eq!(found(".server == \"hub\""), [1, 8, 9, 10]);
    // A program that needs the whole view has it too.
    assert_eq!(found("[.[]] | any(. == \"search\")"), [4, 5]);
}

/// Told by the record, and by the line that a viewer gets.
#[test]
fn filters_know_a_server_without_a_name_and_not_one_without_a_connection() {
    let mut record = SampleRecord::new();
    let peer = PeerInfo::new(Transport::Stdio);
    record.opened(1, &peer, &peer);
    record.client(r#"{"id":1,"method":"a"}"#);
    record.on(2).client(r#"{"id":1,"method":"b"}"#);
    let session = record.open();
    let unnamed = Filter::parse(".server == \"server\"").unwrap();
    let unknown = Filter::parse(".server == null").unwrap();
    for (index, row) in session.rows().iter().enumerate() {
        let line = session.message_with_context(index).unwrap();
        let line = line.to_json(BodyInclusion::Include).into();
        let told = MessageWithContext::from_json(&line).unwrap();
        for (filter, expected) in [(&unnamed, index == 0), (&unknown, index == 1)] {
            assert_eq!(filter.matches(&session, row).unwrap(), expected);
            assert_eq!(filter.matches_message(&told).unwrap(), expected);
        }
    }
}

#[test]
fn a_server_name_is_hidden_like_other_texts() {
    let rules = RedactionRules {
        values: vec!["files".to_owned()],
        ..RedactionRules::default()
    };
    let redaction = Redaction::new(&rules).unwrap().unwrap();
    let session = hub().open().redacted(&redaction);
    assert_eq!(session.server_name(3).as_deref(), Some("[masked]"));
    assert_eq!(session.server_name(4).as_deref(), Some("search"));
}

#[test]
fn exports_tell_it() {
    let session = hub().open();
    let json: Value = serde_json::from_str(&export(&session, "json")).unwrap();
    assert_eq!(json["transport"], "stdio");
    let messages = json["messages"].as_array().unwrap();
    let told = |message: &Value, name: &str| {
        json["metadata"]["proxy"][message["sequence"].to_string()][name].clone()
    };
    let parents = messages.iter().map(|message| told(message, "parent"));
    let parents: Vec<Value> = parents.collect();
    assert_eq!(parents[0], Value::Null);
    assert!(parents[1..7].iter().all(|parent| *parent == 1));
    assert_eq!(told(&messages[8], "origin"), "replay");
    let servers = messages.iter().map(|message| told(message, "server"));
    let servers: Vec<Value> = servers.collect();
    let (files, search, shared) = (["files"; 2], ["search"; 2], ["shared"; 2]);
    let of_servers = [files, search, shared].concat();
    assert_eq!(servers, [&["hub"], &of_servers[..], &["hub"; 3]].concat());
    assert_eq!(told(&messages[0], "origin"), Value::Null);
    let har: Value = serde_json::from_str(&export(&session, "har")).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let files = entries.iter().find(|entry| entry["connection"] == "c3");
    assert_eq!(files.unwrap()["_parent"], 1);
    assert_eq!(files.unwrap()["_server"], "files");
    let again = entries.last().unwrap();
    assert_eq!(again["request"]["_origin"], "replay");
    assert_eq!(again["response"]["_origin"], "proxy");
    insta::assert_snapshot!("hub-markdown", export(&session, "markdown"));
}

#[test]
fn an_import_brings_it_back() {
    let mut record = hub();
    let exported = export(&record.open(), "json");
    let source = record.beside("session.json");
    std::fs::write(&source, &exported).unwrap();
    let session = SessionRecord::open(&source).unwrap();
    assert_eq!(export(&session, "json"), exported);
}
