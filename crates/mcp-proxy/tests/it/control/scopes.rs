//! Requests that name one of several connections.

use serde_json::json;

use super::test_home::{PING, PROXY, TestHome, until};
use crate::programs::{ListeningProgram, request};

/// A proxy in front of the demo server, with two clients that have a session each: `c1` and `c2`.
fn two_clients(house: &TestHome) -> (ListeningProgram, [String; 2]) {
    let server = ["--", PROXY, "demo-server", "stdio"];
    let flags = ["proxy", "--listen", "http", "--listen-port", "0"];
    let words = [&flags[..], &server].concat();
    let proxy = ListeningProgram::start_with(&words, &house.env());
    let sessions = [proxy.session(), proxy.session()];
    (proxy, sessions)
}

#[test]
fn one_client_is_held_while_the_other_is_answered() {
    let house = TestHome::new();
    let (proxy, [first, second]) = two_clients(&house);
    let hello = house.ctl(&["hello"]);
    assert_eq!(hello["connections"][0]["connection"], 2);
    assert_eq!(hello["connections"][1]["open"], true);
    assert_eq!(hello["servers"][0]["connections"], 2);
    let set = house.ctl(&["intercept.set", "mode=intercept", "connection=c1"]);
    assert_eq!(
        (&set["mode"], &set["held"]),
        (&json!("intercept"), &json!([]))
    );
    std::thread::scope(|scope| {
        let held = scope.spawn(|| proxy.post(&[("mcp-session-id", &first)], PING));
        let hold = house.held();
        let other = proxy.post(&[("mcp-session-id", &second)], PING);
        assert_eq!(other.status, 200, "{other:?}");
        let listed = house.ctl(&["hold.list"]);
        assert_eq!(listed["holds"][0]["conn"], "c1");
        assert_eq!(listed["holds"][0]["server"], "server");
        let of_second = house.ctl(&["intercept.get", "connection=2"]);
        let (mode, holds) = (&of_second["mode"], &of_second["held"]);
        assert_eq!((mode, holds), (&json!("passthrough"), &json!([])));
        house.ctl(&["hold.resolve", &format!("hold={hold}"), "action=forward"]);
        // Its answer is a message of the same connection, and held too.
        until("the answer is held", || {
            let held = house.ctl(&["intercept.get", "connection=1"])["held"][0].as_u64();
            held.is_some_and(|held| held != hold)
        });
        house.ctl(&["intercept.set", "mode=inherit", "connection=1"]);
        assert_eq!(held.join().unwrap().status, 200);
    });
    let refused = house.refused(&["intercept.set", "mode=intercept", "connection=c9"]);
    assert_eq!(refused["code"], -32602);
    assert_eq!(refused["data"]["reason"], "unknown", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("c9"));
    let refused = house.refused(&["breakpoints.add", "filter=ping", "server=other"]);
    assert_eq!(refused["code"], -32602);
    assert_eq!(refused["data"]["reason"], "unknown", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("`other`"));
}

#[test]
fn a_message_of_one_client_is_replayed_on_the_session_of_another() {
    let house = TestHome::new();
    let (proxy, [first, second]) = two_clients(&house);
    let answer = proxy.post(&[("mcp-session-id", &first)], PING);
    assert_eq!(answer.status, 200, "{answer:?}");
    let rows = house.ctl(&["get", "raw=true"])["rows"].clone();
    let mut rows = rows.as_array().unwrap().iter();
    let ping = rows.find(|row| row["method"] == "ping").unwrap();
    assert_eq!(ping["conn"], "c1");
    let sequence = format!("sequence={}", ping["sequence"]);
    let replayed = house.ctl(&["replay", &sequence, "session=live", "connection=c2"]);
    assert_eq!(replayed["conn"], "c2", "{replayed}");
    assert_eq!(replayed["raw"]["result"], json!({}));
    // On a fresh session, of the server that a connection has.
    let replayed = house.ctl(&["replay", &sequence, "connection=2"]);
    assert_eq!(replayed["conn"], "c3", "{replayed}");
    // The ends of connections are seen.
    let id = [("mcp-session-id", second.as_str())];
    let ended = request(&proxy.address, "DELETE", &proxy.path, &id, b"");
    assert!(ended.status < 300, "{ended:?}");
    until("the second has ended", || {
        let listed = house.ctl(&["connections.list"]);
        let mut rows = listed["connections"].as_array().unwrap().iter();
        let second = rows.find(|row| row["connection"] == 2).unwrap();
        second["open"] == false
    });
    let refused = house.refused(&["intercept.get", "connection=c2"]);
    assert_eq!(refused["code"], -32602, "{refused}");
    assert_eq!(refused["data"]["reason"], "not_live", "{refused}");
}
