//! Many starts and ends, in every order, and nothing is left.

use std::sync::Arc;

use super::*;

const CYCLES: usize = 1000;
const AT_ONCE: usize = 8;

/// One cycle in each way a server can be ended; every other one before it has got very far.
async fn cycle(number: usize, mark: &ProcessMark) {
    let mut server = hasty().spawn(&shell(FAMILY, mark)).unwrap();
    if number.is_multiple_of(2) {
        wait_up(&mut server).await;
    }
    match number % 5 {
        0 | 1 => drop(server),
        2 => {
            // Somebody kills the server itself.
            if let [pid, ..] = children(server.guard_id().unwrap())[..] {
                kill(pid, "KILL").await;
                within(server.wait()).await;
            }
        }
        3 => {
            // Somebody terminates the guard, or did it before it was up.
            kill(server.guard_id().unwrap(), "TERM").await;
            within(server.wait()).await;
        }
        _ => {
            within(server.kill()).await;
        }
    }
}

pub async fn kill(pid: u32, signal: &str) {
    let args = [format!("-{signal}"), pid.to_string()];
    // It may be gone already.
    let _ = tokio::process::Command::new("kill")
        .args(args)
        .stderr(std::process::Stdio::null())
        .status()
        .await;
}

#[tokio::test]
async fn a_thousand_cycles_leave_no_process_behind() {
    let mark = Arc::new(ProcessMark::new());
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|worker| {
            let mark = mark.clone();
            tokio::spawn(async move {
                for number in (worker..CYCLES).step_by(AT_ONCE) {
                    cycle(number, &mark).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    mark.wait_gone().await;
}
