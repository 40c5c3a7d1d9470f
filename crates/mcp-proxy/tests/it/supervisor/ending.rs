//! How servers end, by themselves and when they are stopped.

use mcp_proxy_transport::process::{EndCause, SpawnError};

use super::*;

#[tokio::test]
async fn a_server_that_ends_with_its_stdin_is_not_harmed() {
    let mark = ProcessMark::new();
    let mut server = supervisor()
        .spawn(&shell("echo up; sleep 1000 & cat; exit 4", &mark))
        .unwrap();
    wait_up(&mut server).await;
    let report = within(server.stop()).await;
    assert_eq!(
        (report.code, report.ended),
        (Some(4), EndCause::StdinClosed)
    );
    mark.assert_gone();
    assert_eq!(
        within(server.wait()).await,
        report,
        "a second wait says the same"
    );
}

#[tokio::test]
async fn a_server_that_stays_is_terminated() {
    let mark = ProcessMark::new();
    let mut server = hasty().spawn(&shell(FAMILY, &mark)).unwrap();
    wait_up(&mut server).await;
    let report = within(server.stop()).await;
    assert_eq!(
        (report.signal, report.ended),
        (Some(15), EndCause::Terminated)
    );
    assert_eq!((report.code, report.signal), (None, Some(15)));
    mark.assert_gone();
}

#[tokio::test]
async fn sigterm_reaches_those_who_left_the_group() {
    let mark = ProcessMark::new();
    let script = "trap : TERM
        setsid sh -c 'trap \"echo bye; exit\" TERM; echo up; sleep 1000 & wait' & wait; wait; exit 9";
    let mut server = hasty().spawn(&shell(script, &mark)).unwrap();
    wait_up(&mut server).await;
    let stdout = server.stdout.take().unwrap();
    let report = within(server.stop()).await;
    server.stdout = Some(stdout);
    assert_eq!(read_all(&mut server).await, "bye\n");
    assert_eq!((report.code, report.ended), (Some(9), EndCause::Terminated));
    mark.assert_gone();
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed() {
    let mark = ProcessMark::new();
    let script =
        "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo up; while :; do sleep 1000; done";
    let mut server = hasty().spawn(&shell(script, &mark)).unwrap();
    wait_up(&mut server).await;
    let report = within(server.stop()).await;
    assert_eq!((report.signal, report.ended), (Some(9), EndCause::Killed));
    mark.assert_gone();
}

#[tokio::test]
async fn a_killed_or_dropped_server_takes_its_family_along() {
    let mark = ProcessMark::new();
    let mut killed = supervisor().spawn(&shell(FAMILY, &mark)).unwrap();
    wait_up(&mut killed).await;
    until("the family is complete", || mark.carriers().len() == 6).await;
    let report = within(killed.kill()).await;
    assert_eq!((report.signal, report.ended), (Some(9), EndCause::Killed));
    mark.assert_gone();

    let mut dropped = supervisor().spawn(&shell(FAMILY, &mark)).unwrap();
    wait_up(&mut dropped).await;
    let guard = dropped.guard_id().unwrap();
    drop(dropped);
    mark.wait_gone().await;
    until("the guard is reaped", || {
        !children(std::process::id()).contains(&guard)
    })
    .await;
}

#[tokio::test]
async fn what_a_server_leaves_behind_ends_with_it() {
    let mark = ProcessMark::new();
    let script = "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 </dev/null >/dev/null 2>&1 &) ; exit 0";
    let mut server = supervisor().spawn(&shell(script, &mark)).unwrap();
    let report = within(server.wait()).await;
    assert!(report.success());
    assert_eq!(report.ended, EndCause::ByItself);
    mark.assert_gone();
}

#[tokio::test]
async fn a_servers_end_is_not_lost_among_the_ends_of_its_orphans() {
    let mark = ProcessMark::new();
    let script =
        "(sleep 0.01 &) ; (sleep 0.01 &) ; (sleep 0.01 &) ; (sleep 0.01 &) ; exec sleep 0.01";
    let supervisor = supervisor();
    for _ in 0..20 {
        let mut servers: Vec<_> = (0..10)
            .map(|_| supervisor.spawn(&shell(script, &mark)).unwrap())
            .collect();
        for server in &mut servers {
            assert!(within(server.wait()).await.success());
        }
    }
    mark.assert_gone();
}

#[tokio::test]
async fn the_status_is_the_servers_own() {
    let mark = ProcessMark::new();
    for code in [0, 1, 3, 101, 126, 127, 255] {
        let mut server = supervisor()
            .spawn(&shell(&format!("exit {code}"), &mark))
            .unwrap();
        let report = within(server.wait()).await;
        assert_eq!((report.code, report.signal), (Some(code), None));
    }
    for signal in [1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 30, 40, 64] {
        let mut server = supervisor()
            .spawn(&shell(&format!("kill -{signal} $$"), &mark))
            .unwrap();
        let report = within(server.wait()).await;
        assert_eq!((report.code, report.signal), (None, Some(signal)));
    }
}

#[tokio::test]
async fn an_early_exit_comes_with_its_last_words() {
    let mark = ProcessMark::new();
    let script = "for n in $(seq 100); do echo line $n >&2; done; printf 'no key' >&2; exit 3";
    let mut server = supervisor().spawn(&shell(script, &mark)).unwrap();
    let mut lines = server.stderr.take().unwrap();
    let report = within(server.wait()).await;
    assert_eq!((report.code, report.signal), (Some(3), None));
    assert_eq!(report.last_stderr.len(), 20);
    assert_eq!(report.last_stderr[0], "line 82");
    assert_eq!(report.last_stderr[19], "no key");
    let mut count = 0;
    while let Some(line) = within(lines.next()).await {
        assert!(line.time.elapsed().unwrap() < Duration::from_secs(20));
        count += 1;
    }
    assert_eq!(count, 101);
}

#[tokio::test]
async fn a_command_that_cannot_run_says_why_and_nothing_else() {
    let mark = ProcessMark::new();
    let cases = [
        ("no-such-command-here", 127),
        ("./nor/here", 127),
        ("/etc/passwd", 126),
        ("/", 126),
    ];
    let mut told = String::new();
    for (program, code) in cases {
        let command = ServerCommand {
            program: program.into(),
            ..shell("", &mark)
        };
        let mut server = supervisor().spawn(&command).unwrap();
        let mut lines = server.stderr.take().unwrap();
        let report = within(server.wait()).await;
        assert_eq!(report.code, Some(code));
        let failure = report.spawn_failure.as_deref().unwrap_or_default();
        assert!(failure.contains(&format!("{program:?}")), "{report:?}");
        told.push_str(&format!("{report}\n"));
        assert!(report.last_stderr.is_empty());
        assert_eq!(within(lines.next()).await, None);
        assert_eq!(read_all(&mut server).await, "");
    }
    insta::assert_snapshot!("spawn_failures", told);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_refused_at_once() {
    let mark = ProcessMark::new();
    for cwd in ["/no/such/folder", "/etc/passwd"] {
        let command = ServerCommand {
            cwd: Some(cwd.into()),
            ..shell("", &mark)
        };
        let error = supervisor().spawn(&command).unwrap_err();
        assert!(
            matches!(&error, SpawnError::Folder { path, .. } if path == Path::new(cwd)),
            "{error:?}"
        );
    }
    let no_guard = Supervisor::new(GuardProgram::at("/no/such/guard"));
    assert!(matches!(
        no_guard.spawn(&shell("", &mark)),
        Err(SpawnError::Guard(_))
    ));
}
