//! How much is held, for how long, by which breakpoint, and who waits for whom.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_control::HoldClock;
use mcp_proxy_core::intercept::{HELD_BYTES_MAX, HELD_MAX, NewBreakpoint};
use mcp_proxy_core::{Connection, HoldOptions, HoldPolicy, HoldTimeout};
use mcp_proxy_session::Filter;
use mcp_proxy_wire::{Direction, Transport};

use super::INTERCEPT;
use crate::runtimes::by_runtime;
use crate::transcript::{TestPeer, carried, holding};

pub(super) fn stdio(hold: HoldOptions) -> (Arc<Connection>, TestPeer, TestPeer) {
    let connection = holding(None, hold).connect(Transport::Stdio, Transport::Stdio);
    let (client, server) = carried(&connection);
    (connection, client, server)
}

/// The texts of what is held, once there are so many.
pub(super) async fn held(connection: &Connection, number: usize) -> Vec<String> {
    let intercept = connection.run.intercept();
    let mut changes = intercept.watch();
    loop {
        let held = intercept.state().held;
        if held.len() == number {
            let texts = held.iter().map(|held| held.message.raw().clone());
            return texts
                .map(|raw| String::from_utf8_lossy(&raw).into_owned())
                .collect();
        }
        changes.changed().await.unwrap();
    }
}

