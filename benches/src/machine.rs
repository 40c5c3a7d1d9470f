//! The machine and the memory of processes, as the kernel tells them.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// One sentence about the machine, without which figures cannot be read.
pub fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = value(&processors, "model name");
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{cores} cores, {model}, Linux {}; load {} before the run.",
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    )
}

/// Resident memory of a process in megabytes, the pages of its program's file included.
pub fn resident_mb(process: u32) -> Option<f64> {
    status(process, "VmRSS")
}

/// The most resident memory that a process ever had.
pub fn peak_mb(process: u32) -> Option<f64> {
    status(process, "VmHWM")
}

/// Allows this process and those that it starts as many open files as the system lets it.
pub fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, most).context("raising the limit of open files")
}

fn status(process: u32, key: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kibibytes: f64 = value(&text, key).trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1.024 / 1000.0)
}

/// The text behind `KEY:`.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':'))
        .map_or("", |(_, value)| value.trim())
}
