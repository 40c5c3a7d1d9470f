//! Whose config files are read: where each client keeps its servers, and how its entries become the common form, which is an
//! entry under `mcpServers`.
//!
//! A client is known by its keys, never by the file's name. [`find_servers`] looks for every key of [`FORMATS`]; a function
//! for each format rewrites the entries in place, with the places of keys and values kept for errors. Only the common form is
//! read after that.

mod entries;
mod opencode_tools;
mod turned_off;

use std::path::Path;

use super::document::{DocumentContent, DocumentMember, DocumentValue, FileText};
use super::error::{ConfigError, ConfigFault};
use super::keys::{OWN_KEY, closest};
use super::node::Node;
use super::warning::{ConfigWarning, UnknownConfigKey};
use entries::{EntryDraft, EntryUse};
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
        translate: entries::plain,
    },
    ConfigFormat {
        key: "servers",
        clients: &["VS Code"],
        other_keys: OtherKeys::Mistakes,
        translate: entries::plain,
    },
    ConfigFormat {
        key: "mcp.servers",
        clients: &["VS Code", "OpenCode"],
        other_keys: OtherKeys::Settings,
        translate: entries::opencode,
    },
    ConfigFormat {
        key: "mcp",
        clients: &["OpenCode"],
        other_keys: OtherKeys::Settings,
        translate: entries::opencode,
    },
    ConfigFormat {
        key: "context_servers",
        clients: &["Zed"],
        other_keys: OtherKeys::Settings,
        translate: entries::zed,
    },
    ConfigFormat {
        key: "mcp_servers",
        clients: &["Codex"],
        other_keys: OtherKeys::Settings,
        translate: entries::codex,
    },
    ConfigFormat {
        key: "extensions",
        clients: &["Goose"],
        other_keys: OtherKeys::Settings,
        translate: entries::goose,
    },
    ConfigFormat {
        key: "amp.mcpServers",
        clients: &["Amp"],
        other_keys: OtherKeys::Settings,
        translate: entries::plain,
    },
];

/// The keys of all formats, for error texts.
pub(super) const KEYS: [&str; FORMATS.len()] = {
    let mut keys = [""; FORMATS.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = FORMATS[at].key;
        at += 1;
    }
    keys
};

/// Claude Code keeps the servers of each folder under the folder's path.
const PROJECTS_KEY: &str = "projects";

/// The servers of one place in a file, in the common form.
pub(super) struct ServerTable {
    /// The keys that lead to it.
    path: String,
    /// Servers that win over those of other tables in the same file.
    pub(super) wins: bool,
    entries: Vec<DocumentMember>,
}

/// What is found in a file.
#[derive(Default)]
pub(super) struct FoundServers {
    pub(super) tables: Vec<ServerTable>,
    /// Whether the file is full of other settings, so that unknown keys mean nothing.
    is_settings_file: bool,
    /// Entries that cannot run anywhere but in their client, and what is left out of others.
    pub(super) warnings: Vec<ConfigWarning>,
    /// What the client's settings turn off.
    pub(super) turned_off: Vec<TurnedOff>,
    /// Why there is nothing, if there are servers for others.
    other_projects: bool,
}

impl ServerTable {
    /// The entries by name.
    pub(super) fn nodes<'a>(&'a self, file: FileText<'a>) -> Vec<(&'a str, Node<'a>)> {
        let entries = self.entries.iter();
        entries
            .map(|entry| (entry.key.as_str(), Node::of_member(file, &self.path, entry)))
            .collect()
    }
}

/// Looks for the servers of every client.
pub(super) fn find_servers(
    file: FileText<'_>,
    root: &Node<'_>,
    current_folder: Option<&Path>,
) -> Result<FoundServers, ConfigError> {
    let mut found = FoundServers::default();
    for format in FORMATS {
        let Some(node) = lookup(root, format.key) else {
            continue;
        };
        // A path with more parts, such as `mcp.servers`, has been taken already; other programs use these words for other things.
        if format.other_keys == OtherKeys::Settings && !has_servers(&node) {
            continue;
        }
        found.add(file, format, &node, root)?;
    }
    found.add_project(file, root, current_folder)?;
    found.turned_off = turned_off::find(file.name, root, current_folder);
    found.is_settings_file |= !found.turned_off.is_empty();
    Ok(found)
}

impl FoundServers {
    /// The error of a file that has none, unless it has options of ours.
    pub(super) fn check(&self, root: &Node<'_>) -> Result<(), ConfigError> {
        let members = root.value().members().unwrap_or_default();
        let has_options = members.iter().any(|member| member.key == OWN_KEY);
        if !self.tables.is_empty() || has_options {
            return Ok(());
        }
        if self.other_projects {
            return Err(root.error(ConfigFault::OtherProjects));
        }
        let mut misspelt = members
            .iter()
            .filter(|member| !KEYS.contains(&member.key.as_str()));
        let near =
            misspelt.find_map(|member| Some((member.key.clone(), closest(&member.key, &KEYS)?)));
        let suggestion = near.as_ref().map(|(_, key)| *key);
        let mut keys: Vec<String> = members.iter().map(|member| member.key.clone()).collect();
        // The likely mistake comes first, so that it is among those that are shown.
        keys.sort_by_key(|key| near.as_ref().is_none_or(|(near, _)| near != key));
        Err(root.error(ConfigFault::NoServers {
            found: keys,
            suggestion,
        }))
    }

