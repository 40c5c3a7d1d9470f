//! The mark of a guard: how everything that it started is recognised later, however far it has moved away.
//!
//! Children that a killed guard leaves behind become children of the proxy, next to programs that the proxy started for
//! itself. Process group and session do not tell them apart after a `setsid`, and the environment does not after an
//! `env -i`; nor has a zombie any environment left. Resource limits do: a process inherits them over fork and exec, and
//! `/proc` shows them until it is reaped. So a guard writes its own process id into its soft limit of file locks
//! (`ulimit -x`) before it starts the server. Linux has not enforced that limit since 2.4.25 (getrlimit(2)), so nobody
//! sets it and it costs nothing.
//!
//! A server may be a proxy with guards of its own. Their marks keep the mark they were born with and add their own
//! process id, so the outer proxy recognises the processes of the inner one, if both the guard and the inner proxy
//! were killed. There is room for two process ids; guards in a third proxy inside the second are unknown to the first.
//!
//! What is not recognised: a process that sets this limit itself, and all of them where the kernel refuses the limit
//! because a finite hard limit was set for the proxy. They get the end of their stdin, as they do without Linux.

use rustix::process::Pid;

/// Process ids are below 2^22 on Linux.
#[cfg(target_os = "linux")]
const PID_BITS: u32 = 22;

/// What the processes of one guard carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuardMark(u64);

#[cfg(target_os = "linux")]
impl GuardMark {
    /// The mark of the guard `guard`, which this process started.
    pub(super) fn of_guard(guard: Pid) -> Self {
        Self::below(own_limit(), guard)
    }

    /// Makes this process, a guard, and all that it starts from now on carry its mark.
    pub(super) fn put_on() {
        use rustix::process::{Resource, Rlimit, getpid, getrlimit, setrlimit};
        let mark = Self::below(own_limit(), getpid());
        let limit = Rlimit {
            current: Some(mark.0),
            maximum: getrlimit(Resource::Locks).maximum,
        };
        // The guard works without it; only after its own SIGKILL may a process be left.
        let _ = setrlimit(Resource::Locks, limit);
    }

    /// Whether `process` carries this mark.
    pub(super) fn is_on(self, process: Pid) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/limits"))
            .is_ok_and(|limits| soft_limit(&limits).is_some_and(|limit| self.is_in(limit)))
    }

    fn below(born_with: u64, guard: Pid) -> Self {
        let pid = u64::from(guard.as_raw_pid().unsigned_abs());
        // The highest bit stays clear: all bits set would mean no limit.
        Self((born_with << PID_BITS | pid) & (u64::MAX >> 1))
    }

    fn is_in(self, limit: u64) -> bool {
        std::iter::successors(Some(limit), |limit| Some(limit >> PID_BITS))
            .take_while(|limit| *limit > 0)
            .any(|limit| limit == self.0)
    }
}

/// Other systems give orphans to init, so nothing has to be recognised.
#[cfg(not(target_os = "linux"))]
impl GuardMark {
    pub(super) fn of_guard(_guard: Pid) -> Self {
        Self(0)
    }

    pub(super) fn put_on() {}

    pub(super) fn is_on(self, _process: Pid) -> bool {
        false
    }
}

/// The mark that this process was born with: 0 for all that no guard started.
#[cfg(target_os = "linux")]
fn own_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Locks);
    limit.current.unwrap_or(0)
}

/// The soft limit in a line `Max file locks  SOFT  HARD  locks` of `/proc/PID/limits`; none if it is `unlimited`.
#[cfg(target_os = "linux")]
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    #[test]
    fn the_limit_is_read_from_its_line() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        assert_eq!(soft_limit(&limits).unwrap_or(0), own_limit());
        let marked = "Max open files  1  2  files\nMax file locks   77   unlimited   locks\n";
        assert_eq!(soft_limit(marked), Some(77));
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn a_mark_is_its_own_and_that_of_guards_inside() {
        let outer = GuardMark::below(0, pid(4_194_303));
        let inner = GuardMark::below(outer.0, pid(5));
        assert!(outer.is_in(outer.0) && outer.is_in(inner.0) && inner.is_in(inner.0));
        assert!(!inner.is_in(outer.0));
        assert!(!GuardMark::below(0, pid(5)).is_in(inner.0));
        assert!(!outer.is_in(0) && !outer.is_in(GuardMark::below(0, pid(7)).0));
        let third = GuardMark::below(inner.0, pid(9));
        assert!(third.is_in(third.0) && third.0 <= u64::MAX >> 1);
    }

    #[test]
    fn a_process_without_a_guard_has_no_mark() {
        let own = rustix::process::getpid();
        assert!(!GuardMark::of_guard(own).is_on(own));
    }
}
