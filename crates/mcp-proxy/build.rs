//! What keeps an idle proxy and its guards small on Linux.
//!
//! Every server runs under a guard, which is this binary started again. The loader's work on a few hundred kilobytes
//! of relocations would be most of its memory: they are packed where the loader understands that (glibc since 2.36).
//! And functions that run together lie together (layout.ld).

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=layout.ld");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu && glibc_is_new_enough() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if linux && gnu && release && !names_a_linker() {
        println!("cargo::rustc-link-arg-bins=-T");
        println!("cargo::rustc-link-arg-bins={folder}/layout.ld");
    }
}

/// Whether the builder chose a linker: not every one reads such a file, and the default ones do.
fn names_a_linker() -> bool {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    flags.contains("fuse-ld")
        || flags.contains("linker")
        || std::env::var_os("RUSTC_LINKER").is_some()
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
