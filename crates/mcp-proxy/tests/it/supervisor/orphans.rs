//! A guard is killed in a program that does more than supervise: what the guard left is swept, and nothing else.

use mcp_proxy_transport::process::become_subreaper;
use tokio::process::Command;

use super::cycles::kill;
use super::*;

/// Says the process ids of two children that left group and session and have no environment, one of them a daemon that
/// was forked twice.
const STRAYS: &str = "setsid env -i sleep 1000 & echo $!
    (setsid env -i sh -c 'echo $$; exec sleep 1000' 2>/dev/null &)
    exec sleep 1000";

fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_sweep_takes_what_a_killed_guard_left_and_spares_all_else() {
    become_subreaper().unwrap();
    let (mark, others) = (ProcessMark::new(), ProcessMark::new());
    // In a group of its own: that is not what tells a helper from an orphan.
    let mut helper = Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut other = supervisor().spawn(&shell(FAMILY, &others)).unwrap();
    wait_up(&mut other).await;

    let mut server = supervisor().spawn(&shell(STRAYS, &mark)).unwrap();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    let mut strays = Vec::new();
    for _ in 0..2 {
        strays.push(read_line(&mut stdout).await.trim().parse().unwrap());
    }
    assert!(strays.iter().copied().all(is_there));
    kill(server.guard_id().unwrap(), "KILL").await;
    let report = within(server.wait()).await;
    assert_eq!(report.signal, Some(9));
    mark.assert_gone();
    // Reaped too: a zombie would still be there.
    assert!(!strays.iter().copied().any(is_there), "{strays:?}");

    assert!(helper.try_wait().unwrap().is_none(), "the helper lives");
    let family = others.carriers();
    assert_eq!(family.len(), 6, "{family:?}");
    within(other.kill()).await;
    others.assert_gone();
    helper.kill().await.unwrap();
}

#[tokio::test]
async fn the_servers_of_a_proxy_inside_are_swept_too() {
    become_subreaper().unwrap();
    let mark = ProcessMark::new();
    let inner = ServerCommand {
        program: PROXY.into(),
        args: "proxy --listen stdio --no-record --no-control -- sleep 1000"
            .split(' ')
            .map(OsString::from)
            .collect(),
        env: vec![mark.env()],
        ..ServerCommand::default()
    };
    let mut server = supervisor().spawn(&inner).unwrap();
    let guard = server.guard_id().unwrap();
    let only_child = |pid: u32| children(pid).first().copied();
    let inside = || {
        let proxy = only_child(guard)?;
        let guard = only_child(proxy)?;
        Some((proxy, guard, only_child(guard)?))
    };
    until("the inner server runs", || inside().is_some()).await;
    let (proxy, inner_guard, sleep) = inside().unwrap();
    // Stopped, the inner proxy cannot sweep after its own guard.
    kill(proxy, "STOP").await;
    kill(inner_guard, "KILL").await;
    until("the inner server is an orphan", || {
        children(proxy).contains(&sleep)
    })
    .await;
    kill(guard, "KILL").await;
    within(server.wait()).await;
    assert!(![proxy, sleep].into_iter().any(is_there));
    mark.assert_gone();
}
