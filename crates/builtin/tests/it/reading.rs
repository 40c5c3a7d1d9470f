//! `read_file`, `list_directory` and `file_info`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::testbed::Testbed;

const TEXT_LIMIT: usize = 256 << 10;

#[test]
fn text_is_returned_as_it_is() {
    let testbed = Testbed::read_only();
    let text = "first\r\nsecond\n\nfourth, ünïcode";
    testbed.file("a/text.txt", text);
    testbed.file("empty", "");
    let read = |arguments| testbed.call("read_file", arguments);
    assert_eq!(read(json!({ "path": "a/text.txt" })).text(), text);
    assert_eq!(read(json!({ "path": "./a//text.txt" })).text(), text);
    assert_eq!(
        read(json!({ "path": testbed.inside("a/text.txt") })).text(),
        text
    );
    assert_eq!(read(json!({ "path": "empty" })).text(), "");

    let part = read(json!({ "path": "a/text.txt", "offset": 2, "limit": 2 }));
    assert_eq!(part.text(), "second\n\n");
    assert!(part.block(1).contains("offset 4"));
    let rest = read(json!({ "path": "a/text.txt", "offset": 4.0 }));
    assert_eq!(rest.text(), "fourth, ünïcode");
    assert_eq!(rest.0["content"].as_array().unwrap().len(), 1);
}

#[test]
fn bad_arguments_are_named() {
    let testbed = Testbed::read_only();
    testbed.file("text", "one\ntwo\n");
    let table = [
        (json!({}), "`path`"),
        (json!({ "path": null }), "`path`"),
        (json!({ "path": 5 }), "`path`"),
        (json!({ "path": "text", "offset": 0 }), "`offset`"),
        (json!({ "path": "text", "offset": -1 }), "`offset`"),
        (json!({ "path": "text", "offset": "1" }), "`offset`"),
        (json!({ "path": "text", "offset": 1.5 }), "`offset`"),
        (json!({ "path": "text", "offset": 3 }), "`offset`"),
        (json!({ "path": "text", "offset": u64::MAX }), "`offset`"),
        (json!({ "path": "text", "limit": 0 }), "`limit`"),
        (json!({ "path": "text", "lines": 1 }), "`lines`"),
    ];
    for (arguments, parameter) in table {
        let called = testbed.call("read_file", arguments.clone());
        assert!(
            called.failure().starts_with(parameter),
            "{arguments}: {}",
            called.0
        );
    }
}

#[test]
fn large_texts_come_in_parts() {
    let testbed = Testbed::read_only();
    let line = format!("{}\n", "x".repeat(99));
    testbed.file("large.txt", line.repeat(10_000));
    let mut offset = 1;
    let mut read = 0;
    loop {
        let called = testbed.call(
            "read_file",
            json!({ "path": "large.txt", "offset": offset }),
        );
        assert!(called.text().len() <= TEXT_LIMIT);
        assert!(called.text().ends_with(&line));
        read += called.text().len();
        offset = 1 + read / line.len();
        match called.0["content"].get(1) {
            Some(_) => assert!(called.block(1).contains(&format!("offset {offset}"))),
            None => break,
        }
    }
    assert_eq!(read, 1_000_000);
}

#[test]
fn a_very_long_line_is_cut_between_characters() {
    let testbed = Testbed::read_only();
    testbed.file("long.txt", format!("x{}\nnext\n", "ü".repeat(TEXT_LIMIT)));
    let called = testbed.call("read_file", json!({ "path": "long.txt" }));
    assert_eq!(called.text().len(), TEXT_LIMIT - 1);
    assert!(called.block(1).contains("offset 2"));
    let next = testbed.call("read_file", json!({ "path": "long.txt", "offset": 2 }));
    assert_eq!(next.text(), "next\n");
}

#[test]
fn files_over_16_mib_need_an_offset() {
    let testbed = Testbed::read_only();
    testbed.file("huge.txt", "0123456789abcde\n".repeat((16 << 16) + 1));
    let called = testbed.call("read_file", json!({ "path": "huge.txt" }));
    assert!(called.failure().contains("`offset`"));
    let last = json!({ "path": "huge.txt", "offset": (16 << 16) + 1 });
    assert_eq!(testbed.call("read_file", last).text(), "0123456789abcde\n");
}

