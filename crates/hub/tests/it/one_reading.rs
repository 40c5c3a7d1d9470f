//! A server gets the message that the hub has judged, in whatever way it reads JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_proxy_hub::{AllowedNames, ServerNaming, ServerSettings};
use proptest::prelude::*;
use serde_json::Value;

use crate::transcript::{Transcript, server, settings};

const TOOLS: &str = r#"[{"name":"echo","inputSchema":{"type":"object"}},{"name":"secret","inputSchema":{"type":"object"}}]"#;

/// A hub in front of a server with a tool that is denied, and one with a fixed and a hidden argument.
fn ruled() -> Transcript {
    let settings_of_server = server("a");
    let server = ServerSettings {
        naming: Arc::new(ServerNaming {
            tools: AllowedNames {
                allow: None,
                deny: vec!["secret".to_owned()],
                ..AllowedNames::default()
            },
            hidden_arguments: BTreeMap::from([("echo".to_owned(), vec!["hid".to_owned()])]),
            fixed_arguments: BTreeMap::from([(
                "echo".to_owned(),
                BTreeMap::from([("path".to_owned(), r#""/safe""#.to_owned())]),
            )]),
            ..ServerNaming::clone(&settings_of_server.naming)
        }),
        ..settings_of_server
    };
    let mut hub = Transcript::new(settings(), vec![server]);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub
}

/// What the server gets, and the code of the error that the client gets.
fn outcome(message: &str) -> (Vec<String>, Vec<i64>) {
    let mut hub = ruled();
    hub.client_says(1, message);
    let said = hub.take();
    let received = |peer: &str| {
        let lines = said.lines().filter_map(|line| line.strip_prefix(peer));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let answers = received("C1< ").into_iter();
    let codes = answers.filter_map(|answer| {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["error"]["code"].as_i64()
    });
    (received("S1< "), codes.collect())
}

#[test]
fn a1_a_message_that_can_be_read_in_two_ways_is_refused() {
    for message in [
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo","Name":"secret","arguments":{}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo","NAME":"secret","arguments":{}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"secret","name":"a_echo","arguments":{}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"n\u0061me":"secret","name":"a_echo"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name\u0000":"secret","name":"a_echo"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo"},"Params":{"name":"secret"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo"},"paramſ":{"name":"secret"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo"},"param\u017f":{"name":"secret"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"secret"},"params":{"name":"a_echo"}}"#,
        r#"{"id":1,"method":"tools/call","Method":"tools/list","params":{"name":"a_echo"}}"#,
        r#"{"id":1,"ID":2,"method":"tools/call","params":{"name":"a_echo"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo","arguments":{},"Arguments":{"path":"/evil"}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo","argumentſ":{"path":"/evil"}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo","_meta":{"progressToken":1,"ProgressToken":2}}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"proxy","arguments":{"action":"list"},"Name":"secret"}}"#,
        r#"{"id":1,"method":"resources/read","params":{"uri":"a://b","URI":"a://c"}}"#,
        r#"{"id":1,"method":"resources/subscribe","params":{"uri":"a://b","Uri":"a://c"}}"#,
        r#"{"id":1,"method":"prompts/get","params":{"name":"a_p","arguments":{},"Name":"bad"}}"#,
        r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a_p","Name":"bad"}}}"#,
        r#"{"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a_p","uri":"a://b"}}}"#,
        r#"[{"id":1,"method":"tools/call","params":{"name":"a_echo","Name":"secret"}}]"#,
    ] {
        assert_eq!(outcome(message), (vec![], vec![-32602]), "{message}");
    }
}

#[test]
fn a1_no_notification_or_answer_reaches_a_server_in_two_readings() {
    for message in [
        r#"{"method":"notifications/cancelled","params":{"requestId":1,"RequestId":3}}"#,
        r#"{"method":"notifications/progress","params":{"progressToken":"s1-1","ProgressToken":"x"}}"#,
        r#"{"id":"s1-1","result":{},"Method":"tools/call","Params":{"name":"secret"}}"#,
    ] {
        assert_eq!(outcome(message), (vec![], vec![]), "{message}");
    }
}

#[test]
fn a1_a_server_whose_question_is_answered_in_two_readings_gets_an_error() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, r#"{"elicitation":{}}"#);
    hub.take();
    hub.client_says(
        1,
        r#"{"id":1,"method":"tools/call","params":{"name":"a_echo"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#);
    let asked = hub.take();
    let question = asked.lines().find_map(|line| line.strip_prefix("C1< "));
    let question: Value = serde_json::from_str(question.unwrap()).unwrap();
    let id = &question["id"];
    hub.client_says(
        1,
        &format!(r#"{{"id":{id},"result":{{"action":"decline"}},"Result":{{}}}}"#),
    );
    let said = hub.take();
    let answer = said.lines().find_map(|line| line.strip_prefix("S1< "));
    let answer: Value = serde_json::from_str(answer.unwrap()).unwrap();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(answer["result"], Value::Null);
}

/// The arguments that the server gets from a call of `echo`, in the three ways to call it.
fn arguments_received(arguments: &str) -> Vec<Value> {
    let forms = [
        format!(r#"{{"name":"a_echo","arguments":{arguments}}}"#),
        format!(
            r#"{{"name":"proxy","arguments":{{"action":"call","type":"tool","path":"a_echo","args":{arguments}}}}}"#
        ),
        format!(
            r#"{{"name":"proxy","arguments":{{"action":"batch","operations":[{{"action":"call","type":"tool","path":"a_echo","args":{arguments}}}]}}}}"#
        ),
        format!(
            r#"{{"name":"proxy-dispatch","arguments":{{"action":"call","tool":"echo","arguments":{arguments},"meta":{{"ProgressToken":1}}}}}}"#
        ),
    ];
    forms
        .iter()
        .map(|params| {
            let message = format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#);
            let (received, codes) = outcome(&message);
            assert_eq!((received.len(), codes.len()), (1, 0), "{message}");
            let received: Value = serde_json::from_str(&received[0]).unwrap();
            assert_eq!(received["params"]["name"], "echo");
            assert_eq!(received["params"]["_meta"]["ProgressToken"], Value::Null);
            received["params"]["arguments"].clone()
        })
        .collect()
}

#[test]
fn a1_hidden_and_fixed_arguments_are_known_in_every_spelling() {
    for arguments in [
        r#"{"Hid":"EVIL","x":1}"#,
        r#"{"x":1,"PATH":"/evil","path":"/evil"}"#,
        r#"{"h\u0069d":1,"x":1,"pat\u0048":2}"#,
    ] {
        for received in arguments_received(arguments) {
            let expected = serde_json::json!({"x": 1, "path": "/safe"});
            assert_eq!(received, expected, "{arguments}");
        }
    }
}

#[test]
fn a10_arguments_with_a_rule_are_an_object() {
    for arguments in [
        r#""{\"path\":\"/evil\"}""#,
        r#"[{"path":"/evil"}]"#,
        "1",
        "true",
    ] {
        let message = format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"a_echo","arguments":{arguments}}}}}"#
        );
        assert_eq!(outcome(&message), (vec![], vec![-32602]), "{message}");
    }
    for params in [
        r#"{"name":"a_echo","arguments":null}"#,
        r#"{"name":"a_echo"}"#,
    ] {
        let message = format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#);
        let (received, _) = outcome(&message);
        let received: Value = serde_json::from_str(&received[0]).unwrap();
        assert_eq!(received["params"]["arguments"]["path"], "/safe");
    }
}

