//! Who is below whom: reads the process tree from Linux' `/proc`. Other systems have no such view here, and their
//! process groups have to do.

use std::io;

use rustix::process::Pid;

/// Makes this process the parent of everything below it that loses its own parent.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// The direct children of `pid`, unreaped ones included. Some may be missing while processes come and go, so a
/// caller that must get all of them asks until none is left.
#[cfg(target_os = "linux")]
pub(super) fn children(pid: Pid) -> Vec<Pid> {
    listed_children(pid).unwrap_or_else(|_| scanned_children(pid))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn children(_pid: Pid) -> Vec<Pid> {
    Vec::new()
}

/// Everything below `pid`, parents before their children.
pub(super) fn descendants(pid: Pid) -> Vec<Pid> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        for child in children(parent) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Asks a program to end that may stand behind shells: SIGTERM goes to the innermost processes, and the shells around them
/// end by themselves.
pub fn terminate_innermost(pid: Pid) {
    let innermost = |pid: &Pid| children(*pid).is_empty();
    for pid in std::iter::once(pid)
        .chain(descendants(pid))
        .filter(innermost)
    {
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The kernel's own list: one file for each thread, since each thread has its own children.
#[cfg(target_os = "linux")]
fn listed_children(pid: Pid) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = std::fs::read_to_string(thread?.path().join("children"))?;
        found.extend(list.split_ascii_whitespace().filter_map(parse_pid));
    }
    Ok(found)
}

/// For kernels without that list (`CONFIG_PROC_CHILDREN`): asks every process for its parent.
#[cfg(target_os = "linux")]
fn scanned_children(pid: Pid) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| parse_pid(entry.file_name().to_str()?))
        .filter(|candidate| {
            std::fs::read(format!("/proc/{candidate}/stat"))
                .is_ok_and(|stat| parent(&stat) == Some(pid))
        })
        .collect()
}

/// The parent named in a `/proc/PID/stat` line: `PID (NAME) STATE PARENT …`. The name may hold anything, also
/// spaces and parentheses.
#[cfg(target_os = "linux")]
fn parent(stat: &[u8]) -> Option<Pid> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = String::from_utf8_lossy(stat.get(after_name..)?);
    parse_pid(rest.split_ascii_whitespace().nth(1)?)
}

#[cfg(target_os = "linux")]
fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn parent_is_found_behind_any_name() {
        assert_eq!(parent(b"7 (sh) S 42 7 7 0"), Pid::from_raw(42));
        assert_eq!(parent(b"7 (a ) S 3) R 42 7 7 0"), Pid::from_raw(42));
        assert_eq!(parent(b""), None);
        assert_eq!(parent(b"7 (cut"), None);
    }

    #[test]
    fn both_ways_of_looking_find_the_same_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let me = rustix::process::getpid();
        assert!(listed_children(me).unwrap().contains(&pid));
        assert!(scanned_children(me).contains(&pid));
        assert!(descendants(me).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(me).contains(&pid));
    }
}
