//! Requests that come at the same time on several threads.

use std::sync::Barrier;
use std::thread;

use http_body_util::BodyExt;
use mcp_proxy_core::{HoldOptions, RunOptions, in_process};
use mcp_proxy_wire::{Transport, error_response};
use tokio::runtime::Handle;

use super::*;

const THREADS: usize = 4;

/// Sessions whose servers never answer.
fn sessions(most: usize) -> Arc<McpEndpoint> {
    sessions_with(most, Arc::new(|_| Box::pin(std::future::pending())))
}

fn sessions_with(most: usize, dial: Dial) -> Arc<McpEndpoint> {
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let wait = Duration::from_secs(60);
    let limits = SessionLimits {
        requests: 4,
        idle: wait,
        message: 1 << 20,
    };
    let carry = CarryOptions {
        stall: wait,
        drain_open: wait,
        drain_idle: wait,
        last_request: wait,
        stray_lines: 1,
        stray_wait: wait,
    };
    let options = EndpointOptions {
        server: Transport::Stdio.into(),
        modern: ModernClients::Shared,
        legacy: LegacyClients::Sessions,
        limits,
        memory: None,
        places: SessionPlaces::new(most),
        carry,
    };
    McpEndpoint::new(run, dial, options)
}

/// Runs the same on several threads at the same moment.
fn at_once<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let (start, runtime) = (Barrier::new(THREADS), Handle::current());
    let one = || {
        let _entered = runtime.enter();
        start.wait();
        work()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.collect()
    })
}

fn source() -> RequestSource {
    RequestSource {
        token: None,
        address: "127.0.0.1:1".parse().unwrap(),
    }
}

fn parts(token: usize) -> Parts {
    let request = Request::post("http://localhost/mcp").header(AUTHORIZATION, token);
    request.body(()).unwrap().into_parts().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_come_at_once_with_one_token_share_one_server() {
    let (rounds, source) = (200, source());
    let sessions = sessions(rounds);
    for round in 0..rounds {
        let parts = parts(round);
        let opened = at_once(|| sessions.shared(&source, &parts, None).ok().unwrap());
        assert!(opened.iter().all(|other| Arc::ptr_eq(other, &opened[0])));
    }
    assert_eq!(sessions.run.connections() as usize, rounds);
    assert_eq!(sessions.open_count(), rounds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_over_is_not_shared_while_its_server_is_stopped() {
    let dialled = Arc::new(tokio::sync::Notify::new());
    let dialling = Arc::clone(&dialled);
    let stopping: Dial = Arc::new(move |_| {
        dialling.notify_one();
        let (link, server) = in_process();
        let finish = Box::pin(async move {
            let _server = server;
            std::future::pending().await
        });
        Box::pin(std::future::ready(Ok(link.with_finish(finish))))
    });
    let sessions = sessions_with(1, stopping);
    let (source, parts) = (source(), parts(1));
    let first = sessions.shared(&source, &parts, None).ok().unwrap();
    dialled.notified().await;
    first.stop.notify_one();
    while !first.is_over() {
        tokio::task::yield_now().await;
    }
    let second = sessions.shared(&source, &parts, None).ok().unwrap();
    assert!(!Arc::ptr_eq(&first, &second) && !second.is_over());
    assert_eq!(sessions.open_count(), 2, "both are stopped at the end");
    sessions.remove(&first);
    assert_eq!(sessions.open_count(), 1);
}

#[tokio::test]
async fn a_session_whose_server_has_ended_is_not_kept_when_it_is_told_to_end() {
    let sessions = sessions(2);
    let exchange = ExchangeId(1);
    let session = {
        let (kind, caller) = (SessionKind::Stateless(exchange), source().caller(&parts(1)));
        let mut table = sessions.table();
        let session = sessions.open(&mut table, kind, caller, None).ok().unwrap();
        table.requests.insert(exchange, Arc::clone(&session));
        session
    };
    sessions.table().end(&session);
    assert_eq!(sessions.open_count(), 1, "its server is being stopped");
    sessions.table().end(&session);
    assert_eq!(sessions.open_count(), 1, "once, however often it is told");
    sessions.remove(&session);
    sessions.table().end(&session);
    assert_eq!(sessions.open_count(), 0);
}

#[tokio::test]
async fn without_sessions_a_server_may_log_before_it_refuses_initialize() {
    let logging: Dial = Arc::new(|_| {
        let (link, mut server) = in_process();
        tokio::spawn(async move {
            let asked = server.requests.next().await.unwrap();
            let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            server.answers.send(Message::parse(log)).await.unwrap();
            let refusal = error_response(asked.id().as_ref(), ErrorCode(-32000), "no", None);
            server.answers.send(refusal).await.unwrap();
            while server.requests.next().await.is_some() {}
        });
        Box::pin(std::future::ready(Ok(link)))
    });
    let sessions = sessions_with(1, logging);
    let ask = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let posted = Arc::clone(&sessions).stateless_post(source(), parts(1), ask, ExchangeId(1));
    let answer = posted.await;
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.ok().unwrap().to_bytes();
    assert_eq!(Message::parse(body).error_code(), Some(-32000));
}
