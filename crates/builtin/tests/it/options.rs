//! Options that no server can be made from, and several roots.

use std::fs;

use mcp_proxy_builtin::{
    BuiltinError, BuiltinServer, FilesOptions, FilesServer, Root, TimeServer, WriteAccess,
};
use serde_json::json;
use tempfile::TempDir;

use crate::testbed::{call, server_of};

#[test]
fn bad_roots_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::write(path.join("file"), "").unwrap();
    for missing in ["missing", "file"] {
        let error = Root::open(path.join(missing)).err().unwrap();
        assert!(matches!(error, BuiltinError::OpenRoot { .. }), "{error}");
    }
    for name in ["", ".", "..", "a/b", "/", "a/"] {
        let error = Root::open_named(name, path).err().unwrap();
        assert!(
            matches!(error, BuiltinError::RootName { .. }),
            "{name}: {error}"
        );
    }
    let make = |names: &[&str]| {
        let open = |name: &&str| Root::open_named(*name, path).unwrap();
        let roots = names.iter().map(open).collect();
        let write = WriteAccess::ReadOnly;
        FilesServer::new(FilesOptions { roots, write }).err()
    };
    assert!(matches!(make(&[]), Some(BuiltinError::NoRoots)));
    assert!(
        matches!(make(&["a", "b", "a"]), Some(BuiltinError::DuplicateRoot { name }) if name == "a")
    );
    assert!(make(&["a", "b"]).is_none());
}

#[test]
fn the_default_is_the_current_directory() {
    let options = FilesOptions::current_directory().unwrap();
    assert_eq!(options.write, WriteAccess::ReadOnly);
    let current = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(options.roots[0].path(), current);
}

#[test]
fn connections_can_share_a_server() {
    fn expect_shareable<T: Send + Sync>() {}
    expect_shareable::<BuiltinServer>();
}

#[test]
fn an_unknown_local_zone_is_refused() {
    let error = TimeServer::in_zone("Mars/Olympus").err().unwrap();
    assert!(matches!(error, BuiltinError::UnknownZone { .. }));
}

#[test]
fn with_several_roots_paths_start_with_a_name() {
    let folder = TempDir::new().unwrap();
    let server = server_of(folder.path(), &["code", "notes", "code/nested"]);
    fs::write(folder.path().join("code/a.txt"), "alpha").unwrap();
    fs::write(folder.path().join("notes/b.txt"), "beta").unwrap();
    fs::write(folder.path().join("code/nested/c.txt"), "gamma").unwrap();

    let top = call(&server, "list_directory", json!({}));
    assert_eq!(
        top.value()["entries"],
        json!([
            { "name": "code", "type": "directory" },
            { "name": "notes", "type": "directory" },
            { "name": "nested", "type": "directory" },
        ])
    );
    let read = |path: &str| call(&server, "read_file", json!({ "path": path }));
    assert_eq!(read("code/a.txt").text(), "alpha");
    assert_eq!(read("./notes/b.txt").text(), "beta");
    let absolute = fs::canonicalize(folder.path().join("notes/b.txt")).unwrap();
    assert_eq!(read(absolute.to_str().unwrap()).text(), "beta");
    for path in ["a.txt", ".", "", "other/a.txt", "code/../notes/b.txt"] {
        assert!(read(path).failure().starts_with("`path` must"), "{path}");
    }

    let found = call(&server, "search_files", json!({ "pattern": "*.txt" }));
    assert_eq!(
        found.value()["matches"],
        json!([
            "code/a.txt",
            "code/nested/c.txt",
            "notes/b.txt",
            "nested/c.txt"
        ])
    );
    let nested = fs::canonicalize(folder.path().join("code/nested/c.txt")).unwrap();
    let info = call(&server, "file_info", json!({ "path": nested }));
    assert_eq!(info.value()["path"], "nested/c.txt");
    let listed = call(&server, "list_directory", json!({ "path": "notes/" }));
    assert_eq!(listed.value()["entries"][0]["name"], "b.txt");
}
