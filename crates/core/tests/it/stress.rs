//! Many connections on several threads at once, with a record, rules and holds: nothing is lost, doubled or reordered.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use mcp_proxy_core::intercept::{InterceptAction, Interceptor, NewBreakpoint};
use mcp_proxy_core::rules::Rules;
use mcp_proxy_session::{Filter, RecordOptions};
use mcp_proxy_wire::Transport;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::runtimes::several_threads;
use crate::transcript::{TestPeer, carried, proxy_run, recorder};

const CONNECTIONS: u64 = 8;
/// What a client says. Its server says as much: an answer to all that it hears, and a notification for all that it does not.
const MESSAGES: u64 = 500;
/// Of so many messages one is held, one is changed by a rule, and one is answered by a rule.
const EVERY: u64 = 25;

const RULES: &str = r#"
[[rule]]
tool = "edit"
part = "params"
change = '.edited = true'

[[rule]]
tool = "refuse"
direction = "client_to_server"
error = { code = -32000, message = "not here" }
"#;

/// The tool that a request calls.
fn tool(number: u64) -> &'static str {
    match number % EVERY {
        0 => "hold",
        7 => "edit",
        13 => "refuse",
        _ => "plain",
    }
}

fn parse(message: &[u8]) -> Value {
    serde_json::from_slice(message).unwrap()
}

/// Answers what comes, until everything has come; returns the numbers as they came.
async fn serve(mut server: TestPeer) -> (TestPeer, Vec<u64>) {
    let mut heard = Vec::new();
    while heard.len() as u64 != MESSAGES - MESSAGES / EVERY {
        let request = parse(&server.next().await.unwrap());
        let number = request["id"].as_u64().unwrap();
        assert_eq!(request["params"]["edited"] == true, tool(number) == "edit");
        let result = json!({"tool": tool(number)});
        server.say(&json!({"jsonrpc": "2.0", "id": number, "result": result}).to_string());
        if tool(number) == "edit" {
            server.say(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
        }
        heard.push(number);
    }
    (server, heard)
}

/// Asks everything, and waits for all answers; returns their numbers as they came.
async fn ask(mut client: TestPeer) -> (TestPeer, Vec<u64>) {
    for number in 0..MESSAGES {
        let params = json!({"name": tool(number)});
        let request =
            json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        client.say(&request.to_string());
    }
    let (mut heard, mut notifications) = (Vec::new(), 0);
    while heard.len() as u64 != MESSAGES || notifications != MESSAGES / EVERY {
        let message = parse(&client.next().await.unwrap());
        let Some(number) = message["id"].as_u64() else {
            notifications += 1;
            continue;
        };
        let is_refused = message["error"]["code"] == -32000;
        assert_eq!(is_refused, tool(number) == "refuse");
        heard.push(number);
    }
    (client, heard)
}

/// Releases what is held, on a thread of its own, until `stop` is dropped.
fn decide(intercept: Arc<Interceptor>, stop: oneshot::Receiver<()>) -> std::thread::JoinHandle<()> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    std::thread::spawn(move || {
        let mut changes = intercept.watch();
        let deciding = async {
            loop {
                for held in intercept.state().held {
                    let forward = InterceptAction::Forward;
                    intercept
                        .resolve(held.hold, forward, "second thread")
                        .unwrap();
                }
                changes.changed().await.unwrap();
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = deciding => {}
                _ = stop => {}
            }
        });
    })
}

/// The numbers of those that nobody delays, with their order.
fn of(tools: &[&str], numbers: &[u64]) -> Vec<u64> {
    let undelayed = numbers
        .iter()
        .filter(|number| tools.contains(&tool(**number)));
    undelayed.copied().collect()
}

#[test]
fn nothing_is_lost_doubled_or_reordered_on_several_threads() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let path = recorder.path().to_owned();
    several_threads(async {
        let run = proxy_run(Some(recorder));
        let rules = Rules::parse(RULES, Path::new(".")).unwrap();
        run.rules().set(rules);
        run.intercept().add_breakpoint(NewBreakpoint {
            filter: Filter::parse("hold").unwrap(),
            ..NewBreakpoint::default()
        });
        let (stop, stopped) = oneshot::channel();
        let deciding = decide(Arc::clone(run.intercept()), stopped);
        let talking: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let connection = run.connect(Transport::Stdio, Transport::Stdio);
                let (client, server) = carried(&connection);
                (tokio::spawn(ask(client)), tokio::spawn(serve(server)))
            })
            .collect();
        for (asking, serving) in talking {
            let ((_client, heard), (_server, served)) =
                (asking.await.unwrap(), serving.await.unwrap());
            let undelayed = of(&["plain", "edit"], &served);
            assert!(
                undelayed.is_sorted(),
                "requests of one connection keep their order"
            );
            assert_eq!(
                of(&["plain", "edit"], &heard),
                undelayed,
                "and so do answers"
            );
            for mut numbers in [heard, [served, of(&["refuse"], &all())].concat()] {
                numbers.sort_unstable();
                assert_eq!(numbers, all(), "each has come once");
            }
        }
        drop(stop);
        deciding.join().unwrap();
        run.end("done");
    });
    check_record(&std::fs::read_to_string(path).unwrap());
}

fn all() -> Vec<u64> {
    (0..MESSAGES).collect()
}

/// Every number once and in order, every answer with its request, every hold with its decision.
fn check_record(record: &str) {
    let mut requests: HashMap<(String, u64), u64> = HashMap::new();
    let mut last: HashMap<(String, String), u64> = HashMap::new();
    let (mut sequence, mut answers, mut holds, mut forwards) = (0, 0, 0, 0);
    for line in record.lines() {
        let line = parse(line.as_bytes());
        match line["t"].as_str().unwrap() {
            "msg" => {}
            "act" => {
                holds += u64::from(line["kind"] == "hold");
                forwards += u64::from(line["by"] == "second thread");
                continue;
            }
            _ => continue,
        }
        sequence += 1;
        assert_eq!(line["sequence"], sequence, "{line}");
        let (connection, message) = (line["conn"].as_str().unwrap().to_owned(), &line["raw"]);
        let Some(number) = message["id"].as_u64() else {
            continue;
        };
        if message["method"].is_string() {
            requests.insert((connection.clone(), number), sequence);
            let direction = line["direction"].as_str().unwrap().to_owned();
            let before = last.insert((connection, direction), number);
            assert_eq!(before.map_or(0, |before| before + 1), number, "{line}");
        } else {
            answers += 1;
            let request = requests[&(connection, number)];
            assert_eq!(line["answers"], request, "{line}");
        }
    }
    let refused = MESSAGES / EVERY;
    assert_eq!(sequence, CONNECTIONS * (2 * MESSAGES + refused));
    assert_eq!(answers, CONNECTIONS * MESSAGES);
    // Of each held call, the request and the answer.
    let held = CONNECTIONS * 2 * (MESSAGES / EVERY);
    assert_eq!((holds, forwards), (held, held));
}
