//! What a contender's processes have used, from `/proc`: CPU time and memory. The proxy and its guards are counted apart, and
//! servers are left out.
//!
//! A proxy's memory is what is resident (`VmRSS`). A guard is the proxy's binary run again, so the file pages it maps are in
//! memory already: its memory is what it adds, the pages that no file backs (`Anonymous` in `smaps_rollup`). These are
//! its heap, its stack, and the pages of the binary that the loader wrote relocations into.

use std::collections::HashMap;
use std::fs;

use rustix::param::clock_ticks_per_second;

/// A contender's processes, by what they are.
#[derive(Clone, Copy, Default, Debug)]
pub struct TreeUsage {
    pub proxy: ProxyUsage,
    pub guard: Option<GuardUsage>,
}

/// CPU and memory of everything that is neither guard nor server.
#[derive(Clone, Copy, Default, Debug)]
pub struct ProxyUsage {
    pub cpu_seconds: f64,
    pub resident_megabytes: f64,
    pub peak_megabytes: f64,
}

/// CPU of all guards together; memory of the largest one.
#[derive(Clone, Copy, Default, Debug)]
pub struct GuardUsage {
    pub cpu_seconds: f64,
    pub private_megabytes: f64,
}

enum ProcessKind {
    Proxy,
    Guard,
    Server,
}

/// Reads the tree below and with `root`.
pub fn of_tree(root: u32) -> TreeUsage {
    let mut usage = TreeUsage::default();
    for process in tree(root) {
        match kind(process) {
            ProcessKind::Server => {}
            ProcessKind::Proxy => {
                let own = of_process(process);
                usage.proxy.cpu_seconds += own.cpu_seconds;
                usage.proxy.resident_megabytes += own.resident_megabytes;
                usage.proxy.peak_megabytes += own.peak_megabytes;
            }
            ProcessKind::Guard => {
                let private = megabytes(&read(process, "smaps_rollup"), "Anonymous:");
                let guard = usage.guard.get_or_insert_default();
                guard.cpu_seconds += cpu_seconds(process);
                guard.private_megabytes = guard.private_megabytes.max(private);
            }
        }
    }
    usage
}

/// Reads one process.
pub fn of_process(process: u32) -> ProxyUsage {
    let status = read(process, "status");
    ProxyUsage {
        cpu_seconds: cpu_seconds(process),
        resident_megabytes: megabytes(&status, "VmRSS:"),
        peak_megabytes: megabytes(&status, "VmHWM:"),
    }
}

/// The guard's command line ends with the server's own, so the guard is looked for first.
fn kind(process: u32) -> ProcessKind {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    if words.contains(&b"__guard".as_slice()) {
        ProcessKind::Guard
    } else if words.get(1) == Some(&b"canned-server".as_slice()) {
        ProcessKind::Server
    } else {
        ProcessKind::Proxy
    }
}

fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(parent) = stat_fields(process)
            .get(1)
            .and_then(|field| field.parse().ok())
        {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    found
}

/// The fields of `stat` behind the name, which may itself hold spaces: state, parent, …
fn stat_fields(process: u32) -> Vec<String> {
    let text = read(process, "stat");
    let Some((_, fields)) = text.rsplit_once(") ") else {
        return Vec::new();
    };
    fields.split(' ').map(str::to_owned).collect()
}

fn cpu_seconds(process: u32) -> f64 {
    let fields = stat_fields(process);
    // utime and stime are fields 14 and 15 of the whole line; two are before the part kept here.
    let ticks: u64 = [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
        .sum();
    ticks as f64 / clock_ticks_per_second() as f64
}

/// A file of the process in `/proc`; empty if the process has ended.
fn read(process: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default()
}

/// The value of a line `KEY 123 kB`, where the kernel's kB are 1,024 bytes.
fn megabytes(text: &str, key: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kibibytes: f64 = line
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0);
    kibibytes * 1.024 / 1000.0
}
