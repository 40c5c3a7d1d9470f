//! What servers offered when they were last seen, on disk, so that a client that comes before they have started sees more than
//! nothing. The files are a cache: they can be deleted at any time.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use mcp_proxy_hub::ServerListing;
use mcp_proxy_session::store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::{HubServerKind, HubServerTarget, Target};

/// Lists larger than this are read anew each time.
const SIZE_MAX: u64 = 64 << 20;

/// One file.
#[derive(Serialize, Deserialize)]
struct SavedListing {
    server: String,
    /// What the server was then. Another program under the same name offers other things.
    origin: String,
    tools: Vec<Box<RawValue>>,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
}

/// What a server offered when it was last seen.
pub fn load(server: &HubServerTarget) -> Option<ServerListing> {
    let path = path(server.name())?;
    if std::fs::metadata(&path).ok()?.len() > SIZE_MAX {
        return None;
    }
    let saved: SavedListing = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    let is_same = saved.server == server.name() && Some(saved.origin) == origin(server);
    is_same.then(|| ServerListing {
        tools: bytes(saved.tools),
        resources: bytes(saved.resources),
        templates: bytes(saved.templates),
        prompts: bytes(saved.prompts),
    })
}

/// Keeps what a server offers, whole or not at all.
pub fn save(server: &HubServerTarget, listing: &ServerListing) -> Result<()> {
    let (Some(path), Some(origin)) = (path(server.name()), origin(server)) else {
        return Ok(());
    };
    let saved = SavedListing {
        server: server.name().to_owned(),
        origin,
        tools: raw(&listing.tools),
        resources: raw(&listing.resources),
        templates: raw(&listing.templates),
        prompts: raw(&listing.prompts),
    };
    write(&path, &serde_json::to_vec(&saved)?)
        .with_context(|| format!("cannot keep the lists of server {}", server.name()))
}

fn write(path: &Path, text: &[u8]) -> Result<()> {
    let folder = path.parent().context("no folder")?;
    std::fs::create_dir_all(folder)?;
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(&draft)
        .and_then(|mut file| file.write_all(text));
    written
        .and_then(|()| std::fs::rename(&draft, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })?;
    Ok(())
}

/// A name of letters and digits for any server name.
fn path(server: &str) -> Option<PathBuf> {
    let folder = store::state_dir().ok()?.parent()?.join("listings");
    let name: String = server.bytes().fold(String::new(), |mut name, byte| {
        match byte.is_ascii_alphanumeric() || byte == b'-' {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("_{byte:02x}")),
        }
        name
    });
    (name.len() <= 200).then(|| folder.join(format!("{name}.json")))
}

/// What a server is, without anything that may be secret. Built-in servers start at once and need no file.
fn origin(server: &HubServerTarget) -> Option<String> {
    match &server.target {
        Some(HubServerKind::Target(target)) => match &**target {
            Target::Command(command) => Some(command.program.to_string_lossy().into_owned()),
            Target::Url { url, .. } => {
                let host = url.host().unwrap_or_default();
                Some(format!("{host}{}", url.path()))
            }
            Target::Recording(_) | Target::Hub(_) => None,
        },
        Some(HubServerKind::Builtin(_)) | None => None,
    }
}

fn bytes(definitions: Vec<Box<RawValue>>) -> Vec<Bytes> {
    let texts = definitions
        .into_iter()
        .map(|definition| definition.get().to_owned());
    texts.map(Bytes::from).collect()
}

/// Definitions that are not JSON were never offered to anybody.
fn raw(definitions: &[Bytes]) -> Vec<Box<RawValue>> {
    let definitions = definitions.iter();
    definitions
        .filter_map(|definition| serde_json::from_slice(definition).ok())
        .collect()
}
