//! The header rules, case by case.

use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_proxy_wire::Message;
use mcp_proxy_wire::headers::*;

fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

#[test]
fn hop_by_hop_headers_go_and_the_rest_stays() {
    let mut headers = map(&[
        ("connection", "close, X-Own"),
        ("connection", "te"),
        ("x-own", "1"),
        ("te", "trailers"),
        ("keep-alive", "5"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("content-type", "text/plain"),
        ("mcp-session-id", "s"),
    ]);
    strip_hop_by_hop(&mut headers);
    let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(left, ["content-type", "mcp-session-id"]);
}

#[test]
fn what_is_not_removed_keeps_its_order() {
    let mut headers = map(&[
        ("host", "h"),
        ("connection", "x-own"),
        ("x-one", "1"),
        ("x-own", "2"),
        ("accept", "a"),
        ("accept", "b"),
        ("te", "trailers"),
        ("x-two", "3"),
    ]);
    strip_hop_by_hop(&mut headers);
    remove_in_order(&mut headers, |name| name == "host");
    let left: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let expected = [
        ("x-one", "1"),
        ("accept", "a"),
        ("accept", "b"),
        ("x-two", "3"),
    ];
    assert_eq!(left, expected);
}

#[test]
fn media_types_are_told_apart() {
    assert!(is_sse(&map(&[(
        "content-type",
        "Text/Event-Stream; charset=utf-8"
    )])));
    assert!(is_json(&map(&[(
        "content-type",
        "application/json;charset=utf-8"
    )])));
    assert!(!is_json(&map(&[("content-type", "application/jsonp")])));
    assert!(!is_sse(&HeaderMap::new()));
}

#[test]
fn accept_is_read_with_ranges_and_weights() {
    let both = map(&[("accept", "application/json, text/event-stream")]);
    assert!(accepts_sse(&both));
    let json = map(&[("accept", "application/json")]);
    assert!(!accepts_sse(&json));
    let any = map(&[("accept", "*/*")]);
    assert!(accepts_sse(&any));
    let two = map(&[
        ("accept", "text/*;q=0.1"),
        ("accept", "application/json;q=0"),
    ]);
    assert!(accepts_sse(&two));
    let none = map(&[("accept", "application/json, text/event-stream;q=0")]);
    assert!(!accepts_sse(&none));
    assert!(accepts_sse(&HeaderMap::new()));
}

#[test]
fn values_read_back() {
    let table = [
        ("us-west1", "us-west1"),
        ("two words", "two words"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
    ];
    for (text, header) in table {
        let value = encode_value(text);
        assert_eq!(value, header);
        assert_eq!(decode_value(value.as_bytes()).as_deref(), Some(text));
    }
    assert_eq!(decode_value(b"=?base64?%%?="), None);
    assert_eq!(decode_value(b"=?base64?//79?="), None);
    assert_eq!(decode_value(b"=?base64?="), Some("=?base64?=".to_owned()));
    assert_eq!(decode_value(b"\xff"), None);
}

#[test]
fn annotated_arguments_are_found() {
    let schema = br#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
        "list":{"type":"array","items":{"type":"string","x-mcp-header":"No"}},
        "bad":{"type":"string","x-mcp-header":"a b"},
        "empty":{"type":"string","x-mcp-header":""},
        "object":{"type":"object","x-mcp-header":"Obj"},
        "twice":{"type":"string","x-mcp-header":"region"}}}"#;
    let found = param_headers(schema);
    let paths: Vec<_> = found
        .iter()
        .map(|header| (header.name.as_str(), header.path.join(".")))
        .collect();
    assert_eq!(
        paths,
        [("Region", "region".to_owned()), ("N", "deep.n".to_owned())]
    );
    assert!(param_headers(b"no schema").is_empty());
}

const CALL: &str = r#"{"id":1,"method":"tools/call","params":{"name":"caf\u00e9","arguments":{"region":"eu","deep":{"n":1e1},"none":null,"on":true},
    "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

fn param(name: &str, path: &[&str]) -> ParamHeader {
    ParamHeader {
        name: name.to_owned(),
        path: path.iter().map(|&key| key.to_owned()).collect(),
    }
}

