//! What servers offered when they were last seen, on disk, so that a client that comes before they have started sees more than
//! nothing. The files are a cache: they can be deleted at any time.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use mcp_proxy_hub::ServerListing;
use mcp_proxy_session::store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json_file;
use crate::config::bounded_file::read_regular;
use crate::config::{HubServerKind, HubServerTarget, Target};

/// Lists larger than this are read anew each time.
const SIZE_MAX: u64 = 64 << 20;

/// One file. Definitions are many and long, so they are not copied on their way.
#[derive(Serialize, Deserialize)]
struct SavedListing<'a> {
    server: Cow<'a, str>,
    /// What the server was then, as a hash: another program under the same name offers other things.
    origin: Cow<'a, str>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow)]
    resources: Vec<&'a RawValue>,
    #[serde(borrow)]
    templates: Vec<&'a RawValue>,
    #[serde(borrow)]
    prompts: Vec<&'a RawValue>,
    #[serde(default)]
    about: Option<Cow<'a, str>>,
}

/// What a server offered when it was last seen.
pub fn load(server: &HubServerTarget) -> Option<ServerListing> {
    let path = path(server.name())?;
    let text = Bytes::from(read_regular(&path, SIZE_MAX).ok()?);
    let saved: SavedListing<'_> = serde_json::from_slice(&text).ok()?;
    let is_same =
        saved.server == server.name() && Some(&*saved.origin) == origin(server).as_deref();
    let slices = |definitions: &[&RawValue]| -> Vec<Bytes> {
        let texts = definitions.iter();
        texts
            .map(|definition| text.slice_ref(definition.get().as_bytes()))
            .collect()
    };
    is_same.then(|| ServerListing {
        tools: slices(&saved.tools),
        resources: slices(&saved.resources),
        templates: slices(&saved.templates),
        prompts: slices(&saved.prompts),
        about: saved.about.as_deref().map(str::to_owned),
    })
}

/// Keeps what a server offers, whole or not at all.
pub fn save(server: &HubServerTarget, listing: &ServerListing) -> Result<()> {
    let (Some(path), Some(origin)) = (path(server.name()), origin(server)) else {
        return Ok(());
    };
    let saved = SavedListing {
        server: server.name().into(),
        origin: origin.into(),
        tools: raw(&listing.tools),
        resources: raw(&listing.resources),
        templates: raw(&listing.templates),
        prompts: raw(&listing.prompts),
        about: listing.about.as_deref().map(Cow::Borrowed),
    };
    write(&path, &saved)
        .with_context(|| format!("cannot keep the lists of server {}", server.name()))
}

fn write(path: &Path, saved: &SavedListing<'_>) -> Result<()> {
    let folder = path.parent().context("no folder")?;
    std::fs::create_dir_all(folder)?;
    Ok(json_file::write(path, saved)?)
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

/// What a server is. Arguments and URLs may hold secrets, so this is a hash of them. It is the same in every run of a build;
/// after a change of it the files are written anew. Built-in servers start at once and need no file.
fn origin(server: &HubServerTarget) -> Option<String> {
    let mut hash = DefaultHasher::new();
    match &server.target {
        Some(HubServerKind::Target(target)) => match &**target {
            Target::Command(command) => {
                (&command.program, &command.args, &command.cwd).hash(&mut hash);
            }
            Target::Url { url, .. } => url.to_string().hash(&mut hash),
            Target::Recording(_) | Target::Hub(_) | Target::Relay(_) => return None,
        },
        Some(HubServerKind::Builtin(_)) | None => return None,
    }
    Some(format!("{:016x}", hash.finish()))
}

/// Definitions that are not JSON were never offered to anybody.
fn raw(definitions: &[Bytes]) -> Vec<&RawValue> {
    let definitions = definitions.iter();
    definitions
        .filter_map(|definition| serde_json::from_slice(definition).ok())
        .collect()
}
