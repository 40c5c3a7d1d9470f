//! Servers that people have turned off in their client: some clients keep this next to the entries, as lists of names.

use std::path::Path;

use super::super::error::ServerProblem;
use super::super::tree::Tree;
use super::super::{ServerConfig, ServerSource};
use super::{PROJECTS_KEY, nearest_above};

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
pub(super) fn find(file: &str, root: &Tree, current_folder: Option<&Path>) -> Vec<TurnedOff> {
    let list = |key, names, is_of_those_on, is_for_project_file| TurnedOff {
        file: file.to_owned(),
        key,
        names,
        is_of_those_on,
        is_for_project_file,
    };
    let mut found = Vec::new();
    // An empty list of Gemini CLI allows all servers.
    for (key, is_of_those_on) in [("mcp.excluded", false), ("mcp.allowed", true)] {
        let names = root.lookup(key).and_then(|(_, list)| names(list));
        let names = names.filter(|names| !names.is_empty());
        found.extend(names.map(|names| list(key, names, is_of_those_on, false)));
    }
    for key in ["disabledMcpServers", "disabledMcpjsonServers"] {
        let names = of_project(root, key, current_folder);
        found.extend(names.map(|names| list(key, names, false, true)));
    }
    found
}

/// Claude Code's list for the current folder, or for the nearest one above it that has such a list.
fn of_project(root: &Tree, key: &str, current_folder: Option<&Path>) -> Option<Vec<String>> {
    let projects = root.get(PROJECTS_KEY)?.members()?;
    let list = |folder: &str| {
        let project = projects.iter().find(|project| project.key == folder)?;
        project.value.get(key).and_then(names)
    };
    let folders = projects.iter().map(|project| project.key.as_str());
    let with_list = folders.filter(|folder| list(folder).is_some());
    list(nearest_above(with_list, current_folder)?)
}

/// The texts of a list.
fn names(list: &Tree) -> Option<Vec<String>> {
    let texts = list.items()?.iter().filter_map(Tree::as_text);
    Some(texts.map(str::to_owned).collect())
}

impl TurnedOff {
    /// Turns a server off if the list is about it. One that its own entry disables has a reason already.
    pub(in super::super) fn apply(&self, server: &mut ServerConfig) {
        let ServerSource::File(file) = &server.source else {
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
