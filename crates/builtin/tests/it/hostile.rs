//! Paths that try to leave the root.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mcp_proxy_builtin::WriteAccess;
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::testbed::Testbed;

/// Stands in every file and file name outside of the root.
const SECRET: &str = "s3cr3t";

/// A root full of links that lead out of it, next to a directory that nobody may see.
fn trapped() -> Testbed {
    let testbed = Testbed::new(WriteAccess::ReadWrite);
    let outside = testbed.outside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(format!("{SECRET}.txt")), SECRET).unwrap();
    fs::write(outside.join("file.txt"), SECRET).unwrap();
    fs::write(testbed.outside("file.txt"), SECRET).unwrap();
    testbed.file("file.txt", "harmless");
    testbed.file("dir/file.txt", "harmless");
    symlink("..", testbed.inside("parent")).unwrap();
    symlink("../outside", testbed.inside("relative")).unwrap();
    symlink(&outside, testbed.inside("absolute")).unwrap();
    symlink("../../outside", testbed.inside("dir/deeper")).unwrap();
    symlink("../outside/file.txt", testbed.inside("link.txt")).unwrap();
    symlink("relative/file.txt", testbed.inside("chain.txt")).unwrap();
    symlink("dir/../../outside", testbed.inside("winding")).unwrap();
    symlink("/proc/self/cwd", testbed.inside("cwd")).unwrap();
    symlink("/proc/self/root", testbed.inside("top")).unwrap();
    symlink("/", testbed.inside("slash")).unwrap();
    symlink("loop", testbed.inside("loop")).unwrap();
    testbed
}

#[test]
fn hostile_paths_are_refused() {
    let testbed = trapped();
    let outside = testbed.outside("outside/file.txt");
    let outside = outside.to_str().unwrap();
    let dotted = testbed.inside("../outside/file.txt");
    let below_dotted = testbed.inside("dir/../../outside/file.txt");
    let sibling = format!(
        "{}-evil",
        testbed.inside("").to_str().unwrap().trim_end_matches('/')
    );
    let through_top = format!("top{outside}");
    let through_slash = format!("slash{outside}");
    let doubled = format!("/{outside}");
    let uri = format!("file://{outside}");
    let long = "a/".repeat(3_000);
    let long_name = "a".repeat(300);
    let paths = [
        "..",
        "../",
        "../file.txt",
        "../outside/file.txt",
        "dir/../../file.txt",
        "./../file.txt",
        "dir/..",
        "parent",
        "parent/file.txt",
        "parent/outside/file.txt",
        "parent/inside/file.txt",
        "relative",
        "relative/file.txt",
        "absolute",
        "absolute/file.txt",
        "dir/deeper",
        "dir/deeper/file.txt",
        "link.txt",
        "chain.txt",
        "winding/file.txt",
        "cwd",
        "cwd/Cargo.toml",
        "loop",
        "loop/file.txt",
        "file.txt/..",
        "file.txt/../../file.txt",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/environ",
        "/proc/self/fd/0",
        "/dev/zero",
        "/dev/stdin",
        "..\\file.txt",
        "%2e%2e/file.txt",
        "~/file.txt",
        "file.txt\0",
        "\0",
        "\u{ff0e}\u{ff0e}/file.txt",
        outside,
        dotted.to_str().unwrap(),
        below_dotted.to_str().unwrap(),
        &sibling,
        &through_top,
        &through_slash,
        &doubled,
        &uri,
        &long,
        &long_name,
    ];
    for path in paths {
        for tool in ["list_directory", "read_file", "file_info"] {
            let called = testbed.call(tool, json!({ "path": path }));
            assert!(called.is_error(), "{tool} {path:?}: {}", called.0);
            assert!(
                called.failure().len() < 700,
                "{tool} {path:?}: {}",
                called.0
            );
            assert!(!called.failure().contains(SECRET));
        }
        let searches = [
            ("search_files", json!({ "path": path, "pattern": "**" })),
            ("search_text", json!({ "path": path, "regex": "." })),
        ];
        for (tool, arguments) in searches {
            let called = testbed.call(tool, arguments);
            assert!(called.is_error(), "{tool} {path:?}: {}", called.0);
        }
    }
}

#[test]
fn searches_stay_inside() {
    let testbed = trapped();
    let found = testbed.call("search_files", json!({ "pattern": "**" }));
    assert!(!found.text().contains(SECRET));
    let found = testbed.call("search_text", json!({ "regex": "." }));
    assert_eq!(
        found.value()["matches"],
        json!([
            { "path": "dir/file.txt", "line": 1, "text": "harmless" },
            { "path": "file.txt", "line": 1, "text": "harmless" },
        ])
    );
}

/// Parts of paths, most of which lead somewhere in [`trapped`].
fn part() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "..",
        ".",
        "",
        "dir",
        "file.txt",
        "outside",
        "inside",
        "parent",
        "relative",
        "absolute",
        "deeper",
        "link.txt",
        "chain.txt",
        "winding",
        "cwd",
        "top",
        "slash",
        "loop",
        "proc",
        "self",
        "root",
        "tmp",
        "etc",
        "...",
        "..\\..",
        "~",
        "\0",
        "*",
        "INSIDE",
        "OUTSIDE",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => "\\PC{0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_path_shows_or_changes_what_is_outside(parts in prop::collection::vec(part(), 1..7)) {
        let testbed = trapped();
        let inside = testbed.inside("");
        let outside = testbed.outside("outside");
        let path = parts
            .join("/")
            .replace("INSIDE", inside.to_str().unwrap())
            .replace("OUTSIDE", outside.to_str().unwrap());
        let calls = [
            ("list_directory", json!({ "path": path })),
            ("read_file", json!({ "path": path })),
            ("file_info", json!({ "path": path })),
            ("search_files", json!({ "path": path, "pattern": "**" })),
            ("search_files", json!({ "pattern": path })),
            ("search_text", json!({ "path": path, "regex": "." })),
            ("edit_file", json!({ "path": path, "old": SECRET, "new": "changed" })),
            ("write_file", json!({ "path": path, "content": "harmless" })),
        ];
        for (tool, arguments) in calls {
            let called = testbed.call(tool, arguments);
            prop_assert!(!called.0.to_string().contains(SECRET), "{tool} {path:?}: {}", called.0);
        }
        prop_assert_eq!(fs::read(outside.join("file.txt")).unwrap(), SECRET.as_bytes());
        prop_assert_eq!(fs::read(testbed.outside("file.txt")).unwrap(), SECRET.as_bytes());
        prop_assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        prop_assert_eq!(fs::read_dir(testbed.outside("")).unwrap().count(), 3);
    }
}

/// Somebody swaps a directory and a link to the outside while files are read and written through it.
#[test]
fn a_race_with_a_link_is_never_won() {
    let testbed = trapped();
    let (dir, link) = (testbed.inside("dir"), testbed.inside("evil"));
    symlink("../outside", &link).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..500 {
            let read = testbed.call("read_file", json!({ "path": "dir/file.txt" }));
            let listed = testbed.call("list_directory", json!({ "path": "dir" }));
            let found = testbed.call("search_text", json!({ "query": SECRET }));
            let write = json!({ "path": "dir/file.txt", "content": "harmless" });
            let written = testbed.call("write_file", write);
            for called in [read, listed, found, written] {
                assert!(!called.0.to_string().contains(SECRET), "{}", called.0);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let outside = testbed.outside("outside/file.txt");
    assert_eq!(fs::read_to_string(outside).unwrap(), SECRET);
}
