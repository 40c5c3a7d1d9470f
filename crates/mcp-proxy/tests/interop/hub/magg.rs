//! Magg's own client and decoders with the `proxy` tool, whose form is Magg's.

use std::time::Duration;

use serde_json::json;

use crate::endpoint::{EndpointKind, MountedServer, demo, hub};
use crate::fixtures;
use crate::process::{finish, said};

/// A tool, a resource and a prompt of the demo server as the hub names them, each with its arguments.
const USES: [&[&str]; 2] = [
    &["--tool", "demo_add", "--args", r#"{"a": 1, "b": 2}"#],
    &[
        "--tool",
        "demo_test_multiple_content_types",
        "--resource",
        "test://demo/static-binary",
        "--prompt",
        "demo_test_prompt_with_arguments",
        "--prompt-args",
        r#"{"arg1": "left", "arg2": "right"}"#,
    ],
];

fn check(expose: &str) {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    let server = MountedServer {
        name: "demo",
        endpoint: demo(EndpointKind::Stdio),
        options: json!({}),
    };
    let hub = hub(vec![server], expose, EndpointKind::Http);
    for uses in USES {
        let script = fixtures::peer("magg_client.py");
        let mut command = fixtures::command(&python, &[&script, hub.to_url()]);
        let output = finish(command.args(uses), Duration::from_secs(90));
        let report = String::from_utf8_lossy(&output.stdout);
        let is_outcome = |line: &&str| !line.starts_with('#');
        let passes = report.lines().filter(is_outcome).count();
        let all_pass = report
            .lines()
            .filter(is_outcome)
            .all(|line| line.starts_with("PASS"));
        assert!(
            output.status.success() && all_pass && passes > 30,
            "{}",
            said(&output)
        );
    }
}

#[test]
fn one_tool_for_everything() {
    check("proxy");
}

#[test]
fn one_tool_next_to_all_others() {
    check("all,proxy");
}
