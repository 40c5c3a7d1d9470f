//! Servers that people have turned off in their client: some clients keep this next to the entries, as lists of names.

use std::path::Path;

use super::super::document::{DocumentContent, DocumentValue};
use super::super::error::ServerProblem;
use super::super::node::Node;
use super::super::{ServerConfig, ServerSource};
use super::{PROJECTS_KEY, lookup};

/// Claude Code's file of a project. What is turned off in it is said in the client's own file.
const PROJECT_FILE: &str = ".mcp.json";

/// A list of servers in a client's settings.
pub(in super::super) struct TurnedOff {
    /// The file that it is in.
    file: String,
    key: &'static str,
    names: Vec<String>,
    /// Whether the list has the servers that are on, and all others are off.
    is_of_those_on: bool,
    /// Whether it is also about the file of a project.
    is_for_project_file: bool,
}

/// The lists of a file.
pub(super) fn find(file: &str, root: &Node<'_>, current_folder: Option<&Path>) -> Vec<TurnedOff> {
    let mut found = Vec::new();
    // An empty list of Gemini CLI allows all servers.
    for (key, is_of_those_on) in [("mcp.excluded", false), ("mcp.allowed", true)] {
        let list = lookup(root, key).map(|list| names(list.value()));
        found.extend(list.filter(|list| !list.is_empty()).map(|names| TurnedOff {
            file: file.to_owned(),
            key,
            names,
            is_of_those_on,
            is_for_project_file: false,
        }));
    }
    for key in ["disabledMcpServers", "disabledMcpjsonServers"] {
        found.extend(
            of_project(root, key, current_folder).map(|names| TurnedOff {
                file: file.to_owned(),
                key,
                names,
                is_of_those_on: false,
                is_for_project_file: true,
            }),
        );
    }
    found
}

/// Claude Code's list for the current folder, or for the nearest one above it that has such a list.
fn of_project(root: &Node<'_>, key: &str, current_folder: Option<&Path>) -> Option<Vec<String>> {
    let projects = lookup(root, PROJECTS_KEY)?;
    let projects = projects.value().members()?.iter();
    let above = projects
        .filter(|project| current_folder.is_some_and(|folder| folder.starts_with(&project.key)));
    let with_list = above.filter_map(|project| {
        let list = project.value.get(key)?;
        matches!(list.content, DocumentContent::List(_)).then_some((Path::new(&project.key), list))
    });
    let nearest = with_list.max_by_key(|(folder, _)| folder.components().count());
    nearest.map(|(_, list)| names(list))
}

fn names(list: &DocumentValue) -> Vec<String> {
    let DocumentContent::List(items) = &list.content else {
        return Vec::new();
    };
    let texts = items.iter().filter_map(DocumentValue::as_text);
    texts.map(str::to_owned).collect()
}

impl TurnedOff {
    /// Turns a server off if the list is about it. One that its own entry disables has a reason already.
    pub(in super::super) fn apply(&self, server: &mut ServerConfig) {
        let ServerSource::File { file, .. } = &server.source else {
            return;
        };
        let is_project_file = || {
            Path::new(file)
                .file_name()
                .is_some_and(|name| name == PROJECT_FILE)
        };
        let is_about = *file == self.file || self.is_for_project_file && is_project_file();
        let is_listed = self.names.iter().any(|name| name == server.name.as_str());
        let problem = server.state.as_ref().err();
        let is_off = problem.is_some_and(ServerProblem::is_turned_off);
        if is_about && !is_off && is_listed != self.is_of_those_on {
            server.state = Err(ServerProblem::TurnedOff {
                file: self.file.clone(),
                key: self.key,
            });
        }
    }
}
