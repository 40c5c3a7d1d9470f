//! Two calls that one client makes in turn, each in a session of its own.
//!
//! The machine's pace changes within a second by more than two calls differ. Calls that take turns one by one share every such
//! change, so that what is left between them is their own.

use std::time::Instant;

use anyhow::{Context, Result};

use super::http::{HttpLoadClient, LoadSession};
use super::{LoadCall, LoadPlan, LoadTarget, MeasuredWindow, Measurement, within};
use crate::usage::TreeUsage;

/// Measures two calls, one after the other again and again. Only latencies are measured: the processor time is that of both.
pub fn measure_in_turn(
    target: &LoadTarget,
    load: &LoadPlan,
    calls: [&LoadCall; 2],
) -> Result<[Measurement; 2]> {
    within(load.limit(), async {
        let mut clients = Vec::new();
        for call in calls {
            let session = LoadSession::open(target, load.era).await?;
            let mut client = HttpLoadClient::of_session(session, target, load.era, call)?;
            // Whole answers for both, so that reading them costs the load the same.
            client.session.connection.body.keep_whole();
            clients.push(client);
        }
        let [first, second] = &mut clients[..] else {
            anyhow::bail!("two calls take turns");
        };
        take_turns(first, second, Instant::now() + load.warm_up).await?;
        let start = Instant::now();
        let latencies = take_turns(first, second, start + load.time).await?;
        let elapsed = start.elapsed();
        for client in clients {
            client.session.close(target).await?;
        }
        let none = TreeUsage::default();
        Ok(latencies.map(|latencies| {
            let window = MeasuredWindow { latencies, elapsed };
            window.sample(load.size, &none, &none, false)
        }))
    })
}

async fn take_turns(
    first: &mut HttpLoadClient,
    second: &mut HttpLoadClient,
    end: Instant,
) -> Result<[Vec<u32>; 2]> {
    let mut latencies = [Vec::new(), Vec::new()];
    while Instant::now() < end {
        for (client, latencies) in [&mut *first, &mut *second].into_iter().zip(&mut latencies) {
            let call = client.call().await;
            latencies.push(call.context("a call that takes turns failed")?);
        }
    }
    Ok(latencies)
}