fn spelling(name: &'static str) -> impl Strategy<Value = String> {
    let letters = name.chars().map(|letter| {
        let capital = letter.to_ascii_uppercase();
        let odd = match letter {
            's' => 'ſ',
            'k' => '\u{212a}',
            letter => letter,
        };
        let escape = format!("\\u{:04x}", u32::from(capital));
        let letter = letter.to_string();
        prop_oneof![
            6 => Just(letter.clone()),
            1 => Just(capital.to_string()),
            1 => Just(odd.to_string()),
            1 => Just(escape),
        ]
    });
    letters
        .collect::<Vec<_>>()
        .prop_map(|letters| letters.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a1_every_reader_finds_the_tool_that_was_judged(
        first in spelling("name"),
        second in spelling("name"),
        params in spelling("params"),
        hidden in spelling("hid"),
        fixed in spelling("path"),
        is_secret_first: bool,
    ) {
        let (one, two) = if is_secret_first { ("secret", "a_echo") } else { ("a_echo", "secret") };
        let message = format!(
            r#"{{"id":1,"method":"tools/call","{params}":{{"{first}":"{one}","{second}":"{two}","arguments":{{"{hidden}":"EVIL","{fixed}":"/evil"}}}}}}"#
        );
        prop_assert_eq!(outcome(&message).0, Vec::<String>::new());
        let message = format!(
            r#"{{"id":1,"method":"tools/call","{params}":{{"{first}":"a_echo","arguments":{{"{hidden}":"EVIL","{fixed}":"/evil"}}}}}}"#
        );
        let (received, codes) = outcome(&message);
        let plain = |written: &str| serde_json::from_str::<String>(&format!("\"{written}\"")).unwrap();
        let is_plain = plain(&params) == "params" && plain(&first) == "name";
        prop_assert_eq!(received.len(), usize::from(is_plain));
        prop_assert_eq!(codes.len(), usize::from(!is_plain));
        for received in received {
            prop_assert!(!received.contains("EVIL") && !received.contains("/evil"), "{}", received);
        }
    }
}
