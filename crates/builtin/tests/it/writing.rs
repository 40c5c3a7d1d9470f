//! `write_file` and `edit_file`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use mcp_proxy_builtin::WriteAccess;
use serde_json::json;

use crate::testbed::Testbed;

fn writable() -> Testbed {
    Testbed::new(WriteAccess::ReadWrite)
}

/// The names in the root.
fn names(testbed: &Testbed) -> Vec<String> {
    let entries = fs::read_dir(testbed.inside("")).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
        .into_iter()
        .map(|name| name.into_string().unwrap())
        .collect()
}

#[test]
fn files_are_created_and_replaced() {
    let testbed = writable();
    testbed.file("script.sh", "old");
    let script = testbed.inside("script.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    let write = |path: &str, content: &str| {
        testbed.call("write_file", json!({ "path": path, "content": content }))
    };
    assert!(!write("new.txt", "hello\n").is_error());
    assert!(!write("script.sh", "new").is_error());
    assert_eq!(
        fs::read_to_string(testbed.inside("new.txt")).unwrap(),
        "hello\n"
    );
    assert_eq!(fs::read_to_string(&script).unwrap(), "new");
    let mode = fs::metadata(&script).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(names(&testbed), ["new.txt", "script.sh"]);
}

#[test]
fn missing_directories_are_created() {
    let testbed = writable();
    fs::create_dir(testbed.outside("outside")).unwrap();
    symlink("../outside", testbed.inside("link")).unwrap();
    symlink("../outside/dangling", testbed.inside("dangling")).unwrap();
    let write = |path: &str| {
        let called = testbed.call("write_file", json!({ "path": path, "content": "new" }));
        !called.is_error()
    };
    assert!(write("a/b/c/new.txt"));
    assert!(write("a/b/other/new.txt"));
    assert_eq!(
        fs::read_to_string(testbed.inside("a/b/c/new.txt")).unwrap(),
        "new"
    );
    for path in [
        "link/new/new.txt",
        "dangling/new.txt",
        "dangling/new/new.txt",
        "a/b/c/new.txt/x/y",
    ] {
        assert!(!write(path), "{path} was written");
    }
    assert_eq!(fs::read_dir(testbed.outside("outside")).unwrap().count(), 0);
}

#[test]
fn an_edit_replaces_the_only_occurrence() {
    let testbed = writable();
    testbed.file("a.txt", "one\ntwo\nthree two\n");
    let edit = |old: &str, new: &str| {
        testbed.call(
            "edit_file",
            json!({ "path": "a.txt", "old": old, "new": new }),
        )
    };
    assert!(edit("two\nthree", "2\n3").text().contains("line 2"));
    assert!(edit("o", "0").failure().starts_with("`old` occurs 2 times"));
    assert!(
        edit("four", "4")
            .failure()
            .starts_with("`old` does not occur")
    );
    assert!(edit("", "4").failure().starts_with("`old`"));
    let text = fs::read_to_string(testbed.inside("a.txt")).unwrap();
    assert_eq!(text, "one\n2\n3 two\n");
}

#[test]
fn only_regular_files_are_written() {
    let testbed = writable();
    fs::write(testbed.outside("secret.txt"), "secret").unwrap();
    fs::create_dir(testbed.inside("directory")).unwrap();
    testbed.file("target.txt", "target");
    testbed.file("binary", b"\xff\xfe");
    symlink("../secret.txt", testbed.inside("out")).unwrap();
    symlink("target.txt", testbed.inside("in")).unwrap();
    symlink("..", testbed.inside("parent")).unwrap();
    symlink(testbed.outside("new.txt"), testbed.inside("dangling")).unwrap();
    let paths = [
        ".",
        "directory",
        "out",
        "in",
        "parent/new.txt",
        "parent/secret.txt",
        "dangling",
        "target.txt/new.txt",
        "../new.txt",
        "/new.txt",
        "",
    ];
    let before = names(&testbed);
    for path in paths {
        let called = testbed.call("write_file", json!({ "path": path, "content": "new" }));
        assert!(called.is_error(), "{path} was written");
    }
    let edit = json!({ "path": "out", "old": "secret", "new": "public" });
    assert!(testbed.call("edit_file", edit).is_error());
    let edit = json!({ "path": "binary", "old": "x", "new": "y" });
    assert!(testbed.call("edit_file", edit).failure().contains("UTF-8"));
    assert_eq!(names(&testbed), before);
    assert_eq!(
        fs::read_to_string(testbed.outside("secret.txt")).unwrap(),
        "secret"
    );
    assert_eq!(
        fs::read_to_string(testbed.inside("target.txt")).unwrap(),
        "target"
    );
    assert!(!testbed.outside("new.txt").exists());
}

#[test]
fn a_hard_link_elsewhere_keeps_its_content() {
    let testbed = writable();
    fs::write(testbed.outside("shared.txt"), "shared").unwrap();
    fs::hard_link(testbed.outside("shared.txt"), testbed.inside("shared.txt")).unwrap();
    let write = json!({ "path": "shared.txt", "content": "mine" });
    assert!(!testbed.call("write_file", write).is_error());
    assert_eq!(
        fs::read_to_string(testbed.outside("shared.txt")).unwrap(),
        "shared"
    );
    assert_eq!(
        fs::read_to_string(testbed.inside("shared.txt")).unwrap(),
        "mine"
    );
}
