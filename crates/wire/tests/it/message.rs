//! What a message is, and what a splice leaves alone.

use mcp_proxy_wire::{
    EMBED_DEPTH, ErrorCode, Field, Id, Kind, Message, Span, SpliceError, error_response,
};

fn message(text: &str) -> Message {
    Message::parse(text.to_owned())
}

#[test]
fn the_kind_follows_from_the_shape() {
    let table = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, Kind::Request),
        (r#"{"id":null,"method":"a"}"#, Kind::Request),
        (r#"{"method":"a"}"#, Kind::Notification),
        (r#"{"id":1,"result":null}"#, Kind::Response),
        (r#"{"id":1,"error":{}}"#, Kind::Error),
        (r#"{"id":1,"result":null,"error":{}}"#, Kind::Error),
        (r#"{"id":1,"result":{},"error":null}"#, Kind::Response),
        (r#"{"id":1,"result":{},"method":"a"}"#, Kind::Request),
        (r#"{"id":1}"#, Kind::Other),
        ("[]", Kind::Batch),
        ("[1]", Kind::Batch),
        ("7", Kind::Other),
        ("\u{feff}{\"method\":\"a\"}", Kind::Notification),
        (" \r\n{\"method\":\"a\"}\t", Kind::Notification),
        ("", Kind::Malformed),
        (r#"{"method":"a""#, Kind::Malformed),
        (r#"{"method":"a"} x"#, Kind::Malformed),
    ];
    for (text, kind) in table {
        assert_eq!(message(text).kind(), kind, "{text}");
    }
}

#[test]
fn the_head_of_broken_bytes_stays_known() {
    let broken = message(r#"{"id":9,"method":"tools/call","params":{"a":[}}"#);
    assert_eq!(
        (broken.kind(), broken.id(), broken.method().as_deref()),
        (Kind::Malformed, Some(Id::number(9)), Some("tools/call"))
    );
    assert!(!broken.is_json() && broken.params().is_none());
    assert!(broken.has_id_and_method() && !broken.expects_answer());
    let cut = message(r#"{"method":"a","id":12"#);
    assert_eq!(cut.id(), None, "it may be the beginning of 123");
    let latin = Message::parse(b"{\"id\":1,\"method\":\"caf\xe9\"}".as_slice());
    assert_eq!(
        (latin.kind(), latin.method().as_deref()),
        (Kind::Malformed, Some("caf\u{fffd}"))
    );
    let deep = message(&format!(
        r#"{{"id":1,"method":"m","params":{}"#,
        "[".repeat(1200)
    ));
    assert_eq!(
        (deep.kind(), deep.id()),
        (Kind::Malformed, Some(Id::number(1)))
    );
    assert!(
        latin.expects_answer() && deep.expects_answer(),
        "others may read them"
    );
}

#[test]
fn what_may_stand_inside_a_line_is_told() {
    assert!(message(r#"{"a":"x\ny"}"#).fits_in_json_line());
    assert!(!message("{\n}").fits_in_json_line());
    assert!(!message("\u{feff}{}").fits_in_json_line());
    assert!(!message("\u{feff}{}").is_json());
    assert!(message(" {}\t").is_json());
    let nested = |depth: usize| message(&("[".repeat(depth) + &"]".repeat(depth)));
    assert!(nested(EMBED_DEPTH).fits_in_json_line());
    assert!(!nested(EMBED_DEPTH + 1).fits_in_json_line());
    assert!(nested(EMBED_DEPTH + 1).is_json());
}

#[test]
fn fields_are_looked_up_below_the_head() {
    let text = r#"{"id":1,"method":"tools/call","params":{"name":"x","na\u006de":"\u0065cho","uri":"u","progressToken":"p",
        "requestId":"r","_meta":{"progressToken":5,"a.b/c":"m"},"arguments":{"name":"no"}}}"#;
    let call = message(text);
    let token = |field| {
        call.span(field)
            .map(|span| String::from_utf8_lossy(call.slice(span)).into_owned())
    };
    assert_eq!(call.text(Field::Name).as_deref(), Some("echo"));
    assert_eq!(token(Field::Uri).as_deref(), Some("\"u\""));
    assert_eq!(token(Field::ProgressToken).as_deref(), Some("\"p\""));
    assert_eq!(token(Field::RequestId).as_deref(), Some("\"r\""));
    assert_eq!(token(Field::Meta("progressToken")).as_deref(), Some("5"));
    assert_eq!(call.text(Field::Meta("progressToken")), None);
    assert_eq!(call.text(Field::Meta("a.b/c")).as_deref(), Some("m"));
    assert_eq!(
        token(Field::Param("arguments")).as_deref(),
        Some(r#"{"name":"no"}"#)
    );
    assert_eq!(token(Field::Param("none")), None);
    assert_eq!(token(Field::ResultField("x")), None);
    let answer = message(r#"{"id":1,"result":{"resultType":"task","_meta":{"k":[1]}}}"#);
    assert_eq!(
        answer.text(Field::ResultField("resultType")).as_deref(),
        Some("task")
    );
    assert_eq!(
        answer
            .span(Field::ResultMeta("k"))
            .map(|span| answer.slice(span)),
        Some(b"[1]".as_slice())
    );
}

#[test]
fn error_codes_are_read_in_any_spelling() {
    let code = |text: &str| {
        message(&format!(
            r#"{{"id":1,"error":{{"message":"m","code":{text}}}}}"#
        ))
        .error_code()
    };
    assert_eq!(code("-32601"), Some(-32601));
    assert_eq!(code("-32601.0"), Some(-32601));
    assert_eq!(code("1e3"), Some(1000));
    assert_eq!(code("1.5"), None);
    assert_eq!(code("\"1\""), None);
    assert_eq!(code("1e400"), None);
    assert_eq!(
        error_response(None, ErrorCode::INTERNAL, "", None).error_code(),
        Some(-32603)
    );
}

#[test]
fn a_batch_has_parts_on_the_same_bytes() {
    let batch = message("\u{feff} [ {\"id\":1,\"method\":\"a\"} , 2,[{\"id\":3,\"result\":0}] ]");
    let parts = batch.parts().unwrap();
    assert_eq!(
        parts.iter().map(Message::kind).collect::<Vec<_>>(),
        [Kind::Request, Kind::Other, Kind::Batch]
    );
    assert_eq!(parts[0].raw().as_ptr(), batch.raw()[6..].as_ptr());
    assert_eq!(message("[]").parts().map(|parts| parts.len()), Some(0));
    assert!(message("{}").parts().is_none());
    assert!(message("[{},").parts().is_none());
}

#[test]
fn a_splice_changes_its_span_only() {
    let call = message(r#"{ "id":1, "method" : "tools/call","params":{"name":"a", "x":1.0} }"#);
    let id = call.span(Field::Id).unwrap();
    let name = call.span(Field::Name).unwrap();
    let changed = call
        .splice(&[(id, b"\"s:1\""), (name, b"\"longer\"")])
        .unwrap();
    assert_eq!(
        changed.raw().as_ref(),
        br#"{ "id":"s:1", "method" : "tools/call","params":{"name":"longer", "x":1.0} }"#
    );
    assert_eq!(changed.id(), Some(Id::string("s:1")));
    assert_eq!(call.splice(&[]).unwrap().raw(), call.raw());
    let before = Span::new(1, 1);
    assert!(
        call.splice(&[(before, b"\"x\":0,")])
            .unwrap()
            .raw()
            .starts_with(b"{\"x\":0, \"id\"")
    );
}

#[test]
fn a_wrong_splice_is_refused() {
    let call = message(r#"{"id":1}"#);
    let out = Span::new(3, 99);
    assert_eq!(
        call.splice(&[(out, b"")]).err(),
        Some(SpliceError::OutOfRange(out))
    );
    let (one, two) = (Span::new(3, 6), Span::new(5, 7));
    assert_eq!(
        call.splice(&[(one, b""), (two, b"")]).err(),
        Some(SpliceError::Overlap(two))
    );
    let turned = Span { start: 4, end: 2 };
    assert_eq!(
        call.splice(&[(turned, b"")]).err(),
        Some(SpliceError::OutOfRange(turned))
    );
    assert_eq!(call.slice(out), b"");
}

#[test]
fn a_message_is_restated_under_another_id_with_the_members_of_json_rpc_alone() {
    let cases = [
        (
            r#"{ "x":1,"id":1, "params" : {"a":{"b":1},"c":2},"method":"m","result":5}"#,
            "{}",
            r#"{"jsonrpc":"2.0","id":"new","method":"m","params":{"a":{},"c":2}}"#,
        ),
        (
            r#"{"result":{"a":null},"id":1}"#,
            "[\n1]",
            "{\"jsonrpc\":\"2.0\",\"id\":\"new\",\"result\":{\"a\":[\n1]}}",
        ),
        (
            "{\"id\":1,\n\"error\":{\"code\":1,\"a\":\"b\"},\"result\":null}",
            r#""c""#,
            r#"{"jsonrpc":"2.0","id":"new","error":{"code":1,"a":"c"}}"#,
        ),
    ];
    for (text, new, expected) in cases {
        let before = message(text);
        let object = before.params().or(before.error()).or(before.result());
        let edited = before.member(object.unwrap(), "a").unwrap();
        let edits = [(edited, new.as_bytes())];
        let restated = before.restated(&Id::string("new"), &edits).unwrap();
        let read = message(expected);
        assert_eq!(restated.raw(), read.raw());
        assert_eq!(restated.kind(), read.kind());
        assert_eq!(restated.id(), read.id());
        let spans = |message: &Message| [message.params(), message.result(), message.error()];
        assert_eq!(spans(&restated), spans(&read), "{text}");
        assert_eq!(restated.method(), read.method());
        assert_eq!(restated.has_line_break(), read.has_line_break());
    }
    for text in ["[]", "{", r#"{"method":"m"}"#, "17"] {
        assert!(message(text).restated(&Id::string("new"), &[]).is_none());
    }
}
