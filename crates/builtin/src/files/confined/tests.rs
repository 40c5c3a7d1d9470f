//! Both ways to resolve a path keep it below the directory.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;

const LOOKUPS: &[PathLookup] = &[
    #[cfg(target_os = "linux")]
    PathLookup::Kernel,
    PathLookup::Parts,
];

/// `inside` is the directory that is confined to; `secret.txt` next to it is what nobody may read.
fn sample() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir_all(inside.join("a/b")).unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    fs::write(inside.join("a/b/plain.txt"), "plain").unwrap();
    symlink("../secret.txt", inside.join("up")).unwrap();
    symlink("../../../secret.txt", inside.join("a/b/up")).unwrap();
    symlink("..", inside.join("parent")).unwrap();
    symlink(folder.path(), inside.join("absolute")).unwrap();
    symlink("/", inside.join("top")).unwrap();
    symlink("/proc/self/root", inside.join("magic")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    symlink("a/b/plain.txt", inside.join("good")).unwrap();
    symlink("a", inside.join("good-directory")).unwrap();
    (folder, inside)
}

fn read(directory: &ConfinedDirectory, path: &str) -> Result<String, AccessError> {
    let (mut file, _) = directory.open_file(Path::new(path))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn plain_paths_are_opened() {
    let (_folder, inside) = sample();
    for lookup in LOOKUPS {
        let directory = ConfinedDirectory::open(&inside)
            .unwrap()
            .with_lookup(*lookup);
        assert_eq!(read(&directory, "a/b/plain.txt").unwrap(), "plain");
        assert_eq!(
            directory.entries(Path::new("a/b")).unwrap().entries.len(),
            2
        );
        assert_eq!(directory.entries(Path::new("")).unwrap().entries.len(), 9);
        assert_eq!(
            directory.facts(Path::new("")).unwrap().kind,
            FileType::Directory
        );
        assert_eq!(read(&directory, "missing"), Err(AccessError::Missing));
        assert_eq!(read(&directory, "a"), Err(AccessError::IsDirectory));
        assert_eq!(
            read(&directory, "a/b/plain.txt/x"),
            Err(AccessError::NotDirectory)
        );
    }
}

#[test]
fn no_path_leads_out() {
    let (folder, inside) = sample();
    let absolute = folder.path().join("secret.txt");
    let paths = [
        "..",
        "../secret.txt",
        "a/../../secret.txt",
        "up",
        "a/b/up",
        "parent/secret.txt",
        "absolute/secret.txt",
        "absolute",
        "top/etc/passwd",
        "magic/etc/passwd",
        "loop",
        "loop/x",
        "good-directory/../../secret.txt",
        "/etc/passwd",
        "/",
        absolute.to_str().unwrap(),
    ];
    for lookup in LOOKUPS {
        let directory = ConfinedDirectory::open(&inside)
            .unwrap()
            .with_lookup(*lookup);
        for path in paths {
            assert!(read(&directory, path).is_err(), "{lookup:?} reads {path}");
            let path = Path::new(path);
            assert!(
                directory.facts(path).is_err(),
                "{lookup:?} looks at {path:?}"
            );
            assert!(
                directory.entries(path).is_err(),
                "{lookup:?} lists {path:?}"
            );
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn links_that_stay_inside_work_where_the_kernel_resolves_them() {
    let (_folder, inside) = sample();
    let directory = ConfinedDirectory::open(&inside).unwrap();
    assert_eq!(directory.lookup, PathLookup::Kernel);
    assert_eq!(read(&directory, "good").unwrap(), "plain");
    assert_eq!(
        read(&directory, "good-directory/b/plain.txt").unwrap(),
        "plain"
    );
    let directory = directory.with_lookup(PathLookup::Parts);
    assert_eq!(read(&directory, "good"), Err(AccessError::SymbolicLink));
    assert_eq!(
        read(&directory, "good-directory/b/plain.txt"),
        Err(AccessError::SymbolicLink)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_devices_and_kernel_files_are_refused_without_waiting() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    for lookup in LOOKUPS {
        let directory = ConfinedDirectory::open(folder.path()).unwrap();
        let directory = directory.with_lookup(*lookup);
        assert_eq!(read(&directory, "pipe"), Err(AccessError::SpecialFile));
        assert_eq!(read(&directory, "socket"), Err(AccessError::SpecialFile));

        let top = ConfinedDirectory::open(Path::new("/"))
            .unwrap()
            .with_lookup(*lookup);
        assert_eq!(read(&top, "dev/null"), Err(AccessError::SpecialFile));
        assert_eq!(read(&top, "dev/zero"), Err(AccessError::SpecialFile));
        for path in ["proc/version", "proc/1/status", "sys/kernel/notes"] {
            assert_eq!(read(&top, path), Err(AccessError::KernelFile), "{path}");
        }
        assert!(read(&top, "proc/self/environ").is_err());
        assert!(top.entries(Path::new("proc")).is_err());
    }
    assert!(ConfinedDirectory::open(Path::new("/proc")).is_err());
}

/// Somebody swaps a directory and a link to the outside while a file is read through it.
#[test]
fn a_race_with_a_link_is_never_won() {
    let (folder, inside) = sample();
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("b/plain.txt"), "secret").unwrap();
    let (real, link) = (inside.join("a"), inside.join("link"));
    symlink("..", &link).unwrap();
    for lookup in LOOKUPS {
        let directory = ConfinedDirectory::open(&inside).unwrap();
        let directory = directory.with_lookup(*lookup);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..2_000 {
                if let Ok(text) = read(&directory, "a/b/plain.txt") {
                    assert_eq!(text, "plain", "{lookup:?}");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
