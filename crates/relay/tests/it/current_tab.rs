//! `currentTab` in an answer is the caller's own.

use mcp_proxy_wire::Message;

use crate::scenes::{two_clients, with_tab};

#[test]
fn the_current_tab_in_an_answer_is_the_callers_own() {
    let mut conversation = two_clients();
    conversation.continue_with(
        r#"
        B> {"id":2,"method":"getTabs"}
        E< {"id":"conn-2:2"}
        E> {"id":"conn-2:2","result":{"tabs":[{"id":11}],"currentTab":{"id":11,"title":"a"}}}
        B< {"id":2,"result":{"tabs":[{"id":11}],"currentTab":null}}
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","result":{"currentTab":{"id":77,"title":"b"},"data":"x"}}
        A< {"id":3,"result":{"currentTab":{"id":11,"title":"a"},"data":"x"}}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        E> {"id":"conn-1:4","result":{"currentTab":{"id":11,"title":"new"}}}
        A< {"id":4,"result":{"currentTab":{"id":11,"title":"new"}}}
        "#,
    );
}

#[test]
fn the_current_tab_in_an_error_is_the_callers_own() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"screenshot"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3","error":{"code":-32000,"message":"no","data":{"currentTab":{"id":77},"x":1.50}}}
        A<= {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"no","data":{"currentTab":{"id":11,"title":"a"},"x":1.5}}}
        A> {"id":4,"method":"screenshot"}
        E< {"id":"conn-1:4"}
        E> {"id":"conn-1:4","error":{"message":"no","stack":"at x","currentTab":"other","data":{"currentTab":null}}}
        A<= {"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"no","currentTab":{"id":11,"title":"a"},"data":{"currentTab":null}}}
        A> {"id":5,"method":"closeTab"}
        E< {"id":"conn-1:5"}
        E> {"id":"conn-1:5","error":{"code":-1,"message":"no","data":{"current\u0054ab":{"id":11,"title":"newer"}}}}
        A<= {"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no","data":{"currentTab":{"id":11,"title":"newer"}}}}
        "#,
    );
}

#[test]
fn every_current_tab_of_an_answer_is_the_callers_own() {
    let mut conversation = with_tab();
    let own = r#"{"id":11,"title":"a"}"#;
    for (id, result, expected) in [
        (
            3,
            r#"{"currentTab":{"id":7},"a":1.0,"currentTab":{"id":8}}"#.to_owned(),
            format!(r#"{{"currentTab":{own},"a":1.0,"currentTab":{own}}}"#),
        ),
        (
            4,
            r#"{"current\u0054ab":{"id":7}, "currentTab": null }"#.to_owned(),
            format!(r#"{{"current\u0054ab":{own}, "currentTab": null }}"#),
        ),
        (
            5,
            format!(r#"{{"currentTab":{{"id":7}},"currentTab":{own}}}"#),
            format!(r#"{{"currentTab":{own},"currentTab":{own}}}"#),
        ),
    ] {
        let request = format!(r#"{{"id":{id},"method":"screenshot"}}"#);
        let (client, now) = (conversation.socket("A"), conversation.now());
        let extension = conversation.socket("E");
        conversation
            .relay
            .message(client, Message::parse(request), now);
        let answer = format!(r#"{{"id":"conn-1:{id}","result":{result}}}"#);
        conversation.relay.take(extension, 1 << 20, now);
        conversation
            .relay
            .message(extension, Message::parse(answer), now);
        let heard = conversation.relay.take(client, 1 << 20, now).messages;
        assert_eq!(
            std::str::from_utf8(heard[0].raw()).unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{expected}}}"#)
        );
    }
}

#[test]
fn an_answer_that_cannot_be_read_leaves_no_current_tab() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":3,"method":"createTab"}
        E< {"id":"conn-1:3"}
        E> {"id":"conn-1:3"}
        A< {"id":3,"error":{"code":-32603}}
        A> {"id":4,"method":"screenshot"}
        A< {"id":4,"error":{"code":-32003,"data":{"reason":"no_tab"}}}
        "#,
    );
}

#[test]
fn a_current_tab_in_any_form_is_the_callers_own() {
    let mut conversation = with_tab();
    for (id, shown) in [
        (3, r#"{"tabId":99,"title":"other"}"#),
        (4, r#""other""#),
        (5, r#"[{"id":99}]"#),
        (6, r#"{"tab":{"id":99}}"#),
    ] {
        conversation.continue_with(&format!(
            r#"
            A> {{"id":{id},"method":"screenshot"}}
            E< {{"id":"conn-1:{id}"}}
            E> {{"id":"conn-1:{id}","result":{{"currentTab":{shown}}}}}
            A<= {{"jsonrpc":"2.0","id":{id},"result":{{"currentTab":{{"id":11,"title":"a"}}}}}}
            "#
        ));
    }
}

#[test]
fn the_bytes_of_a_result_are_those_of_the_extension() {
    let mut conversation = with_tab();
    conversation.continue_with(
        r#"
        A> {"id":"\u0078","method":"screenshot"}
        E< {"id":"conn-1:x"}
        "#,
    );
    let (client, extension) = (conversation.socket("A"), conversation.socket("E"));
    let now = conversation.now();
    let answer =
        r#"{ "id" : "conn-1:x", "result" : [1.0, "\u00e9", {"currentTab": 1e2} ] , "more": 1 }"#;
    conversation
        .relay
        .message(extension, Message::parse(answer), now);
    let heard = conversation.relay.take(client, 1 << 20, now).messages;
    assert_eq!(
        std::str::from_utf8(heard[0].raw()).unwrap(),
        r#"{"jsonrpc":"2.0","id":"\u0078","result":[1.0, "\u00e9", {"currentTab": 1e2} ]}"#
    );
}