#[test]
fn sparse_files_of_any_size_are_refused() {
    let testbed = Testbed::read_only();
    testbed.file("sparse", "");
    let file = fs::File::options()
        .write(true)
        .open(testbed.inside("sparse"));
    file.unwrap().set_len(1 << 40).unwrap();
    assert!(
        testbed
            .call("read_file", json!({ "path": "sparse" }))
            .is_error()
    );
    let found = testbed.call("search_text", json!({ "regex": "." }));
    assert_eq!(found.value()["matches"], json!([]));
}

#[test]
fn images_and_other_binary_files_are_base64() {
    let testbed = Testbed::read_only();
    testbed.file("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    testbed.file("b.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF");
    testbed.file("c d.bin", b"\0\x01\x02");
    testbed.file("large.bin", vec![0; (4 << 20) + 1]);
    let read = |path: &str| testbed.call("read_file", json!({ "path": path }));
    assert_eq!(
        read("a.png").0["content"],
        json!([{ "type": "image", "data": "iVBORw0KGgoAAAANSUhEUg==", "mimeType": "image/png" }])
    );
    assert_eq!(read("b.jpg").0["content"][0]["mimeType"], "image/jpeg");
    let binary = read("c d.bin");
    assert_eq!(binary.0["content"][0]["type"], "resource");
    assert_eq!(binary.0["content"][0]["resource"]["blob"], "AAEC");
    let uri = binary.0["content"][0]["resource"]["uri"].as_str().unwrap();
    assert!(
        uri.starts_with("file:///") && uri.ends_with("/inside/c%20d.bin"),
        "{uri}"
    );
    assert!(read("large.bin").is_error());
    let part = testbed.call("read_file", json!({ "path": "a.png", "offset": 1 }));
    assert!(part.failure().starts_with("`offset`"));
}

#[test]
fn text_in_another_encoding_is_shown_with_a_remark() {
    let testbed = Testbed::read_only();
    testbed.file("latin1.txt", b"caf\xe9\n");
    testbed.file("large.txt", vec![0xe9; 1 << 20]);
    let called = testbed.call("read_file", json!({ "path": "latin1.txt" }));
    assert_eq!(called.text(), "caf\u{fffd}\n");
    assert!(called.block(1).contains("UTF-8"));
    let called = testbed.call("read_file", json!({ "path": "large.txt" }));
    assert!(called.text().len() <= TEXT_LIMIT);
}

#[test]
fn a_directory_is_listed_by_name() {
    let testbed = Testbed::read_only();
    testbed.file("b.txt", "12345");
    testbed.file("a/deep.txt", "");
    symlink("b.txt", testbed.inside("link")).unwrap();
    let expected = json!([
        { "name": "a", "type": "directory" },
        { "name": "b.txt", "type": "file", "size": 5 },
        { "name": "link", "type": "symlink" },
    ]);
    for arguments in [
        json!({}),
        json!({ "path": "." }),
        json!({ "path": "" }),
        json!({ "path": testbed.inside("") }),
    ] {
        let listed = testbed.call("list_directory", arguments);
        assert_eq!(listed.value()["entries"], expected);
        assert_eq!(listed.value()["truncated"], false);
    }
    assert!(
        testbed
            .call("list_directory", json!({ "path": "b.txt" }))
            .is_error()
    );
    assert!(
        testbed
            .call("list_directory", json!({ "path": "none" }))
            .is_error()
    );
}

#[test]
fn a_large_directory_is_cut() {
    let testbed = Testbed::read_only();
    for number in 0..1_100 {
        testbed.file(&format!("{number:04}-{}", "n".repeat(220)), "");
    }
    let listed = testbed.call("list_directory", json!({}));
    assert!(listed.text().len() <= TEXT_LIMIT);
    assert_eq!(listed.value()["truncated"], true);
    assert!(listed.value()["note"].as_str().unwrap().contains("1100"));
}

#[test]
fn file_info_tells_what_is_known() {
    let testbed = Testbed::read_only();
    testbed.file("a.txt", "123");
    let path = testbed.inside("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.set_modified(modified).unwrap();
    let info = testbed.call("file_info", json!({ "path": "a.txt" }));
    assert_eq!(
        *info.value(),
        json!({
            "path": "a.txt",
            "type": "file",
            "size": 3,
            "permissions": "0640",
            "modified": "2001-09-09T01:46:40Z",
        })
    );
    let root = testbed.call("file_info", json!({ "path": "." }));
    assert_eq!(root.value()["type"], "directory");
}
