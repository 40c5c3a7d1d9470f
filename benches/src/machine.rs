//! Facts about the machine that figures cannot be read without. The date is left out: the record of it is git's.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rustix::fs::statvfs;
use serde::Serialize;

#[derive(Serialize)]
pub struct Machine {
    pub cores: usize,
    pub processor: String,
    pub kernel: String,
    pub memory_gib: f64,
    /// Load average when the run began: above 1, somebody else was working.
    pub load_before: f64,
    /// Plain writes of 1 MB, 256 in all.
    pub disk_write_mb_s: f64,
    /// The same with one fdatasync at the end.
    pub disk_synced_mb_s: f64,
    pub tmpfs_write_mb_s: f64,
}

impl Machine {
    pub fn read(disk: &Path, memory: &Path) -> Result<Machine> {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kibibytes: f64 = field(&meminfo, "MemTotal")
            .trim_end_matches(" kB")
            .parse()
            .unwrap_or(0.0);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let (disk_write_mb_s, disk_synced_mb_s) = write_rates(disk)?;
        Ok(Machine {
            cores: std::thread::available_parallelism()?.get(),
            processor: field(&processors, "model name"),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            memory_gib: kibibytes / 1024.0 / 1024.0,
            load_before: load
                .split(' ')
                .next()
                .and_then(|one| one.parse().ok())
                .unwrap_or(0.0),
            disk_write_mb_s,
            disk_synced_mb_s,
            tmpfs_write_mb_s: write_rates(memory)?.0,
        })
    }

    /// One paragraph for both outputs.
    pub fn text(&self) -> String {
        format!(
            "{} cores, {}, {:.0} GiB, Linux {}; load {:.1} before the run. Disk: {:.0} MB/s written, {:.0} MB/s synced; tmpfs: {:.0} MB/s.",
            self.cores,
            self.processor,
            self.memory_gib,
            self.kernel,
            self.load_before,
            self.disk_write_mb_s,
            self.disk_synced_mb_s,
            self.tmpfs_write_mb_s
        )
    }
}

/// Bytes that may still be written below `folder`.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    let file_system = statvfs(folder)?;
    Ok(file_system.f_bavail * file_system.f_frsize)
}

fn field(text: &str, key: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':'))
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

fn write_rates(folder: &Path) -> Result<(f64, f64)> {
    const PIECES: usize = 256;
    let piece = vec![b'x'; 1_000_000];
    let path = folder.join("rate");
    let mut file = File::create(&path)?;
    let start = Instant::now();
    for _ in 0..PIECES {
        file.write_all(&piece)?;
    }
    let written = start.elapsed().as_secs_f64();
    file.sync_data()?;
    let synced = start.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok((PIECES as f64 / written, PIECES as f64 / synced))
}
