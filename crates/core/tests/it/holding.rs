//! Holding, changing and dropping messages, as conversations.

mod causes;
mod clocks;
mod endings;
mod limits;

use std::time::Duration;

use mcp_proxy_core::intercept::{HoldId, InterceptAction, JsonCheck, MessageEdit, ResolveError};
use mcp_proxy_core::{HoldOptions, HoldPolicy, HoldTimeout, InterceptMode};
use mcp_proxy_wire::Transport;

use crate::runtimes::by_runtime;
use crate::transcript::{holding, play_on};

const INTERCEPT: HoldOptions = HoldOptions {
    mode: InterceptMode::Intercept,
    timeout: HoldTimeout::After(HoldOptions::DEFAULT_TIMEOUT),
    policy: HoldPolicy::Forward,
    waits_for_viewer: false,
    progress: None,
};

async fn play(hold: HoldOptions, transcript: &str) {
    let connection = holding(None, hold).connect(Transport::Stdio, Transport::Stdio);
    play_on(&connection, transcript).await;
}

on_both_runtimes!(everything_waits_for_its_decision);
async fn everything_waits_for_its_decision() {
    play(
        INTERCEPT,
        r#"
        C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        ! forward 1
        S< {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
        S> {"jsonrpc":"2.0","id":1,"result":{"x":1}}
        ! modify 2 {"jsonrpc":"2.0","id":1,"result":{"x":2}}
        C< {"jsonrpc":"2.0","id":1,"result":{"x":2}}
        C> {"jsonrpc":"2.0","method":"notifications/n"}
        ! drop 3
        C> {"jsonrpc":"2.0","id":2,"method":"last"}
        ! error 4 -5 no
        C< ~"code":-5,"message":"no"
        C.
        S|
        "#,
    )
    .await;
}

on_both_runtimes!(global_intercept_keeps_order_whatever_is_decided_first);
async fn global_intercept_keeps_order_whatever_is_decided_first() {
    play(
        INTERCEPT,
        r#"
        C> {"method":"one"}
        C> {"method":"two"}
        C> {"method":"three"}
        ! forward 3
        ! forward 2
        ! forward 1
        S< {"method":"one"}
        S< {"method":"two"}
        S< {"method":"three"}
        C> {"method":"four"}
        C> {"method":"five"}
        ! held 5
        ! step
        S< {"method":"four"}
        ! passthrough
        C> {"method":"six"}
        S< {"method":"five"}
        S< {"method":"six"}
        C.
        S|
        "#,
    )
    .await;
}

on_both_runtimes!(a_breakpoint_holds_one_message_and_delays_no_other);
async fn a_breakpoint_holds_one_message_and_delays_no_other() {
    play(
        HoldOptions::default(),
        r#"
        ! break exec_cmd
        C> {"id":1,"method":"tools/call","params":{"name":"exec_cmd"}}
        ! held 1
        C> {"id":2,"method":"ping"}
        S< {"id":2,"method":"ping"}
        S> {"id":2,"result":{}}
        C< {"id":2,"result":{}}
        C> {"method":"notifications/cancelled","params":{"requestId":7}}
        S< ~cancelled
        ! modify 1 {"id":1,"method":"tools/call","params":{"name":"safe"}}
        S< ~safe
        C.
        S|
        S> {"id":1,"result":{}}
        C< {"id":1,"result":{}}
        S. done
        "#,
    )
    .await;
}

on_both_runtimes!(pings_and_cancels_are_held_only_by_a_filter_that_names_them);
async fn pings_and_cancels_are_held_only_by_a_filter_that_names_them() {
    play(
        HoldOptions::default(),
        r#"
        ! break .direction=="client_to_server"
        ! break tools/call
        C> {"id":1,"method":"ping"}
        S< {"id":1,"method":"ping"}
        C> {"method":"notifications/cancelled","params":{"requestId":7,"reason":"tools/call was slow"}}
        S< ~cancelled
        ! break .method=="ping"
        C> {"id":2,"method":"ping"}
        ! forward 3
        S< {"id":2,"method":"ping"}
        C.
        S|
        S. done
        "#,
    )
    .await;
}

on_both_runtimes!(an_error_answers_every_request_of_a_batch_or_replaces_every_answer);
async fn an_error_answers_every_request_of_a_batch_or_replaces_every_answer() {
    play(
        INTERCEPT,
        r#"
        C> [{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"}]
        ! error 1 -5 no
        C< [{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}},{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}}]
        C> [{"id":3,"method":"a"}]
        ! forward 3
        S< [{"id":3,"method":"a"}]
        S> [{"id":3,"result":{}}]
        ! error 4 -6 x
        C< [{"jsonrpc":"2.0","id":3,"error":{"code":-6,"message":"x"}}]
        C> [{"method":"n"}]
        ! error 5 -7 y
        C.
        S|
        "#,
    )
    .await;
}

on_both_runtimes!(a_held_request_that_is_cancelled_is_not_sent);
async fn a_held_request_that_is_cancelled_is_not_sent() {
    let options = HoldOptions::default();
    let connection = holding(None, options).connect(Transport::Stdio, Transport::Stdio);
    play_on(
        &connection,
        r#"
        ! break .tool == "exec_cmd" and .kind == "request"
        C> {"id":1,"method":"tools/call","params":{"name":"exec_cmd"}}
        C> {"id":"1","method":"tools/call","params":{"name":"exec_cmd"}}
        ! held 1
        C> {"method":"notifications/cancelled","params":{"requestId":1}}
        S< ~cancelled
        ! forward 2
        S< {"id":"1","method":"tools/call","params":{"name":"exec_cmd"}}
        C.
        S|
        S> {"id":"1","result":{}}
        C< {"id":"1","result":{}}
        S. done
        "#,
    )
    .await;
    let intercept = connection.run.intercept();
    // Viewers are told why.
    let decided = intercept.state().decided;
    let dropped = decided.iter().find(|one| one.hold == HoldId(1)).unwrap();
    assert_eq!(
        (&*dropped.by, dropped.action, &*dropped.why),
        ("proxy", "drop", "cancelled by its client")
    );
    let late = intercept.resolve(HoldId(1), InterceptAction::Forward, "test");
    assert!(
        matches!(&late, Err(ResolveError::Resolved(decided)) if decided.action == "drop"),
        "{late:?}"
    );
}

on_both_runtimes!(what_is_no_json_goes_on_only_when_it_is_meant);
async fn what_is_no_json_goes_on_only_when_it_is_meant() {
    let connection = holding(None, INTERCEPT).connect(Transport::Stdio, Transport::Stdio);
    let intercept = std::sync::Arc::clone(connection.run.intercept());
    let wrong = InterceptAction::Modify(MessageEdit::new("{nonsense", JsonCheck::Json));
    assert_eq!(
        intercept.resolve(HoldId(1), wrong, "test"),
        Err(ResolveError::NotJson)
    );
    play_on(
        &connection,
        r#"
        C> {"method":"one"}
        ! as-is 1 {nonsense
        S< {nonsense
        C.
        S|
        "#,
    )
    .await;
    let again = intercept.resolve(HoldId(1), InterceptAction::Drop, "other");
    let Err(ResolveError::Resolved(decided)) = again else {
        panic!("{again:?}")
    };
    assert_eq!(
        (decided.sequence, decided.action, &*decided.by),
        (1, "modify", "test")
    );
    let unknown = intercept.resolve(HoldId(99), InterceptAction::Drop, "other");
    assert_eq!(unknown, Err(ResolveError::Unknown(HoldId(99))));
}

on_both_runtimes!(at_its_deadline_the_policy_decides);
async fn at_its_deadline_the_policy_decides() {
    let conversation = |outcome: &str| {
        format!("C> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}}\n! held 1\n{outcome}\nC.\nS|")
    };
    let timeout = by_runtime(HoldOptions::DEFAULT_TIMEOUT, Duration::from_millis(300));
    let policy = |policy| HoldOptions {
        policy,
        timeout: HoldTimeout::After(timeout),
        ..INTERCEPT
    };
    let forwarded = "S< {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\nS. done\nC< ~done";
    let text =
        format!("C> {{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}}\n! held 1\n{forwarded}");
    play(policy(HoldPolicy::Forward), &text).await;
    play(policy(HoldPolicy::Error), &conversation("C< ~-31012")).await;
    play(policy(HoldPolicy::Drop), &conversation("")).await;
}

on_both_runtimes!(a_client_that_has_closed_its_end_is_still_served);
async fn a_client_that_has_closed_its_end_is_still_served() {
    play(
        INTERCEPT,
        r#"
        C> {"id":1,"method":"only"}
        C.
        ! forward 1
        S< {"id":1,"method":"only"}
        S|
        S> {"id":1,"result":{}}
        ! forward 2
        C< {"id":1,"result":{}}
        S. done
        "#,
    )
    .await;
}

on_both_runtimes!(a_client_that_asked_for_progress_is_told_that_it_waits);
async fn a_client_that_asked_for_progress_is_told_that_it_waits() {
    let hold = HoldOptions {
        progress: Some(by_runtime(
            Duration::from_secs(10),
            Duration::from_millis(50),
        )),
        ..INTERCEPT
    };
    play(
        hold,
        r#"
        C> {"id":1,"method":"m","params":{"_meta":{"progressToken":"p"}}}
        ! held 1
        C< ~notifications/progress ~ "progressToken":"p"
        C< ~notifications/progress ~ "progressToken":"p"
        ! drop 1
        C.
        S|
        "#,
    )
    .await;
}
