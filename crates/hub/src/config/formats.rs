//! Whose config files are read: where each client keeps its servers, and how its entries become the common form, which is an
//! entry under `mcpServers`.
//!
//! A client is known by its keys, never by the file's name. [`find_servers`] looks for every key of [`FORMATS`]; a function
//! for each format rewrites the entries in place. Only the common form is read after that.

mod clients;
mod draft;
mod opencode_tools;
mod turned_off;

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::IgnoredAny;

use super::error::{ConfigError, ConfigFault};
use super::keys::{OWN_KEY, closest};
use super::reader::ConfigReader;
use super::tree::{Tree, join};
use super::warning::{ConfigWarning, UnknownConfigKey};
use draft::{EntryDraft, EntryUse};
use opencode_tools::ToolSwitches;
pub(super) use turned_off::TurnedOff;

/// Where some clients keep their servers.
pub(super) struct ConfigFormat {
    /// The key. One with dots is a single key or leads through objects.
    pub(super) key: &'static str,
    /// The clients.
    pub(super) clients: &'static [&'static str],
    /// What else is in the file.
    other_keys: OtherKeys,
    /// Puts an entry into the common form.
    translate: fn(&mut EntryDraft<'_>) -> EntryUse,
}

/// What is next to the servers in a file.
#[derive(Clone, Copy, PartialEq)]
enum OtherKeys {
    /// Nothing, so an unknown key may be a mistake.
    Mistakes,
    /// The client's settings.
    Settings,
}

/// Every format, in the order in which error texts name the keys.
pub(super) const FORMATS: &[ConfigFormat] = &[
    ConfigFormat {
        key: "mcpServers",
        clients: &[
            "Claude Code",
            "Claude Desktop",
            "Cursor",
            "Gemini CLI",
            "Windsurf",
            "Antigravity",
            "Cline",
            "Roo",
            "Copilot CLI",
            "Continue",
        ],
        other_keys: OtherKeys::Mistakes,
        translate: clients::plain,
    },
    ConfigFormat {
        key: "servers",
        clients: &["VS Code"],
        other_keys: OtherKeys::Mistakes,
        translate: clients::plain,
    },
    ConfigFormat {
        key: "mcp.servers",
        clients: &["VS Code", "OpenCode"],
        other_keys: OtherKeys::Settings,
        translate: clients::opencode,
    },
    ConfigFormat {
        key: "mcp",
        clients: &["OpenCode"],
        other_keys: OtherKeys::Settings,
        translate: clients::opencode,
    },
    ConfigFormat {
        key: "context_servers",
        clients: &["Zed"],
        other_keys: OtherKeys::Settings,
        translate: clients::zed,
    },
    ConfigFormat {
        key: "mcp_servers",
        clients: &["Codex"],
        other_keys: OtherKeys::Settings,
        translate: clients::codex,
    },
    ConfigFormat {
        key: "extensions",
        clients: &["Goose"],
        other_keys: OtherKeys::Settings,
        translate: clients::goose,
    },
    ConfigFormat {
        key: "amp.mcpServers",
        clients: &["Amp"],
        other_keys: OtherKeys::Settings,
        translate: clients::plain,
    },
];

/// The keys of all formats.
pub(super) fn format_keys() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.key).collect()
}

/// Claude Code keeps the servers of each folder under the folder's path.
const PROJECTS_KEY: &str = "projects";

/// A server of a file, in the common form.
pub(super) struct ServerEntry {
    pub(super) name: String,
    /// The keys that lead to it.
    pub(super) path: String,
    pub(super) tree: Tree,
    /// Whether it wins over one of the same name that stands before it in the file.
    pub(super) wins: bool,
    /// What is already known to be wrong with it.
    pub(super) problem: Option<ConfigError>,
}

impl ServerEntry {
    /// The keys that lead to a member of a table in it.
    pub(super) fn path_in(&self, table: &str, key: &str) -> String {
        let member = self.tree.member(table);
        let written = member.map_or(table, |member| &member.written);
        join(&join(&self.path, written), key)
    }
}

