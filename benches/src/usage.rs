//! What a contender's processes have used, from `/proc`: CPU time and memory, the proxy apart from its guard, servers left out.

use std::collections::HashMap;
use std::fs;

use rustix::param::clock_ticks_per_second;

/// CPU and memory of some processes together.
#[derive(Clone, Copy, Default, Debug)]
pub struct Part {
    pub cpu_seconds: f64,
    pub resident_megabytes: f64,
    pub peak_megabytes: f64,
}

/// A contender's processes, by what they are.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    pub proxy: Part,
    /// CPU of all guards together; memory of the largest one.
    pub guard: Option<Part>,
}

enum Kind {
    Proxy,
    Guard,
    Server,
}

/// Reads the tree below and with `root`.
pub fn of_tree(root: u32) -> Usage {
    let mut usage = Usage::default();
    for process in tree(root) {
        let part = read(process);
        match kind(process) {
            Kind::Server => {}
            Kind::Proxy => {
                usage.proxy.cpu_seconds += part.cpu_seconds;
                usage.proxy.resident_megabytes += part.resident_megabytes;
                usage.proxy.peak_megabytes += part.peak_megabytes;
            }
            Kind::Guard => {
                let guard = usage.guard.get_or_insert_default();
                guard.cpu_seconds += part.cpu_seconds;
                guard.resident_megabytes = guard.resident_megabytes.max(part.resident_megabytes);
                guard.peak_megabytes = guard.peak_megabytes.max(part.peak_megabytes);
            }
        }
    }
    usage
}

/// The guard's command line ends with the server's own, so the guard is looked for first.
fn kind(process: u32) -> Kind {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    if words.contains(&b"__guard".as_slice()) {
        Kind::Guard
    } else if words.get(1) == Some(&b"upstream".as_slice()) {
        Kind::Server
    } else {
        Kind::Proxy
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
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let Some((_, fields)) = text.rsplit_once(") ") else {
        return Vec::new();
    };
    fields.split(' ').map(str::to_owned).collect()
}

fn read(process: u32) -> Part {
    let fields = stat_fields(process);
    // utime and stime are fields 14 and 15 of the whole line; two are before the part kept here.
    let ticks: u64 = [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
        .sum();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    Part {
        cpu_seconds: ticks as f64 / clock_ticks_per_second() as f64,
        resident_megabytes: kilobytes(&status, "VmRSS:") / 1000.0,
        peak_megabytes: kilobytes(&status, "VmHWM:") / 1000.0,
    }
}

fn kilobytes(status: &str, key: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kibibytes: f64 = line
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0);
    kibibytes * 1.024
}
