//! Runs a test under both kinds of runtime: on one thread with paused time, and on several threads in real time.
//!
//! tokio can pause time on one thread only. So a test that has to wait takes its deadlines from [`by_runtime`]. What it
//! spawns runs on other threads than the test itself when there are several. The transport's tests use this file too.

use tokio::runtime::{Builder, Handle, RuntimeFlavor};

/// Makes two tests of an `async fn`, in a module of its name: `one_thread` and `several_threads`. With `real_time`, time is
/// not paused: for tests with sockets, because paused time moves on while the kernel has them.
macro_rules! on_both_runtimes {
    ($name:ident) => {
        on_both_runtimes!($name, paused_time);
    };
    ($name:ident, $time:ident) => {
        mod $name {
            #[test]
            fn one_thread() {
                let mut runtime = $crate::runtimes::$time();
                $crate::runtimes::run(&mut runtime, super::$name());
            }

            #[test]
            fn several_threads() {
                $crate::runtimes::several_threads(super::$name());
            }
        }
    };
}

/// More than this machine may have, so that threads are also interrupted in the middle of something.
const WORKERS: usize = 4;

/// One thread. Time moves on only when nothing else can happen.
pub(crate) fn paused_time() -> Builder {
    let mut runtime = real_time();
    runtime.start_paused(true);
    runtime
}

/// One thread.
pub(crate) fn real_time() -> Builder {
    Builder::new_current_thread()
}

/// Runs a test on the thread it was started on, and what it spawns on several others.
pub(crate) fn several_threads(test: impl Future<Output = ()>) {
    let mut runtime = Builder::new_multi_thread();
    run(runtime.worker_threads(WORKERS), test);
}

/// Runs a test.
pub(crate) fn run(runtime: &mut Builder, test: impl Future<Output = ()>) {
    runtime.enable_all().build().unwrap().block_on(test);
}

/// One value for a test on one thread, where waiting costs nothing, and another for several threads.
pub(crate) fn by_runtime<T>(one: T, several: T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => one,
        _ => several,
    }
}