/// What is found in a file.
#[derive(Default)]
pub(super) struct FoundServers {
    pub(super) entries: Vec<ServerEntry>,
    /// Whether there is a table of servers, if only an empty one.
    has_table: bool,
    /// Whether the file is full of other settings, so that unknown keys mean nothing.
    is_settings_file: bool,
    /// Entries that cannot run anywhere but in their client, and what is left out of others.
    pub(super) warnings: Vec<ConfigWarning>,
    /// What the client's settings turn off.
    pub(super) turned_off: Vec<TurnedOff>,
    /// Why there is nothing, if there are servers for others.
    other_projects: bool,
}

/// Looks for the servers of every client.
pub(super) fn find_servers(
    reader: ConfigReader<'_>,
    root: &Tree,
    current_folder: Option<&Path>,
) -> Result<FoundServers, ConfigError> {
    let mut found = FoundServers::default();
    for format in FORMATS {
        let Some((path, table)) = root.lookup(format.key) else {
            continue;
        };
        // A path with more parts, such as `mcp.servers`, has been taken already; other programs use these words for other things.
        if format.other_keys == OtherKeys::Settings && !has_servers(table) {
            continue;
        }
        found.add(reader, format, root, &path, table)?;
    }
    found.add_project(reader, root, current_folder)?;
    found.turned_off = turned_off::find(reader.file, root, current_folder);
    found.is_settings_file |= !found.turned_off.is_empty();
    Ok(found)
}

impl FoundServers {
    /// The error of a file that has none, unless it has options of ours.
    pub(super) fn check(&self, reader: ConfigReader<'_>, root: &Tree) -> Result<(), ConfigError> {
        if self.has_table || root.get(OWN_KEY).is_some() {
            return Ok(());
        }
        if self.other_projects {
            return Err(reader.error("", ConfigFault::OtherProjects));
        }
        let members = root.members().unwrap_or_default().iter();
        let mut found: Vec<String> = members.map(|member| member.key.clone()).collect();
        let known = format_keys();
        let is_known = |key: &String| known.contains(&key.as_str());
        let mut misspelt = found.iter().enumerate().filter(|(_, key)| !is_known(key));
        let near = misspelt.find_map(|(at, key)| Some((at, closest(key, &known)?)));
        if let Some((at, _)) = near {
            // The likely mistake comes first, so that it is among those that are shown.
            found[..=at].rotate_right(1);
        }
        let suggestion = near.map(|(_, key)| key);
        Err(reader.error("", ConfigFault::NoServers { found, suggestion }))
    }

    /// Leaves out the keys that are known after all. Among a client's settings only our own key can be misspelt.
    pub(super) fn keep_mistakes(&self, unknown: &mut Vec<UnknownConfigKey>) {
        match self.is_settings_file {
            true => unknown.retain(|key| key.suggestion == Some(OWN_KEY)),
            false => unknown.retain(|key| !format_keys().contains(&key.path.as_str())),
        }
    }

