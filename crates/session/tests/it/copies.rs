//! Copies of records: whole, and never over anything.

use mcp_proxy_session::{SessionRecord, copy_record};

use crate::sample::SampleRecord;

#[test]
fn a_copy_has_all_messages_and_their_large_bodies() {
    let mut sample = SampleRecord::new();
    sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#,
        "x".repeat(100_000)
    );
    sample.answer(1, &large);
    let from = sample.open().path().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy.jsonl");
    // A name like that of an unfinished copy belongs to somebody else.
    let stranger = folder.path().join("copy.jsonl.new");
    std::fs::write(&stranger, "mine").unwrap();
    let bytes = copy_record(&from, &to).unwrap();
    assert!(bytes > 100_000, "{bytes}");
    let copy = SessionRecord::open(&to).unwrap();
    assert_eq!(copy.len(), 2);
    let body = copy.message(1).unwrap().raw.to_bytes();
    assert_eq!(body, large.as_bytes());
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "the copy and the stranger's file");
    assert_eq!(std::fs::read_to_string(&stranger).unwrap(), "mine");
    // What cannot be written is called as the user calls it.
    let nowhere = folder.path().join("nowhere/copy.jsonl");
    let text = copy_record(&from, &nowhere).unwrap_err().chain();
    let start = format!("cannot write to {}: No such file", nowhere.display());
    assert!(text.starts_with(&start), "{text}");
    // Nothing is overwritten, and a copy that fails leaves nothing.
    assert!(copy_record(&from, &to).is_err());
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2);
}
