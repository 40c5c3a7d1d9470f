//! `cargo xtask layout`: makes `crates/mcp-proxy/layout.ld`, the order of functions in a release binary.
//!
//! A process holds the pages of its binary that it touches, and the kernel maps 64 KiB around each of them. So the
//! functions that run are put side by side. Which ones those are is seen, not guessed: the release build carries a
//! little traffic under valgrind. Patterns leave out the hashes in names, so that the file outlives compilers; a name
//! that is gone matches nothing. Making it again after larger changes keeps memory where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, target_dir};
use crate::setup;

const FILE: &str = "crates/mcp-proxy/layout.ld";

const HEAD: &str = "\
/* Where functions lie in a release binary on Linux (see build.rs). Made by `cargo xtask layout`.

   A process holds the pages of its binary that it touches, and the kernel maps 64 KiB around each of them. So what a
   guard runs lies together, and then what an idle proxy and its messages run; all else comes after. A pattern that
   matches nothing costs memory, no more. */
";

/// What a guard may run besides what it was seen to run, and what starts any Rust program: modules, which also hold when
/// the standard library is another.
const GUARD: &[&str] = &[
    "_ZN19mcp_proxy_transport7process*",
    "_R*3std3sys4args*",
    "_R*3std3sys7process*",
    "_R*3std7process*",
    "_R*3std3env*",
    "_R*3std2rt*",
    "_R*14stack_overflow*",
    "_R*3sys2fs4unix4File*",
    "_R*4core3str8converts*",
    "_R*4core3fmt*",
    "_R*5alloc3fmt*",
    "_R*3std2io5error*",
    "_R*4once*",
    "_R*7raw_vec*",
    "_R*3ffi*",
    "_R*",
    "_ZN*rustix*",
    "_ZN*signal_hook*",
    "_ZN*alloc*raw_vec*",
    "_ZN*alloc*into_iter*",
    "_ZN*5btree*",
    "_ZN4core3ptr*drop_in_place$LT$std..*",
    "_ZN4core3ptr*drop_in_place$LT$core..iter*",
    "_ZN4core3ptr*drop_in_place$LT$alloc..vec..Vec$LT$alloc..boxed*",
    "_ZN3std*",
    "_ZN9mcp_proxy4main*",
    "main",
];

/// What carries a stdio server, which runs under a guard and so out of valgrind's sight.
const STDIO: &[&str] = &[
    "_ZN19mcp_proxy_transport5child*",
    "_ZN19mcp_proxy_transport5stdio*",
    "_ZN5tokio7process*",
    "_ZN5tokio3net4unix*",
];

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"layout","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"layout","version":"1"}}}"#;

pub fn run() -> Result<()> {
    setup::debian(&[setup::VALGRIND])?;
    process::run(
        "release build",
        &mut cargo("build --release --package mcp-proxy"),
    )?;
    let binary = target_dir()?.join("release/mcp-proxy");
    let (server, url) = start(Command::new(&binary).args(["demo-server", "http"]))?;
    let _server = Killed(server);
    let folder = std::env::temp_dir().join(format!("mcp-proxy-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let guard = guard_functions(&binary, &folder.join("guard"))?;
    let mut ran = BTreeSet::new();
    for (name, listen) in [("http", true), ("stdio", false)] {
        let profile = folder.join(name);
        let mut command = under_callgrind(&profile);
        command
            .arg(&binary)
            .args(["proxy", "--session-file"])
            .arg(folder.join(format!("{name}.jsonl")));
        if listen {
            over_http(command.args(["--listen", "http", "--listen-port", "0", &url]))?;
        } else {
            over_stdio(command.args(["--listen", "stdio", &url]))?;
        }
        ran.extend(functions(&profile)?);
    }
    std::fs::remove_dir_all(&folder)?;
    // A guard runs so little that what comes with it is still little.
    let guard = patterns(&binary, &guard, 64 * 1024)?;
    let carry = patterns(&binary, &ran, 8 * 1024)?;
    std::fs::write(process::root().join(FILE), script(&guard, &carry))
        .with_context(|| format!("cannot write {FILE}"))?;
    println!(
        "{FILE}: {} functions, {} of guards",
        guard.len() + carry.len(),
        guard.len()
    );
    Ok(())
}

/// What runs from the start of a guard to the end of its server. It is started here as the proxy would start it:
/// under valgrind a proxy cannot, since it starts itself again and that would be valgrind.
fn guard_functions(binary: &Path, profile: &Path) -> Result<BTreeSet<String>> {
    let mut command = under_callgrind(profile);
    command.arg(binary).args(["__guard", "--", "cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Killed(command.stderr(Stdio::piped()).spawn()?);
    let mut stdin = child.0.stdin.take().context("no stdin")?;
    let mut lines = BufReader::new(child.0.stdout.take().context("no stdout")?).lines();
    writeln!(stdin, "{INITIALIZE}")?;
    lines
        .next()
        .context("the server behind the guard ended")??;
    drop(stdin);
    child.0.wait()?;
    functions(profile)
}

fn under_callgrind(profile: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["-q", "--demangle=no", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", profile.display()));
    command
}

/// A child that does not outlive its use.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts what says `listening on URL` on its stderr.
fn start(command: &mut Command) -> Result<(Child, String)> {
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let stderr = child.stderr.take().context("no stderr")?;
    let mut lines = BufReader::new(stderr).lines();
    for line in lines.by_ref() {
        if let Some((_, url)) = line?.split_once("listening on ") {
            let url = url.trim().to_owned();
            std::thread::spawn(move || lines.for_each(drop));
            return Ok((child, url));
        }
    }
    bail!("it did not say where it listens")
}

fn over_http(command: &mut Command) -> Result<()> {
    let (child, url) = start(command.stdin(Stdio::null()))?;
    let mut child = Killed(child);
    post(&url, INITIALIZE, "")?;
    for id in 1..20 {
        let modern = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
        post(&url, &request(id), modern)?;
    }
    stop(&mut child.0)
}

fn request(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{META}}}}}"#)
}

fn post(url: &str, body: &str, headers: &str) -> Result<()> {
    let place = url.strip_prefix("http://").context("no http URL")?;
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(())
}

fn over_stdio(command: &mut Command) -> Result<()> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Killed(command.spawn()?);
    let mut stdin = child.0.stdin.take().context("no stdin")?;
    let mut lines = BufReader::new(child.0.stdout.take().context("no stdout")?).lines();
    writeln!(stdin, "{INITIALIZE}")?;
    lines.next();
    writeln!(
        stdin,
        r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
    )?;
    for id in 1..20 {
        writeln!(
            stdin,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#
        )?;
        lines.next();
    }
    drop(stdin);
    child.0.wait()?;
    Ok(())
}

