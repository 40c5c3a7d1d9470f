//! Sockets before they are authenticated, and messages that mean nothing.

use mcp_proxy_relay::{
    AuthenticationStep, RelayAccess, RelayClose, SocketAuthentication, SocketOutput, SocketPath,
    SocketRole, TokenRefusal,
};
use mcp_proxy_wire::Message;
use serde_json::Value;

use crate::scenes::connected;
use crate::transcript::play;

fn step(path: SocketPath, message: &str) -> AuthenticationStep {
    SocketAuthentication::new(path, RelayAccess::Tokens)
        .message(&Message::parse(message.to_owned()))
}

#[test]
fn only_extensions_are_asked_who_they_are() {
    for path in [SocketPath::Extension, SocketPath::Any] {
        let first = SocketAuthentication::new(path, RelayAccess::Tokens)
            .first_message()
            .unwrap();
        let first: Value = serde_json::from_slice(first.raw()).unwrap();
        let asked =
            serde_json::json!({"jsonrpc":"2.0","id":"proxy:1","method":"authenticate","params":{}});
        assert_eq!(first, asked);
    }
    let client = SocketAuthentication::new(SocketPath::Client, RelayAccess::Tokens);
    assert!(client.first_message().is_none());
}

#[test]
fn credentials_are_taken_in_both_spellings_and_the_role_is_detected() {
    let extension = |token: &str, id: &str| {
        format!(
            r#"{{"id":"proxy:1","result":{{"name":"Chrome 141","{token}":"t","{id}":"chrome-1"}}}}"#
        )
    };
    let client = |token: &str, id: &str| {
        format!(r#"{{"id":1,"method":"mcp_handshake","params":{{"{token}":"t","{id}":"c-1"}}}}"#)
    };
    let spellings = [("accessToken", "client_id"), ("access_token", "clientId")];
    for (token, id) in spellings {
        for path in [SocketPath::Extension, SocketPath::Any] {
            let AuthenticationStep::Check(shown) = step(path, &extension(token, id)) else {
                panic!("{path:?} did not take {token}");
            };
            assert_eq!((shown.role, &*shown.token), (SocketRole::Extension, "t"));
            assert_eq!(shown.client_id.as_deref(), Some("chrome-1"));
        }
        for path in [SocketPath::Client, SocketPath::Any] {
            let AuthenticationStep::Check(shown) = step(path, &client(token, id)) else {
                panic!("{path:?} did not take {token}");
            };
            assert_eq!((shown.role, &*shown.token), (SocketRole::Client, "t"));
            assert!(!format!("{shown:?}").contains("\"t\""));
        }
    }
}

#[test]
fn a_client_that_may_come_again_is_told_when_and_an_extension_is_closed() {
    let handshake = r#"{"id":1,"method":"mcp_handshake","params":{"accessToken":"t"}}"#;
    let answer = r#"{"id":"proxy:1","result":{"accessToken":"t"}}"#;
    let shown = |message| match step(SocketPath::Any, message) {
        AuthenticationStep::Check(shown) => shown,
        other => panic!("{other:?}"),
    };
    let (client, extension) = (shown(handshake), shown(answer));
    let told = |output: &SocketOutput| {
        let error: Value = serde_json::from_slice(output.messages[0].raw()).unwrap();
        let data = &error["error"]["data"];
        let close = output.close.map(RelayClose::code);
        (
            error["error"]["code"].as_i64(),
            data["reason"].as_str().map(str::to_owned),
            data["retry_after_ms"].as_u64(),
            close,
        )
    };
    let full = (
        Some(-32006),
        Some("admission_limit".to_owned()),
        Some(10_000),
        Some(1013),
    );
    assert_eq!(told(&client.overload()), full);
    let unchecked = (
        Some(-32000),
        Some("keys_unavailable".to_owned()),
        Some(30_000),
        Some(1013),
    );
    let refusal = TokenRefusal::KeysUnavailable;
    assert_eq!(told(&client.refusal(refusal)), unchecked);
    for output in [extension.overload(), extension.refusal(refusal)] {
        assert!(output.messages.is_empty());
        assert_eq!(output.close.map(RelayClose::code), Some(1013));
    }
}

#[test]
fn nothing_else_works_before_the_handshake() {
    for (message, code) in [
        (r#"{"id":1,"method":"list_extensions"}"#, -32002),
        (r#"{"id":1,"method":"createTab"}"#, -32002),
        (r#"{"id":1,"method":"mcp_handshake","params":{}}"#, -32602),
        (
            r#"{"id":1,"method":"mcp_handshake","params":{"accessToken":5}}"#,
            -32602,
        ),
        (
            r#"{"id":null,"method":"mcp_handshake","params":{"accessToken":"t"}}"#,
            -32600,
        ),
        ("[]", -32600),
        ("nonsense", -32700),
    ] {
        let AuthenticationStep::Wait(output) = step(SocketPath::Client, message) else {
            panic!("{message} was taken");
        };
        let answer: Value = serde_json::from_slice(output.messages[0].raw()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{message}");
        assert_eq!(output.close, None, "{message}");
    }
}

#[test]
fn an_extension_without_a_token_is_closed_and_other_words_of_it_mean_nothing() {
    let AuthenticationStep::Wait(output) = step(
        SocketPath::Extension,
        r#"{"id":"proxy:1","result":{"name":"x"}}"#,
    ) else {
        panic!("it was taken");
    };
    assert!(output.messages.is_empty());
    assert!(matches!(output.close, Some(RelayClose::Unauthorized(_))));
    for message in [
        r#"{"type":"handshake","browser":"chrome","version":"1"}"#,
        r#"{"id":1,"method":"mcp_handshake","params":{"accessToken":"t"}}"#,
        r#"{"id":"proxy:2","result":{"accessToken":"t"}}"#,
        "nonsense",
    ] {
        let AuthenticationStep::Wait(output) = step(SocketPath::Extension, message) else {
            panic!("{message} was taken");
        };
        assert!(output.is_empty(), "{message}");
    }
}

#[test]
fn what_is_not_a_request_is_refused_or_ignored() {
    let mut conversation = connected();
    conversation.continue_with(
        r#"
        A> nonsense
        A< {"id":null,"error":{"code":-32700}}
        A> [{"id":1,"method":"getTabs"}]
        A< {"id":null,"error":{"code":-32600}}
        A> {"id":1.5,"method":"getTabs"}
        A< {"id":1.5,"error":{"code":-32600}}
        A> {"id":null,"method":"getTabs"}
        A< {"id":null,"error":{"code":-32600}}
        A> {"id":"proxy:1","method":"getTabs"}
        A< {"id":"proxy:1","error":{"code":-32600}}
        A> {"id":"ext:1","method":"getTabs"}
        A< {"id":"ext:1","error":{"code":-32600}}
        A> {"id":5,"method":7}
        A< {"id":5,"error":{"code":-32600}}
        A> {"id":5,"method":"getTabs","params":[1]}
        A< {"id":5,"error":{"code":-32602}}
        A> {"method":"getTabs"}
        A> {"id":"proxy:1","result":{}}
        A> {"id":6,"method":"authenticate","params":{}}
        A< {"id":6,"error":{"code":-32601}}
        A> {"id":6,"method":"serverShuttingDown"}
        A< {"id":6,"error":{"code":-32601}}
        A> {"id":6,"method":"getTabs","connectionId":"conn-2"}
        A< {"id":6,"error":{"code":-32003,"data":{"reason":"wrong_connection"}}}
        A> {"id":6,"method":"getTabs","connectionId":7}
        A< {"id":6,"error":{"code":-32003}}
        "#,
    );
    assert_eq!(conversation.relay.counters().ignored, 2);
}

#[test]
fn a_client_id_may_be_any_short_text_and_others_are_told_that_theirs_is_not_used() {
    play(
        r#"
        A+ /mcp
        A> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"Prüfung im Browser"}}
        A<= {"jsonrpc":"2.0","id":1,"result":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-Prüfung im Browser"}}
        B+ /mcp
        B> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"a\u0000b"}}
        B< {"id":1,"result":{"mcp_client_id":"mcp-1","client_id_ignored":true}}
        C+ /mcp
        C> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":7}}
        C< {"id":1,"result":{"mcp_client_id":"mcp-2","client_id_ignored":true}}
        D+ /mcp
        D> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":null}}
        D<= {"jsonrpc":"2.0","id":1,"result":{"authenticated":true,"user_id":"ada","mcp_client_id":"mcp-3"}}
        E+ /extension
        E< {"method":"authenticate"}
        E> {"id":"proxy:1","result":{"accessToken":"token-ada","client_id":" "}}
        E< {"method":"authenticated","params":{"extension_id":"ext-4","client_id_ignored":true}}
        F+ /mcp
        F> {"id":1,"method":"mcp_handshake","params":{"accessToken":"token-ada","client_id":"x eyJhbGciOi.eyJzdWIi.c2ln"}}
        F< {"id":1,"result":{"mcp_client_id":"mcp-5","client_id_ignored":true}}
        "#,
    );
}
