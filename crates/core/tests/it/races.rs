//! What two threads can do to each other, each as small as it can be made.

use std::sync::Arc;

use mcp_proxy_core::intercept::{InterceptAction, NewBreakpoint};
use mcp_proxy_core::{
    Connection, HoldOptions, InterceptMode, PassResult, PipelineOutput, ProxyRun,
};
use mcp_proxy_session::{Filter, RecordOptions};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, LineEnd, Message, Origin, StreamId, Transport,
    TransportEnvelope,
};

use crate::runtimes::several_threads;
use crate::transcript::{carried, holding, recorder};

const CANCEL: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;

fn intercept() -> HoldOptions {
    HoldOptions {
        mode: InterceptMode::Intercept,
        ..HoldOptions::default()
    }
}

fn stdio(run: &Arc<ProxyRun>) -> Arc<Connection> {
    run.connect(Transport::Stdio, Transport::Stdio)
}

fn request(stream: impl Into<StreamId>, text: &str) -> Frame {
    let body = Body::Message(Message::parse(text.to_owned()));
    Frame::new(
        stream,
        Origin::Client,
        TransportEnvelope::Line(LineEnd::Lf),
        body,
    )
}

on_both_runtimes!(part6_a_cancel_drops_no_request_of_another_client_with_the_same_id);
async fn part6_a_cancel_drops_no_request_of_another_client_with_the_same_id() {
    let run = holding(None, HoldOptions::default());
    run.intercept().add_breakpoint(NewBreakpoint {
        filter: Filter::parse(r#".kind == "request""#).unwrap(),
        ..NewBreakpoint::default()
    });
    // Clients without a session share a connection.
    let connection = stdio(&run);
    let pipeline = || connection.message_pipeline(Direction::ClientToServer);
    let call = |exchange| request(ExchangeId(exchange), r#"{"id":1,"method":"tools/call"}"#);
    let (mut one, mut two, mut other) = (pipeline(), pipeline(), pipeline());
    let now = run.now();
    let mut ignored = PipelineOutput::default();
    assert!(matches!(one.try_pass(call(1), now), Ok(PassResult::Held)));
    assert!(matches!(two.try_pass(call(2), now), Ok(PassResult::Held)));
    let mut cancel = vec![request(ExchangeId(3), CANCEL)];
    other.pass(&mut cancel, now, &mut ignored).unwrap();
    let state = run.intercept().state();
    assert_eq!(state.held.len(), 2);
    // Even when the other request is answered, the cancel may have been meant for it.
    let first = state.held[0].hold;
    run.intercept()
        .resolve(first, InterceptAction::Forward, "test")
        .unwrap();
    assert!(one.wait_released(|_| {}).await.unwrap().is_some());
    let answer = request(ExchangeId(1), r#"{"id":1,"result":{}}"#);
    let mut back = connection.message_pipeline(Direction::ServerToClient);
    back.pass(&mut vec![answer], now, &mut ignored).unwrap();
    let mut cancel = vec![request(ExchangeId(4), CANCEL)];
    other.pass(&mut cancel, now, &mut ignored).unwrap();
    assert_eq!(run.intercept().state().held.len(), 1);
}

on_both_runtimes!(under_intercept_a_cancel_is_held_behind_its_request);
async fn under_intercept_a_cancel_is_held_behind_its_request() {
    let run = holding(None, intercept());
    let connection = stdio(&run);
    let mut pipeline = connection.message_pipeline(Direction::ClientToServer);
    // Read together, so the record has the cancel when the request is held.
    let texts = [r#"{"id":1,"method":"m"}"#, CANCEL];
    let mut frames = texts.map(|text| request(StreamId::Only, text)).to_vec();
    pipeline
        .pass(&mut frames, run.now(), &mut PipelineOutput::default())
        .unwrap();
    assert_eq!(run.intercept().state().held.len(), 2);
}

on_both_runtimes!(what_is_decided_for_a_lane_that_ends_is_undelivered_or_dropped);
async fn what_is_decided_for_a_lane_that_ends_is_undelivered_or_dropped() {
    const ROUNDS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let path = recorder.path().to_owned();
    let run = holding(Some(recorder), intercept());
    let connection = stdio(&run);
    for _ in 0..ROUNDS {
        let mut pipeline = connection.message_pipeline(Direction::ClientToServer);
        let (mut frames, mut output) = (
            vec![request(StreamId::Only, "{}")],
            PipelineOutput::default(),
        );
        pipeline.pass(&mut frames, run.now(), &mut output).unwrap();
        let intercept = Arc::clone(run.intercept());
        let hold = intercept.state().held[0].hold;
        let deciding = tokio::spawn(async move {
            // The pipeline's end may have been quicker.
            drop(intercept.resolve(hold, InterceptAction::Forward, "test"));
        });
        tokio::task::yield_now().await;
        drop(pipeline);
        deciding.await.unwrap();
    }
    let record = std::fs::read_to_string(path).unwrap();
    for sequence in 1..=ROUNDS {
        let about = |kind: &str| {
            let (sequence, kind) = (
                format!("\"sequence\":{sequence},"),
                format!("\"kind\":\"{kind}\""),
            );
            let mut lines = record.lines();
            lines.any(|line| line.contains(&sequence) && line.contains(&kind))
        };
        let (forward, undelivered, drop) = (about("forward"), about("undelivered"), about("drop"));
        assert!(forward == undelivered && forward != drop, "{sequence}");
    }
}

#[test]
fn switching_intercept_on_and_off_loses_and_reorders_nothing() {
    const MESSAGES: usize = 2_000;
    several_threads(async {
        let run = holding(None, HoldOptions::default());
        let (mut client, mut server) = carried(&stdio(&run));
        let intercept = Arc::clone(run.intercept());
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let switching = std::thread::spawn(move || {
            let ended = std::sync::mpsc::TryRecvError::Disconnected;
            while is_done.try_recv() != Err(ended) {
                intercept.set_mode(InterceptMode::Intercept, "test");
                std::thread::yield_now();
                intercept.set_mode(InterceptMode::Passthrough, "test");
            }
        });
        for number in 0..MESSAGES {
            client.say(&format!(r#"{{"method":"n{number}"}}"#));
        }
        for number in 0..MESSAGES {
            let message = format!(r#"{{"method":"n{number}"}}"#);
            server.hears("in order", &message).await;
        }
        drop(done);
        switching.join().unwrap();
    });
}

#[test]
fn two_who_step_at_once_release_two_messages() {
    const STEPS: usize = 400;
    several_threads(async {
        let run = holding(None, intercept());
        let connection = stdio(&run);
        let mut pipeline = connection.message_pipeline(Direction::ClientToServer);
        let mut frames: Vec<Frame> = (0..2 * STEPS)
            .map(|_| request(StreamId::Only, "{}"))
            .collect();
        pipeline
            .pass(&mut frames, run.now(), &mut PipelineOutput::default())
            .unwrap();
        let stepping = [(); 2].map(|()| {
            let intercept = Arc::clone(run.intercept());
            std::thread::spawn(move || (0..STEPS).for_each(|_| intercept.step("test")))
        });
        for thread in stepping {
            thread.join().unwrap();
        }
        assert!(run.intercept().state().held.is_empty());
    });
}
