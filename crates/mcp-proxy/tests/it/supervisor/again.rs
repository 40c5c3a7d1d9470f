//! What a restart policy stands on: how a server ended, and the same command once more.

use mcp_proxy_transport::process::EndCause;

use super::*;

#[tokio::test]
async fn the_same_command_starts_again_and_each_end_has_its_own_report() {
    let mark = ProcessMark::new();
    let supervisor = supervisor();
    let command = shell("read line; echo got $line >&2; exit 3", &mark);
    for word in ["one", "two", "three"] {
        let mut server = supervisor.spawn(&command).unwrap();
        let mut stdin = server.stdin.take().unwrap();
        let line = format!("{word}\n");
        tokio::io::AsyncWriteExt::write_all(&mut stdin, line.as_bytes())
            .await
            .unwrap();
        let report = within(server.wait()).await;
        assert_eq!((report.code, report.ended), (Some(3), EndCause::ByItself));
        assert_eq!(report.last_stderr, [format!("got {word}")]);
    }
    mark.assert_gone();
}

#[tokio::test]
async fn a_report_says_how_long_the_server_ran() {
    let mark = ProcessMark::new();
    let mut server = supervisor().spawn(&shell("sleep 0.2", &mark)).unwrap();
    let report = within(server.wait()).await;
    assert!(report.ran >= Duration::from_millis(200), "{report:?}");
    assert_eq!(within(server.wait()).await, report, "it does not grow");

    let gone = ServerCommand {
        program: "no-such-command-here".into(),
        ..shell("", &mark)
    };
    let report = within(supervisor().spawn(&gone).unwrap().wait()).await;
    assert!(report.spawn_failure.is_some());
    assert!(report.ran < Duration::from_secs(20), "{report:?}");
}
