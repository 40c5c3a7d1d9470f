//! What clients of a hub call, under public names.

use super::setup::{SERVERS, server_name, tool_prefix};
use crate::canned::{self, AnswerSize, BenchEra};
use crate::load::{ExpectedAnswer, LoadCall};

/// One call for each server.
pub fn of_all_servers() -> Vec<LoadCall> {
    let call = |index| LoadCall::of_tool(BenchEra::Legacy, &public_name(index));
    (0..SERVERS).map(call).collect()
}

/// The first of them, as the tool `proxy` takes it.
pub fn through_proxy_tool() -> LoadCall {
    LoadCall {
        tool: "proxy".to_owned(),
        body: canned::call_through_proxy_tool(&public_name(0)),
        answer: ExpectedAnswer::Sized(AnswerSize::Small),
    }
}

/// The same for the tool `proxy-dispatch`.
pub fn through_dispatcher() -> LoadCall {
    LoadCall::of_dispatcher(canned::dispatched_call(&public_name(0)), canned::LINE_START)
}

/// A call of the first server through `proxy-dispatch`, whose result of `size` goes to a file.
pub fn to_file(size: AnswerSize) -> LoadCall {
    let tool = short_public_name(0, size);
    LoadCall::of_dispatcher(canned::dispatched_call_to_file(&tool), canned::IN_A_FILE)
}

/// Small calls of all other servers: the first is busy with its large results.
pub fn of_other_servers() -> Vec<LoadCall> {
    let call = |index| {
        LoadCall::of_tool(
            BenchEra::Legacy,
            &short_public_name(index, AnswerSize::Small),
        )
    };
    (1..SERVERS).map(call).collect()
}

fn public_name(server: usize) -> String {
    let tool = canned::tool_name(&tool_prefix(server), 0);
    format!("{}_{tool}", server_name(server))
}

/// Of a server with short tools.
fn short_public_name(server: usize, size: AnswerSize) -> String {
    format!("{}_{}", server_name(server), size.tool())
}