on_both_runtimes!(beyond_a_thousand_messages_the_policy_decides_and_order_is_kept);
async fn beyond_a_thousand_messages_the_policy_decides_and_order_is_kept() {
    for (policy, forwarded) in [(HoldPolicy::Forward, true), (HoldPolicy::Drop, false)] {
        let (connection, mut client, mut server) = stdio(HoldOptions {
            policy,
            ..INTERCEPT
        });
        for number in 0..HELD_MAX {
            client.say(&format!(r#"{{"method":"n{number}"}}"#));
        }
        held(&connection, HELD_MAX).await;
        client.say(r#"{"method":"one too many"}"#);
        if forwarded {
            server.hears("", r#"{"method":"n0"}"#).await;
        }
        let last = |held: &[String]| {
            held.last()
                .is_some_and(|text| text.contains("one too many"))
        };
        while !last(&held(&connection, HELD_MAX).await) {
            tokio::task::yield_now().await;
        }
        connection.run.intercept().resume("test");
        server.hears("", r#"{"method":"n1"}"#).await;
    }
}

on_both_runtimes!(a_server_with_a_thousand_held_messages_leaves_room_for_the_others);
async fn a_server_with_a_thousand_held_messages_leaves_room_for_the_others() {
    let run = holding(None, INTERCEPT);
    let connections = ["full", "other"].map(|name| {
        let server = mcp_proxy_core::Peer::new(Transport::Stdio).named(name);
        run.connect(Transport::Stdio, server)
    });
    let [(mut client, mut server), (mut other, _others)] = connections.each_ref().map(carried);
    for number in 0..HELD_MAX {
        client.say(&format!(r#"{{"method":"n{number}"}}"#));
    }
    held(&connections[0], HELD_MAX).await;
    other.say(r#"{"method":"of another server"}"#);
    held(&connections[0], HELD_MAX + 1).await;
    // Its own share is full all the same.
    client.say(r#"{"method":"one too many"}"#);
    server.hears("", r#"{"method":"n0"}"#).await;
}

on_both_runtimes!(a_breakpoint_over_the_limit_decides_about_the_new_message);
async fn a_breakpoint_over_the_limit_decides_about_the_new_message() {
    let (connection, mut client, mut server) = stdio(HoldOptions::default());
    let intercept = connection.run.intercept();
    intercept.add_breakpoint(NewBreakpoint {
        filter: Filter::parse("method").unwrap(),
        ..NewBreakpoint::default()
    });
    for number in 0..HELD_MAX {
        client.say(&format!(r#"{{"method":"n{number}"}}"#));
    }
    held(&connection, HELD_MAX).await;
    client.say(r#"{"method":"one too many"}"#);
    server.hears("", r#"{"method":"one too many"}"#).await;
    assert!(held(&connection, HELD_MAX).await[0].contains("n0"));
}

on_both_runtimes!(beyond_64_mib_the_policy_decides_at_once);
async fn beyond_64_mib_the_policy_decides_at_once() {
    let (connection, mut client, mut server) = stdio(INTERCEPT);
    let large = format!(r#"{{"method":"{}"}}"#, "x".repeat(HELD_BYTES_MAX - 100));
    client.say(&large);
    held(&connection, 1).await;
    let over = format!(r#"{{"method":"{}"}}"#, "y".repeat(100));
    client.say(&over);
    // The first goes first, and then there is room.
    server.hears("", &large).await;
    assert_eq!(held(&connection, 1).await, [over]);
    // What has no room even alone is not held.
    let alone = format!(r#"{{"method":"{}"}}"#, "z".repeat(HELD_BYTES_MAX));
    client.say(&alone);
    server
        .hears("", &format!(r#"{{"method":"{}"}}"#, "y".repeat(100)))
        .await;
    server.hears("", &alone).await;
}

on_both_runtimes!(no_time_runs_before_the_first_viewer_has_come);
async fn no_time_runs_before_the_first_viewer_has_come() {
    // An hour in which the deadline would pass 65 times, or a second in which it would pass five times.
    let (progress, times) = by_runtime(
        (Duration::from_secs(10), 360),
        (Duration::from_millis(50), 20),
    );
    let (connection, mut client, mut server) = stdio(HoldOptions {
        waits_for_viewer: true,
        progress: Some(progress),
        timeout: HoldTimeout::After(by_runtime(
            HoldOptions::DEFAULT_TIMEOUT,
            Duration::from_millis(200),
        )),
        ..INTERCEPT
    });
    let intercept = connection.run.intercept();
    let request = r#"{"id":1,"method":"m","params":{"_meta":{"progressToken":"p"}}}"#;
    client.say(request);
    held(&connection, 1).await;
    // Then it is still held, and the client knows.
    for _ in 0..times {
        let progress = r#"~notifications/progress ~ "progressToken":"p""#;
        client.hears("", progress).await;
    }
    let waiting = &intercept.state().held[0];
    assert_eq!(
        (waiting.clock, waiting.left),
        (HoldClock::AwaitingViewer, None)
    );
    let viewer = intercept.attach_viewer();
    assert_eq!(intercept.state().held[0].clock, HoldClock::Running);
    // It was there once: now the time runs, whether it stays or not.
    drop(viewer);
    server.hears("", request).await;
}

on_both_runtimes!(order_is_kept_for_each_connection_and_direction);
async fn order_is_kept_for_each_connection_and_direction() {
    let run = holding(None, INTERCEPT);
    let connections = [(); 2].map(|()| run.connect(Transport::Stdio, Transport::Stdio));
    let [(mut client, mut server), (mut other, mut others)] = connections.each_ref().map(carried);
    client.say(r#"{"id":1,"method":"first"}"#);
    held(&connections[0], 1).await;
    server.say(r#"{"method":"from the server"}"#);
    held(&connections[0], 2).await;
    other.say(r#"{"method":"of another client"}"#);
    let held = held(&connections[0], 3).await;
    assert!(held[2].contains("another"), "{held:?}");
    // The first stays held; neither of the others waits for it.
    let intercept = run.intercept();
    for held in &intercept.state().held[1..] {
        let forward = mcp_proxy_core::intercept::InterceptAction::Forward;
        intercept.resolve(held.hold, forward, "test").unwrap();
    }
    client.hears("", r#"{"method":"from the server"}"#).await;
    others.hears("", r#"{"method":"of another client"}"#).await;
    assert_eq!(intercept.state().held.len(), 1);
}

on_both_runtimes!(a_breakpoint_has_a_direction_and_so_many_hits);
async fn a_breakpoint_has_a_direction_and_so_many_hits() {
    let (connection, mut client, mut server) = stdio(HoldOptions::default());
    let intercept = connection.run.intercept();
    intercept.add_breakpoint(NewBreakpoint {
        filter: Filter::parse("tick").unwrap(),
        direction: Some(Direction::ServerToClient),
        hits: Some(2),
        ..NewBreakpoint::default()
    });
    let tick = r#"{"method":"tick"}"#;
    client.say(tick);
    server.hears("the other way", tick).await;
    for number in 1..=2 {
        server.say(tick);
        held(&connection, number).await;
    }
    assert!(intercept.breakpoints().is_empty(), "it had its hits");
    server.say(tick);
    client.hears("the third goes on", tick).await;
    intercept.step("test");
    client.hears("the first follows", tick).await;
    assert_eq!(intercept.state().held.len(), 1);
}

on_both_runtimes!(
    a_pattern_that_is_too_slow_delays_nothing_for_long,
    real_time
);
async fn a_pattern_that_is_too_slow_delays_nothing_for_long() {
    let (connection, mut client, mut server) = stdio(HoldOptions::default());
    let intercept = connection.run.intercept();
    for filter in [
        r#"/[ab]*a[ab]{900}[^abx"]/"#,
        r#".params.text | test("[ab]*a[ab]{400}[^abx]")"#,
    ] {
        intercept.add_breakpoint(NewBreakpoint {
            filter: Filter::parse(filter).unwrap(),
            ..NewBreakpoint::default()
        });
    }
    // It begins harmless, so that no trial on its beginning could tell.
    let mut text = "x".repeat(128 << 10);
    let mut random = 1u32;
    text.extend((0..512 << 10).map(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random >> 31 == 1 { 'a' } else { 'b' }
    }));
    let large = format!(r#"{{"method":"m","params":{{"text":"{text}"}}}}"#);
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        client.say(&large);
        server.hears("", &large).await;
    }
    client.say(r#"{"id":1,"method":"ping"}"#);
    server.hears("", r#"{"id":1,"method":"ping"}"#).await;
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    let too_slow: Vec<u64> = intercept
        .breakpoints()
        .iter()
        .map(|set| set.too_slow)
        .collect();
    assert_eq!(too_slow, [3, 3]);
}
