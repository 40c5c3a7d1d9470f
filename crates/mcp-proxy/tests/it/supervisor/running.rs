//! What a server sees, and what is seen of it, while it runs.

use tokio::io::AsyncWriteExt;

use super::*;

#[tokio::test]
async fn bytes_pass_in_both_directions() {
    let mark = ProcessMark::new();
    let mut server = supervisor().spawn(&shell("exec cat", &mark)).unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let sent: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
    let expected = sent.clone();
    let writer = tokio::spawn(async move { stdin.write_all(&sent).await });
    let mut received = Vec::new();
    within(server.stdout.take().unwrap().read_to_end(&mut received))
        .await
        .unwrap();
    writer.await.unwrap().unwrap();
    assert!(received == expected);
    assert!(within(server.wait()).await.success());
}

#[tokio::test]
async fn environment_and_folder_are_the_servers() {
    let mark = ProcessMark::new();
    let mut command = shell("echo \"$PWD $EXTRA ${PATH:+path}\"", &mark);
    command.cwd = Some("/usr/share".into());
    command.env.push(("EXTRA".into(), "a b".into()));
    let mut server = supervisor().spawn(&command).unwrap();
    assert_eq!(read_all(&mut server).await, "/usr/share a b path\n");
}

#[tokio::test]
async fn a_server_has_its_three_streams_and_default_signals() {
    let mark = ProcessMark::new();
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(supervisor().spawn(&shell("exec cat", &mark)).unwrap());
    }
    let mut server = supervisor()
        .spawn(&shell("echo up; exec sleep 1000", &mark))
        .unwrap();
    wait_up(&mut server).await;
    let guard = server.guard_id().unwrap();
    let [pid] = children(guard)[..] else {
        panic!("the guard has one child")
    };
    until("sleep is executed", || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sleep\n"
    })
    .await;
    // What the tests themselves were started with is handed on, as it would be without us. Nor is the other one
    // ready at once: the kernel lets its parent go on a moment before it closes what an exec has to close.
    let mut direct = tokio::process::Command::new("sleep")
        .arg("1000")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let direct_pid = direct.id().unwrap();
    until("both have the same files open", || {
        open_files(pid) == open_files(direct_pid)
    })
    .await;
    assert_eq!(signals(pid), signals(direct_pid));
    direct.kill().await.unwrap();
    drop((server, others));
    mark.wait_gone().await;
}

#[tokio::test]
async fn a_server_that_closes_its_stdout_and_lives_is_seen_at_once() {
    let mark = ProcessMark::new();
    let mut server = supervisor()
        .spawn(&shell("exec >&-; read line; exit 5", &mark))
        .unwrap();
    assert_eq!(read_all(&mut server).await, "");
    assert_eq!(children(server.guard_id().unwrap()).len(), 1, "it lives");
    server
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"go on\n")
        .await
        .unwrap();
    assert_eq!(within(server.wait()).await.code, Some(5));
}

#[tokio::test]
async fn a_server_that_closes_its_stdin_and_lives_is_seen_at_once() {
    let mark = ProcessMark::new();
    let mut server = supervisor()
        .spawn(&shell("exec <&-; echo up; exec sleep 1000", &mark))
        .unwrap();
    wait_up(&mut server).await;
    // The guard lets go of its own copy just after the server has started, perhaps after `up`.
    let mut stdin = server.stdin.take().unwrap();
    let error = within(async {
        loop {
            match stdin.write_all(b"hello\n").await {
                Ok(()) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        }
    })
    .await;
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    within(server.kill()).await;
    mark.assert_gone();
}

#[tokio::test]
async fn a_server_that_signals_its_group_does_not_hit_the_guard() {
    let mark = ProcessMark::new();
    let script = "trap '' TERM; setsid sleep 1000 & kill 0; echo up; read line; kill -9 0";
    let mut server = supervisor().spawn(&shell(script, &mark)).unwrap();
    wait_up(&mut server).await;
    // A process shows no environment while it executes another program: all three are seen a moment later.
    until(
        "the one that left the group is seen, and got no signal",
        || mark.carriers().len() == 3,
    )
    .await;
    server.stdin = None;
    assert_eq!(within(server.wait()).await.signal, Some(9));
    mark.assert_gone();
}

#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_server_runs() {
    let mark = ProcessMark::new();
    let script = "for n in $(seq 50); do (true &) ; done; echo up; exec sleep 1000";
    let mut server = supervisor().spawn(&shell(script, &mark)).unwrap();
    wait_up(&mut server).await;
    let guard = server.guard_id().unwrap();
    until("only the server is left", || children(guard).len() == 1).await;
    within(server.kill()).await;
    mark.assert_gone();
}

#[tokio::test]
async fn a_flood_on_stderr_that_nobody_takes_does_not_hold_the_server_up() {
    let mark = ProcessMark::new();
    let script = "seq 1000000 >&2; echo done >&2";
    let mut server = supervisor().spawn(&shell(script, &mark)).unwrap();
    let mut lines = server.stderr.take().unwrap();
    let report = within(server.wait()).await;
    assert!(report.success());
    assert_eq!(report.last_stderr[19], "done");
    let mut seen = 0;
    while let Some(line) = within(lines.next()).await {
        seen += 1 + line.lost_before;
    }
    assert_eq!(seen, 1_000_001);
}

#[tokio::test]
async fn the_guard_has_one_thread_and_a_name_of_its_own() {
    let mark = ProcessMark::new();
    let mut server = supervisor()
        .spawn(&shell("echo up; exec cat", &mark))
        .unwrap();
    wait_up(&mut server).await;
    let guard = server.guard_id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{guard}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(field("Name:"), "mcp-guard");
    assert_eq!(field("Threads:"), "1");
    within(server.stop()).await;
    mark.assert_gone();
}

fn open_files(pid: u32) -> std::collections::BTreeSet<OsString> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

/// Which signals a process blocks, ignores and catches.
fn signals(pid: u32) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let wanted = ["SigBlk:", "SigIgn:", "SigCgt:"];
    let lines = status.lines().map(str::to_owned);
    lines
        .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
        .collect()
}

#[tokio::test]
async fn the_first_servers_have_large_pipes_and_the_rest_usual_ones() {
    let mark = ProcessMark::new();
    let supervisor = supervisor();
    let servers: Vec<_> = (0..10)
        .map(|_| supervisor.spawn(&shell("exec cat", &mark)).unwrap())
        .collect();
    let size =
        |server: &ServerProcess| rustix::pipe::fcntl_getpipe_size(server.stdin.as_ref().unwrap());
    assert_eq!(size(&servers[0]), Ok(1 << 20));
    assert_eq!(size(&servers[9]), Ok(1 << 16));
    drop(servers);
    mark.wait_gone().await;
}
