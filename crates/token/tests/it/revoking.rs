//! The file of revoked tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use mcp_proxy_token::{RevocationEntry, RevocationList, TokenError, VerifiedToken};

use crate::vectors::now;

struct RevokedFile {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl RevokedFile {
    fn new(text: &str) -> RevokedFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revoked");
        fs::write(&path, text).unwrap();
        RevokedFile {
            _folder: folder,
            path,
        }
    }

    fn list(&self) -> RevocationList {
        RevocationList::open(&self.path).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

fn token(user: &str, token_id: &str, issued_at: Option<SystemTime>) -> VerifiedToken {
    VerifiedToken {
        user: user.to_owned(),
        expires_at: now() + Duration::from_secs(3600),
        issued_at,
        token_id: Some(token_id.to_owned()),
        connection_url: None,
    }
}

fn one(token_id: &str) -> RevocationEntry {
    RevocationEntry::Token(token_id.to_owned())
}

const REVOKED: Result<(), TokenError> = Err(TokenError::Revoked);

#[test]
fn no_file_revokes_nothing_and_the_first_entry_creates_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay/revoked");
    let mut list = RevocationList::open(&path).unwrap();
    let token = token("alice", "t1", Some(now()));
    assert_eq!(list.check(&token), Ok(()));
    list.append(one("t1")).unwrap();
    assert_eq!(list.check(&token), REVOKED);
    assert_eq!(fs::read_to_string(&path).unwrap(), "t1\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_user_is_revoked_up_to_a_time() {
    let file = RevokedFile::new("");
    let mut list = file.list();
    let half_a_second_later = now() + Duration::from_millis(500);
    list.append(RevocationEntry::user_until("alice", half_a_second_later))
        .unwrap();
    for list in [list, file.list()] {
        let second = Duration::from_secs(1);
        assert_eq!(
            list.check(&token("alice", "t", Some(now() - second))),
            REVOKED
        );
        // The token was issued in the same second, nobody knows whether before or after.
        assert_eq!(list.check(&token("alice", "t", Some(now()))), REVOKED);
        assert_eq!(
            list.check(&token("alice", "t", Some(now() + second))),
            Ok(())
        );
        assert_eq!(list.check(&token("alice", "t", None)), REVOKED);
        assert_eq!(list.check(&token("bob", "t", None)), Ok(()));
        let next = list.next_issue("alice", half_a_second_later).unwrap();
        assert_eq!(list.check(&token("alice", "t", Some(next))), Ok(()));
        assert_eq!(list.next_issue("bob", now()), Some(now()));
    }
    assert_eq!(file.text(), "user:alice 2027-01-15T08:00:01Z\n");
}

#[test]
fn a_user_without_a_time_is_revoked_for_good_and_the_latest_time_counts() {
    let file = RevokedFile::new(
        "user:mallory\n\
         user:mallory 2020-01-01T00:00:00Z\n\
         user:a b 2030-01-01T00:00:00Z\n\
         user:a b 2020-01-01T00:00:00Z\n",
    );
    let list = file.list();
    let late = now() + Duration::from_secs(1_000_000);
    assert_eq!(list.check(&token("mallory", "t", Some(late))), REVOKED);
    assert_eq!(list.next_issue("mallory", late), None);
    assert_eq!(list.check(&token("a b", "t", Some(late))), REVOKED);
    assert_eq!(list.next_issue("a b", late), None);
}

#[test]
fn comments_and_lines_of_the_future_are_kept() {
    let text = "# why: a lost laptop\n\n  t1  \nuser:alice someday\nip:10.0.0.1 2030\nuser:\njti:\n\
                \u{feff}strange\n# t2";
    let file = RevokedFile::new(text);
    let mut list = file.list();
    assert_eq!(list.check(&token("alice", "t1", Some(now()))), REVOKED);
    assert_eq!(list.check(&token("alice", "t2", Some(now()))), Ok(()));
    list.append(one("t3")).unwrap();
    // The comment at the end had no line break.
    assert_eq!(file.text(), format!("{text}\nt3\n"));
    assert_eq!(file.list().check(&token("alice", "t3", None)), REVOKED);
}

#[test]
fn bytes_that_are_not_text_are_tolerated() {
    let file = RevokedFile::new("");
    fs::write(&file.path, b"\xff\xfe\nt1\n").unwrap();
    assert_eq!(file.list().check(&token("alice", "t1", None)), REVOKED);
}

#[test]
fn names_that_look_like_something_else_survive_the_file() {
    for name in [
        "user:bob 2030-01-01T00:00:00Z",
        "#1",
        "jti:x",
        "a b",
        "ü",
        "-v",
    ] {
        let file = RevokedFile::new("");
        file.list().append(one(name)).unwrap();
        let list = file.list();
        assert_eq!(list.check(&token("bob", name, None)), REVOKED, "{name}");
        assert_eq!(list.check(&token("bob", "other", None)), Ok(()), "{name}");
        let user = RevocationEntry::user_until(name, now());
        file.list().append(user).unwrap();
        assert_eq!(file.list().check(&token(name, "other", None)), REVOKED);
    }
}

#[test]
fn a_name_cannot_smuggle_in_a_line() {
    let file = RevokedFile::new("");
    for name in ["a\nuser:bob", "", " a", "a\r"] {
        assert!(file.list().append(one(name)).is_err(), "{name:?}");
        let user = RevocationEntry::user_until(name, now());
        assert!(file.list().append(user).is_err(), "{name:?}");
    }
    assert_eq!(file.text(), "");
}

#[test]
fn the_entry_of_another_process_is_seen_after_a_refresh() {
    let file = RevokedFile::new("# ours\n");
    let mut running = file.list();
    file.list().append(one("t1")).unwrap();
    assert_eq!(running.check(&token("alice", "t1", None)), Ok(()));
    running.refresh().unwrap();
    assert_eq!(running.check(&token("alice", "t1", None)), REVOKED);
    // An editor replaces the file.
    let other = file.path.with_extension("new");
    fs::write(&other, "t2\n").unwrap();
    fs::rename(&other, &file.path).unwrap();
    running.refresh().unwrap();
    assert_eq!(running.check(&token("alice", "t1", None)), Ok(()));
    assert_eq!(running.check(&token("alice", "t2", None)), REVOKED);
}

#[test]
fn a_file_that_is_gone_leaves_its_entries_in_force() {
    let file = RevokedFile::new("t1\n");
    let mut list = file.list();
    fs::remove_file(&file.path).unwrap();
    assert!(list.refresh().is_err());
    assert_eq!(list.check(&token("alice", "t1", None)), REVOKED);
}

#[test]
fn many_writers_lose_no_line() {
    let file = RevokedFile::new("# no line break here");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..10 {
                    file.list()
                        .append(one(&format!("t-{writer}-{number}")))
                        .unwrap();
                }
            });
        }
    });
    let list = file.list();
    for (writer, number) in (0..4).flat_map(|writer| (0..10).map(move |n| (writer, n))) {
        let name = format!("t-{writer}-{number}");
        assert_eq!(list.check(&token("alice", &name, None)), REVOKED, "{name}");
    }
    assert_eq!(file.text().lines().count(), 41);
}