    /// Leaves out the keys that are known after all. Among a client's settings only our own key can be misspelt.
    pub(super) fn keep_mistakes(&self, unknown: &mut Vec<UnknownConfigKey>) {
        match self.is_settings_file {
            true => unknown.retain(|key| key.suggestion == Some(OWN_KEY)),
            false => unknown.retain(|key| !KEYS.contains(&key.path.as_str())),
        }
    }

    fn add(
        &mut self,
        file: FileText<'_>,
        format: &ConfigFormat,
        table: &Node<'_>,
        root: &Node<'_>,
    ) -> Result<(), ConfigError> {
        let mut skipped: Vec<(String, &'static str)> = Vec::new();
        let mut entries = match &table.value().content {
            DocumentContent::List(items) => listed_entries(table, items, &mut skipped)?,
            _ => {
                // Refuses what is not an object, and names that come twice.
                table.members()?;
                table.value().members().unwrap_or_default().to_vec()
            }
        };
        let file_is_gemini = entries::is_gemini(root.value(), &entries);
        let switches = match format.clients.contains(&"OpenCode") {
            true => ToolSwitches::find(root),
            false => ToolSwitches::default(),
        };
        let mut exceptions: Vec<&str> = Vec::new();
        entries.retain_mut(|entry| {
            let Some(mut draft) = EntryDraft::of(&mut entry.value) else {
                return true;
            };
            if file_is_gemini {
                draft.rewrite_texts(entries::gemini_variables);
            }
            let switches = switches.of_server(&entry.key);
            draft.exclude_tools(&switches.denied);
            exceptions.extend(switches.exception);
            match (format.translate)(&mut draft) {
                EntryUse::Server => true,
                EntryUse::Skipped(why) => {
                    skipped.push((entry.key.clone(), why));
                    false
                }
                EntryUse::Ignored => false,
            }
        });
        exceptions.dedup();
        let exceptions = exceptions.into_iter().map(|pattern| {
            let why = "the hub cannot make an exception to a pattern that turns tools off";
            (format!("tools.{pattern}"), why)
        });
        skipped.extend(exceptions);
        for (server, why) in skipped {
            self.warnings.push(ConfigWarning::Skipped {
                file: file.name.to_owned(),
                server,
                why,
            });
        }
        self.is_settings_file |= file_is_gemini || format.other_keys == OtherKeys::Settings;
        self.tables.push(ServerTable {
            path: table.path().to_owned(),
            wins: false,
            entries,
        });
        Ok(())
    }

    /// The servers that Claude Code has for the current folder, or for the nearest one above it.
    fn add_project(
        &mut self,
        file: FileText<'_>,
        root: &Node<'_>,
        current_folder: Option<&Path>,
    ) -> Result<(), ConfigError> {
        let Some(projects) =
            lookup(root, PROJECTS_KEY).filter(|node| node.value().members().is_some())
        else {
            return Ok(());
        };
        let with_servers = projects
            .members()?
            .into_iter()
            .filter_map(|(folder, project)| {
                let servers = lookup(&project, "mcpServers")?;
                let entries = servers.value().members()?;
                (!entries.is_empty()).then_some((Path::new(folder), servers))
            });
        let with_servers: Vec<_> = with_servers.collect();
        let is_above = |folder: &Path| current_folder.is_some_and(|now| now.starts_with(folder));
        let nearest = with_servers
            .iter()
            .filter(|(folder, _)| is_above(folder))
            .max_by_key(|(folder, _)| folder.components().count());
        match nearest {
            None => self.other_projects |= !with_servers.is_empty(),
            Some((_, servers)) => {
                self.is_settings_file = true;
                self.add(file, &FORMATS[0], servers, root)?;
                if let Some(table) = self.tables.last_mut() {
                    table.wins = true;
                }
            }
        }
        // A file with projects is the client's own, full of its state.
        self.is_settings_file |= !with_servers.is_empty();
        Ok(())
    }
}

/// The value of a key with dots, unless it is null.
fn lookup<'a>(root: &Node<'a>, key: &str) -> Option<Node<'a>> {
    if let Some(node) = root.child(key) {
        return Some(node);
    }
    let (outer, inner) = key.split_once('.')?;
    lookup(&root.child(outer)?, inner)
}

/// Whether a table has anything like a server, or nothing at all: the word itself is used for other things too.
fn has_servers(table: &Node<'_>) -> bool {
    const TELLING: &[&str] = &[
        "command", "url", "type", "uri", "cmd", "config", "settings", "enabled",
    ];
    let Some(members) = table.value().members() else {
        return false;
    };
    let is_server = |entry: &DocumentValue| TELLING.iter().any(|key| entry.get(key).is_some());
    members.is_empty() || members.iter().any(|member| is_server(&member.value))
}

/// Continue's list: an entry has its name in it. Those without one go to `skipped`, each with its place or with what it uses.
fn listed_entries(
    list: &Node<'_>,
    items: &[DocumentValue],
    skipped: &mut Vec<(String, &'static str)>,
) -> Result<Vec<DocumentMember>, ConfigError> {
    let mut named = Vec::new();
    for (item, node) in items.iter().zip(list.items()?) {
        let text = |key: &str| item.get(key).and_then(DocumentValue::as_text);
        match (text("name"), text("uses")) {
            (Some(name), _) => named.push(DocumentMember {
                key: name.to_owned(),
                written: name.to_owned(),
                key_start: item.start,
                value: item.clone(),
            }),
            (None, Some(block)) => skipped.push((block.to_owned(), entries::USES)),
            (None, None) => skipped.push((
                node.path().to_owned(),
                "in a list of servers each is an object with a `name`",
            )),
        }
    }
    Ok(named)
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