#[test]
fn a_request_gets_its_headers() {
    let params = [
        param("Region", &["region"]),
        param("N", &["deep", "n"]),
        param("None", &["none"]),
        param("On", &["on"]),
        param("X", &["y"]),
    ];
    let headers = modern_request_headers(&Message::parse(CALL), &params);
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let expected = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Y2Fmw6k=?="),
        ("mcp-param-region", "eu"),
        ("mcp-param-n", "10"),
        ("mcp-param-on", "true"),
    ];
    assert_eq!(headers, expected);
    let name = |text: &str| {
        let headers = modern_request_headers(&Message::parse(text.to_owned()), &[]);
        headers
            .into_iter()
            .find(|(name, _)| *name == MCP_NAME)
            .map(|(_, value)| value)
    };
    assert_eq!(
        name(r#"{"id":1,"method":"resources/read","params":{"uri":"a:b"}}"#).unwrap(),
        "a:b"
    );
    assert_eq!(
        name(r#"{"id":1,"method":"tasks/get","params":{"taskId":"t"}}"#).unwrap(),
        "t"
    );
    assert_eq!(
        name(r#"{"id":1,"method":"tools/list","params":{"name":"t"}}"#),
        None
    );
}

#[test]
fn headers_are_checked_against_the_body() {
    let call = Message::parse(CALL);
    let good = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Y2Fmw6k=?="),
    ];
    assert_eq!(check_modern_headers(&map(&good), &call, &[]), Ok(()));
    for missing in 0..3 {
        let mut headers = good.to_vec();
        headers.remove(missing);
        assert!(matches!(
            check_modern_headers(&map(&headers), &call, &[]),
            Err(HeaderFault::Missing(_))
        ));
        let mut headers = good.to_vec();
        headers.push(good[missing]);
        assert!(matches!(
            check_modern_headers(&map(&headers), &call, &[]),
            Err(HeaderFault::Repeated(_))
        ));
        let mut headers = good;
        headers[missing].1 = "Tools/call";
        assert!(matches!(
            check_modern_headers(&map(&headers), &call, &[]),
            Err(HeaderFault::Different { .. })
        ));
        headers[missing].1 = "=?base64?!?=";
        assert!(matches!(
            check_modern_headers(&map(&headers), &call, &[]),
            Err(HeaderFault::Unreadable(_))
        ));
    }
    let notification = Message::parse(r#"{"method":"notifications/cancelled","params":{}}"#);
    assert_eq!(
        check_modern_headers(&map(&good[..1]), &notification, &[]),
        Ok(())
    );
    assert!(check_modern_headers(&map(&good[1..2]), &notification, &[]).is_err());
}

#[test]
fn headers_follow_an_edit_of_the_body() {
    let call = Message::parse(
        r#"{"method":"tools/call","params":{"name":"a","arguments":{"region":"eu","q":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    );
    let sent = map(&[
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "a"),
        ("mcp-param-region", "eu"),
        ("authorization", "t"),
    ]);
    let edited = |body: &str, params: &[ParamHeader]| {
        let mut headers = sent.clone();
        update_headers_for_edit(
            &mut headers,
            &call,
            &Message::parse(body.to_owned()),
            params,
        );
        let keys = [
            "mcp-method",
            "mcp-name",
            "mcp-param-region",
            "authorization",
        ];
        keys.map(|key| {
            headers
                .get(key)
                .map(|value| value.to_str().unwrap().to_owned())
        })
        .map(|value| value.unwrap_or_default())
        .join(" ")
    };
    // The name is gone with the call, and so are its arguments.
    assert_eq!(edited(r#"{"method":"tools/list"}"#, &[]), "tools/list   t");
    let other = r#"{"method":"tools/call","params":{"name":"b","arguments":{}}}"#;
    assert_eq!(edited(other, &[]), "tools/call b  t");
    let same = r#"{"method":"tools/call","params":{"name":"a","arguments":{"region":"us","q":2}}}"#;
    assert_eq!(
        edited(same, &[]),
        "tools/call a eu t",
        "nobody knows better"
    );
    let region = [ParamHeader {
        name: "region".to_owned(),
        path: vec!["region".to_owned()],
    }];
    assert_eq!(edited(same, &region), "tools/call a us t");
    let mut headers = sent.clone();
    let list = Message::parse(r#"{"method":"tools/list"}"#);
    update_headers_for_edit(&mut headers, &call, &list, &[]);
    let left: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
    let wanted = ["mcp-protocol-version", "mcp-method", "authorization"];
    assert_eq!(left, wanted, "the others keep their order");
    let mut legacy = map(&[("mcp-protocol-version", "2025-11-25")]);
    update_headers_for_edit(&mut legacy, &call, &Message::parse(other), &[]);
    assert_eq!(legacy.len(), 1, "a legacy request has none of them");
}

#[test]
fn a_call_shows_which_arguments_its_headers_repeat() {
    let call = Message::parse(
        r#"{"method":"tools/call","params":{"name":"a","arguments":{"other":"eu","at":{"userId":7,"on":[true]},"region":"eu","x":"\u00e9"}}}"#,
    );
    let shown = |headers: &[(&str, &str)]| {
        let params = infer_param_headers(&map(headers), &call);
        let params = params
            .iter()
            .map(|it| format!("{}={}", it.name, it.path.join(".")));
        params.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        shown(&[("mcp-param-region", "eu"), ("mcp-param-user-id", "7")]),
        "region=region user-id=at.userId"
    );
    // By the value alone, encoded or not; what nothing says is not known.
    assert_eq!(shown(&[("mcp-param-k", "=?base64?w6k=?=")]), "k=x");
    assert_eq!(
        shown(&[("mcp-param-on", "true"), ("mcp-param-z", "no")]),
        ""
    );
    assert_eq!(shown(&[("mcp-method", "eu")]), "");
}

#[test]
fn the_status_follows_the_code() {
    let status = |code: i64| {
        modern_status(&Message::parse(format!(
            r#"{{"id":1,"error":{{"code":{code}}}}}"#
        )))
    };
    assert_eq!(
        [-32601, -32020, -32021, -32022, -32700, -32600].map(status),
        [404, 400, 400, 400, 400, 400]
    );
    assert_eq!([-32602, -32603, -31001].map(status), [200, 200, 200]);
    assert_eq!(
        modern_status(&Message::parse(r#"{"id":1,"result":{}}"#)),
        200
    );
}
