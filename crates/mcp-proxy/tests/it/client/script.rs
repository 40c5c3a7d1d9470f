//! `shell` with a script: several connections, mistakes, and the exit code.

use std::io::Write as _;
use std::process::{Output, Stdio};

use super::{DEMO, complaint, printed};
use crate::control::test_home::{PROXY, TestHome};

fn shell(flags: &[&str], script: &str) -> Output {
    let home = TestHome::new();
    let mut command = home.command(&[&["shell"], flags].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn a_script_uses_several_connections() {
    let script = format!(
        "# two servers\n\
         call echo message='from the first'\n\
         connect other -- {PROXY} demo-server stdio\n\
         connections\n\
         call echo message=second\n\
         use server\n\
         disconnect other\n\
         connections\n\
         call add --args '{{\"a\": 1,\n  \"b\": 2}}'\n\
         read demo://greeting/Ada\n\
         search dice\n\
         quit\n\
         call echo message=never\n"
    );
    let output = shell(&DEMO, &script);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!("shell-script", printed(&output));
}

#[test]
fn mistakes_do_not_stop_a_script_unless_asked() {
    let script =
        "cal echo\ncall ecko\nuse nothing\ncall roll_dice count=100\ncall echo message=last\n";
    let output = shell(&DEMO, script);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(printed(&output), "last\n");
    insta::assert_snapshot!("shell-mistakes", complaint(&output));
    let stopped = shell(
        &[&["--fail-fast"], &DEMO[..]].concat(),
        "call roll_dice count=100\ncall echo message=last\n",
    );
    assert_eq!(stopped.status.code(), Some(1));
    assert!(stopped.stdout.is_empty());
}

#[test]
fn a_shell_without_a_hub_starts_without_a_connection() {
    let output = shell(&[], "tools\nconnect far http://127.0.0.1:1/mcp\n");
    assert_eq!(output.status.code(), Some(2));
    let complaint = complaint(&output);
    assert!(complaint.contains("line 2: cannot connect"), "{complaint}");
    assert_eq!(shell(&[], "call add 'open").status.code(), Some(2));
}