/// Ends a run so that it writes its profile.
fn stop(child: &mut Child) -> Result<()> {
    let pid = child.id().to_string();
    process::run("stop", Command::new("kill").args(["-TERM", &pid]))?;
    child.wait()?;
    Ok(())
}

/// The functions of a callgrind profile.
fn functions(profile: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let text =
        std::fs::read(profile).with_context(|| format!("no profile {}", profile.display()))?;
    for line in String::from_utf8_lossy(&text).lines() {
        let name = line
            .strip_prefix("fn=(")
            .or_else(|| line.strip_prefix("cfn=("))
            .and_then(|rest| rest.split_once(") "));
        if let Some((_, name)) = name {
            // A function that was entered while it ran has a number behind its name.
            names.insert(name.split('\'').next().unwrap_or(name).to_owned());
        }
    }
    Ok(names)
}

/// The patterns of the functions that ran. Instances of a generic function differ in their hashes only, so a pattern
/// may bring others with it: one that brings more bytes than `most_beside` is left out.
fn patterns(binary: &Path, ran: &BTreeSet<String>, most_beside: u64) -> Result<Vec<String>> {
    let symbols = process::output(Command::new("nm").arg("-S").arg(binary))
        .context("nm could not read the binary")?;
    let mut sizes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in symbols.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, size, "t" | "T", name] = fields.as_slice() else {
            continue;
        };
        let stem = match name.split_once("17h") {
            Some((stem, _)) if name.starts_with("_ZN") => stem,
            // The standard library's: nothing in them is of our build.
            _ if (name.starts_with("_R") || *name == "main") && ran.contains(*name) => name,
            _ => continue,
        };
        let size = u64::from_str_radix(size, 16)?;
        let (own, beside) = sizes.entry(stem).or_default();
        *(if ran.contains(*name) { own } else { beside }) += size;
    }
    let kept = sizes
        .iter()
        .filter(|(_, (own, beside))| *own > 0 && *beside <= most_beside);
    let pattern = |stem: &str| match stem.starts_with("_ZN") {
        true => format!("{stem}17h*"),
        false => without_hashes(stem),
    };
    let patterns: BTreeSet<String> = kept.map(|(stem, _)| pattern(stem)).collect();
    Ok(patterns.into_iter().collect())
}

/// A name of the standard library for any build of it: its crates carry hashes (`Cs…_`), and what the linker split off
/// a number.
fn without_hashes(name: &str) -> String {
    let whole = name.split('.').next().unwrap_or(name);
    let mut pieces = whole.split("Cs");
    let mut pattern = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        pattern.push_str("Cs");
        match piece.split_once('_') {
            Some((hash, rest)) if hash.chars().all(|c| c.is_ascii_alphanumeric()) => {
                pattern.push_str("*_");
                pattern.push_str(rest);
            }
            _ => pattern.push_str(piece),
        }
    }
    if whole != name {
        pattern.push_str(".*");
    }
    pattern
}

fn script(guard: &[String], carry: &[String]) -> String {
    let mut text = HEAD.to_owned();
    text.push_str("SECTIONS\n{\n");
    let seen = |names: &[String]| names.to_owned();
    let known = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    // The first pattern that fits a function takes it: modules come behind what was seen to run.
    let groups: [(&str, Vec<String>); 4] = [
        ("guard", seen(guard)),
        ("carry", seen(carry)),
        ("stdio", known(STDIO)),
        ("start", known(GUARD)),
    ];
    for (group, patterns) in groups {
        let _ = writeln!(text, "  .text.{group} : {{");
        if group == "guard" {
            text.push_str("    *crt*.o(.text)\n");
        }
        for pattern in patterns {
            let _ = writeln!(text, "    *(.text*.{pattern})");
        }
        text.push_str("  }\n");
    }
    text.push_str("}\nINSERT BEFORE .text;\n");
    text
}
