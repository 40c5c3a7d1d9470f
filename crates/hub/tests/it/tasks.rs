//! Work that servers continue after they have answered the call.

use insta::assert_snapshot;

use crate::transcript::{Transcript, server, settings};

/// Legacy servers with these capabilities for tasks and one tool each, and clients that have said hello.
fn with_tasks(tasks: &[(&str, &str)], clients: usize) -> Transcript {
    let servers = tasks.iter().map(|(name, _)| server(name)).collect();
    let mut hub = Transcript::new(settings(), servers);
    for (number, (_, tasks)) in (1..).zip(tasks) {
        hub.server_opens(number);
        hub.server_says(number, &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"tasks":{tasks}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#));
        hub.server_says(
            number,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"work","inputSchema":{}}]}}"#,
        );
    }
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, r#"{"elicitation":{}}"#);
    }
    hub.take();
    hub
}

/// A client's call creates a task. `number` is the server's number of the call.
fn create(hub: &mut Transcript, client: usize, server: (usize, &str), number: u32, task: &str) {
    let (place, name) = server;
    hub.client_says(client, &format!(r#"{{"jsonrpc":"2.0","id":"{task}","method":"tools/call","params":{{"name":"{name}_work","task":{{}}}}}}"#));
    hub.server_says(place, &format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"task":{{"taskId":"{task}","status":"working"}}}}}}"#));
}

fn ask(id: u32, method: &str, task: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/{method}","params":{{"taskId":"{task}"}}}}"#
    )
}

fn list(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/list"}}"#)
}

const LISTS: &str = r#"{"list":{},"cancel":{}}"#;

#[test]
fn the_tasks_of_all_servers_are_one_list() {
    let servers = [("a", LISTS), ("b", "{}"), ("c", LISTS), ("d", LISTS)];
    let mut hub = with_tasks(&servers, 1);
    create(&mut hub, 1, (1, "a"), 3, "a-1");
    create(&mut hub, 1, (1, "a"), 4, "a-2");
    create(&mut hub, 1, (3, "c"), 3, "c-1");
    hub.take();
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":{"_meta":{"progressToken":1}}}"#,
    );
    hub.server_says(
        3,
        r#"{"jsonrpc":"2.0","id":4,"result":{"tasks":[{"taskId":"c-1","status":"working"}]}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":5,"result":{"tasks":[{"taskId":"a-1","status":"working"}],"nextCursor":"more"}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":6,"result":{"tasks":[{"taskId":"a-2","status":"failed"}],"nextCursor":"more"}}"#);
    hub.server_says(
        4,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"broken"}}"#,
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","id":3,"method":"tasks/list","params":{"cursor":"x"}}"#,
    );
    hub.client_says(1, &list(4));
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#,
    );
    assert_snapshot!(hub.take());
}

#[test]
fn tasks_are_not_listed_if_no_server_does() {
    let mut hub = Transcript::ready("[]");
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_client_sees_only_its_own_tasks() {
    let mut hub = with_tasks(&[("a", LISTS)], 2);
    create(&mut hub, 1, (1, "a"), 3, "t-1");
    create(&mut hub, 2, (1, "a"), 4, "t-2");
    hub.take();
    hub.client_says(2, &list(1));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":5,"result":{"tasks":[{"taskId":"t-1","status":"working"},{"taskId":"t-2","status":"working"},{"taskId":"t-0","status":"failed"}]}}"#);
    for (id, method) in (2..).zip(["get", "result", "cancel"]) {
        hub.client_says(2, &ask(id, method, "t-1"));
    }
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-0","status":"completed"}}"#);
    hub.client_says(1, &ask(2, "get", "t-1"));
    // Nobody has the task of a client that has left.
    hub.client_leaves(1);
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"failed"}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn a_question_about_a_task_reaches_its_owner() {
    let mut hub = with_tasks(&[("a", LISTS)], 2);
    create(&mut hub, 1, (1, "a"), 3, "t-1");
    hub.take();
    hub.client_says(
        2,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_work"}}"#,
    );
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn equal_task_ids_of_two_servers_are_told_apart() {
    let mut hub = with_tasks(&[("a", LISTS), ("b", LISTS)], 1);
    create(&mut hub, 1, (1, "a"), 3, "1");
    create(&mut hub, 1, (2, "b"), 3, "1");
    hub.client_says(1, &ask(2, "get", "1"));
    hub.client_says(1, &ask(3, "get", "1@b"));
    hub.server_says(
        2,
        r#"{"jsonrpc":"2.0","id":4,"result":{"taskId":"1","status":"completed"}}"#,
    );
    hub.client_says(1, &ask(4, "result", "1@b"));
    hub.server_says(2, r#"{"jsonrpc":"2.0","id":5,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}}"#);
    hub.server_says(2, r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"1","status":"failed"}}"#);
    hub.client_says(1, &list(5));
    hub.server_says(
        1,
        r#"{"jsonrpc":"2.0","id":5,"result":{"tasks":[{"taskId":"1","status":"working"}]}}"#,
    );
    hub.server_says(
        2,
        r#"{"jsonrpc":"2.0","id":6,"result":{"tasks":[{"taskId":"1","status":"failed"}]}}"#,
    );
    assert_snapshot!(hub.take());
}
