//! Packs the relative relocations of the binary where the system's loader understands that.
//!
//! Every server runs under a guard, which is this binary started again; the loader's work on a few hundred kilobytes
//! of relocations would be most of the guard's memory. glibc reads the packed form since 2.36.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu && glibc_is_new_enough() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn glibc_is_new_enough() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else {
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .trim()
        .strip_prefix("glibc ")
        .and_then(|version| version.split_once('.'));
    match version {
        Some((major, minor)) => {
            let (major, minor): (u32, u32) =
                (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
            (major, minor) >= (2, 36)
        }
        None => false,
    }
}