    fn add(
        &mut self,
        reader: ConfigReader<'_>,
        format: &ConfigFormat,
        root: &Tree,
        path: &str,
        table: &Tree,
    ) -> Result<(), ConfigError> {
        let mut skipped: Vec<(String, &'static str)> = Vec::new();
        let entries = match table.items() {
            Some(items) => listed_entries(path, items, &mut skipped),
            None => named_entries(reader, path, table)?,
        };
        let is_gemini = clients::is_gemini(root, &entries);
        let switches = match format.clients.contains(&"OpenCode") {
            true => ToolSwitches::find(root),
            false => ToolSwitches::default(),
        };
        let mut exceptions: Vec<&str> = Vec::new();
        for mut entry in entries {
            let Some(mut draft) = EntryDraft::of(reader, &mut entry) else {
                self.entries.push(entry);
                continue;
            };
            if is_gemini {
                draft.rewrite_texts(clients::gemini_variables);
            }
            let switches = switches.of_server(draft.name);
            draft.exclude_tools(&switches.denied);
            exceptions.extend(switches.exception);
            match (format.translate)(&mut draft) {
                EntryUse::Server => self.entries.push(entry),
                EntryUse::Skipped(why) => skipped.push((entry.name, why)),
                EntryUse::Ignored => {}
            }
        }
        exceptions.dedup();
        skipped.extend(exceptions.into_iter().map(|pattern| {
            let why = "the hub cannot make an exception to a pattern that turns tools off";
            (format!("tools.{pattern}"), why)
        }));
        let file = reader.file;
        let skipped = skipped.into_iter();
        self.warnings
            .extend(skipped.map(|(server, why)| ConfigWarning::Skipped {
                file: file.to_owned(),
                server,
                why,
            }));
        self.is_settings_file |= is_gemini || format.other_keys == OtherKeys::Settings;
        self.has_table = true;
        Ok(())
    }

    /// The servers that Claude Code has for the current folder, or for the nearest one above it.
    fn add_project(
        &mut self,
        reader: ConfigReader<'_>,
        root: &Tree,
        current_folder: Option<&Path>,
    ) -> Result<(), ConfigError> {
        let projects = root.get(PROJECTS_KEY).and_then(Tree::members);
        let with_servers = projects.unwrap_or_default().iter().filter_map(|project| {
            let servers = project.value.get("mcpServers")?;
            let is_empty = servers.members()?.is_empty();
            (!is_empty).then_some((project.key.as_str(), servers))
        });
        let with_servers: Vec<(&str, &Tree)> = with_servers.collect();
        // A file with projects is the client's own, full of its state.
        self.is_settings_file |= !with_servers.is_empty();
        let folders = with_servers.iter().map(|(folder, _)| *folder);
        let Some(nearest) = nearest_above(folders, current_folder) else {
            self.other_projects |= !with_servers.is_empty();
            return Ok(());
        };
        let found = with_servers.iter().find(|(folder, _)| *folder == nearest);
        let Some((folder, servers)) = found else {
            return Ok(());
        };
        let path = join(&join(PROJECTS_KEY, folder), "mcpServers");
        let others = self.entries.len();
        self.add(reader, &FORMATS[0], root, &path, servers)?;
        for entry in &mut self.entries[others..] {
            entry.wins = true;
        }
        Ok(())
    }
}

/// The folder that is the current one, or the nearest above it.
fn nearest_above<'a>(
    folders: impl Iterator<Item = &'a str>,
    current_folder: Option<&Path>,
) -> Option<&'a str> {
    let current = current_folder?;
    folders
        .filter(|folder| current.starts_with(folder))
        .max_by_key(|folder| Path::new(folder).components().count())
}

/// Whether a table has anything like a server, or nothing at all: the word itself is used for other things too.
fn has_servers(table: &Tree) -> bool {
    const TELLING: &[&str] = &[
        "command", "url", "type", "uri", "cmd", "config", "settings", "enabled",
    ];
    let Some(members) = table.members() else {
        return false;
    };
    let is_server = |entry: &Tree| TELLING.iter().any(|key| entry.get(key).is_some());
    members.is_empty() || members.iter().any(|member| is_server(&member.value))
}

/// Servers by name, each of which is there once.
fn named_entries(
    reader: ConfigReader<'_>,
    path: &str,
    table: &Tree,
) -> Result<Vec<ServerEntry>, ConfigError> {
    // Refuses what is not an object, and names that come twice.
    let _: BTreeMap<String, IgnoredAny> = reader.read(table, path)?;
    let members = table.members().unwrap_or_default().iter();
    let entries = members.map(|member| ServerEntry {
        name: member.key.clone(),
        path: join(path, &member.key),
        tree: member.value.clone(),
        wins: false,
        problem: None,
    });
    Ok(entries.collect())
}

/// Continue's list: an entry has its name in it. Those without one go to `skipped`, each with its place or with what it uses.
fn listed_entries(
    path: &str,
    items: &[Tree],
    skipped: &mut Vec<(String, &'static str)>,
) -> Vec<ServerEntry> {
    let mut named = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let text = |key: &str| item.get(key).and_then(Tree::as_text);
        match (text("name"), text("uses")) {
            (Some(name), _) => named.push(ServerEntry {
                name: name.to_owned(),
                path: join(path, name),
                tree: item.clone(),
                wins: false,
                problem: None,
            }),
            (None, Some(block)) => skipped.push((block.to_owned(), clients::USES)),
            (None, None) => skipped.push((
                format!("{path}[{index}]"),
                "in a list of servers each is an object with a `name`",
            )),
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../../../docs/hub.md");

    #[test]
    fn the_docs_name_every_client_with_its_key() {
        for format in FORMATS {
            for client in format.clients {
                let key = format!("`{}`", format.key);
                let mut rows = DOCS.lines().filter(|line| line.starts_with('|'));
                assert!(
                    rows.any(|row| row.contains(client) && row.contains(&key)),
                    "{client}: {key}"
                );
            }
        }
    }
}
