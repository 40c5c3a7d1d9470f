//! The time of a hold: who stops it, who adds to it, and that it leaves nothing behind.

use std::time::Duration;

use mcp_proxy_control::HoldClock;
use mcp_proxy_core::intercept::{InterceptAction, ViewerId};
use mcp_proxy_core::{HoldOptions, HoldTimeout};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::INTERCEPT;
use super::limits::{held, stdio};

const REQUEST: &str = r#"{"id":1,"method":"m"}"#;

#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_while_a_viewer_has_the_message_open() {
    let (connection, mut client, mut server) = stdio(INTERCEPT);
    client.say(REQUEST);
    held(&connection, 1).await;
    let intercept = connection.run.intercept();
    let hold = intercept.state().held[0].hold;
    sleep(Duration::from_secs(50)).await;
    let open = intercept
        .open_editor(hold, ViewerId(7), "user (seven)")
        .unwrap();
    assert_eq!(open.clock, HoldClock::Stopped);
    assert_eq!(open.editors, ["user (seven)"]);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(held(&connection, 1).await, [REQUEST]);
    // Five seconds were left; there are ten now.
    let closed = Instant::now();
    intercept.close_editors_of(ViewerId(7));
    assert_eq!(intercept.state().held[0].clock, HoldClock::Running);
    server.hears("", REQUEST).await;
    assert_eq!(closed.elapsed().as_secs(), 10);
    let decided = intercept.state().decided;
    assert_eq!(
        (decided[0].hold, decided[0].action, &*decided[0].by),
        (hold, "forward", "timeout")
    );
}

#[tokio::test(start_paused = true)]
async fn time_can_be_added() {
    let (connection, mut client, mut server) = stdio(INTERCEPT);
    let start = Instant::now();
    client.say(REQUEST);
    held(&connection, 1).await;
    let intercept = connection.run.intercept();
    let hold = intercept.state().held[0].hold;
    let held = intercept.extend(hold, Duration::from_secs(3)).unwrap();
    assert_eq!(held.left.unwrap().as_secs(), 58);
    server.hears("", REQUEST).await;
    assert_eq!(start.elapsed().as_secs(), 58);
    assert!(intercept.extend(hold, Duration::from_secs(3)).is_err());
}

#[tokio::test(start_paused = true)]
async fn without_a_time_limit_a_message_waits_until_somebody_decides() {
    let (connection, mut client, mut server) = stdio(HoldOptions {
        timeout: HoldTimeout::Never,
        ..INTERCEPT
    });
    client.say(REQUEST);
    held(&connection, 1).await;
    sleep(Duration::from_secs(100 * 24 * 3600)).await;
    let intercept = connection.run.intercept();
    let waiting = &intercept.state().held[0];
    assert_eq!((waiting.clock, waiting.left), (HoldClock::Off, None));
    intercept
        .resolve(waiting.hold, InterceptAction::Forward, "test")
        .unwrap();
    server.hears("", REQUEST).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_closed_its_end_waits_for_the_editor() {
    let (connection, mut client, mut server) = stdio(INTERCEPT);
    client.say(REQUEST);
    held(&connection, 1).await;
    let intercept = connection.run.intercept();
    let hold = intercept.state().held[0].hold;
    intercept.open_editor(hold, ViewerId(1), "user").unwrap();
    client.close();
    sleep(Duration::from_secs(3600)).await;
    intercept
        .resolve(hold, InterceptAction::Forward, "test")
        .unwrap();
    server.hears("", REQUEST).await;
}

#[tokio::test(start_paused = true)]
async fn a_decided_hold_leaves_no_task_behind() {
    let (connection, mut client, mut server) = stdio(HoldOptions {
        progress: Some(Duration::from_secs(10)),
        ..INTERCEPT
    });
    let intercept = connection.run.intercept();
    let tasks = Handle::current().metrics().num_alive_tasks();
    for number in 0..500 {
        let request = format!(r#"{{"id":{number},"method":"m"}}"#);
        client.say(&request);
        held(&connection, 1).await;
        intercept.step("test");
        server.hears("", &request).await;
    }
    let now = Handle::current().metrics().num_alive_tasks();
    assert!(now <= tasks + 1, "{tasks} tasks before, {now} after");
    // And the one that keeps the time ends when there is nothing to wait for.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}
