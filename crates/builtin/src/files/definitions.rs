//! What the tools of the `files` server say about themselves.

use serde_json::{Value, json};

use super::WriteAccess;
use super::root::RootSet;
use crate::tool::{ToolDefinition, ToolEffect};

/// The tools, in the order in which they are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FilesTool {
    ListDirectory,
    ReadFile,
    SearchFiles,
    SearchText,
    FileInfo,
    WriteFile,
    EditFile,
}

impl FilesTool {
    const ALL: &[FilesTool] = &[
        FilesTool::ListDirectory,
        FilesTool::ReadFile,
        FilesTool::SearchFiles,
        FilesTool::SearchText,
        FilesTool::FileInfo,
        FilesTool::WriteFile,
        FilesTool::EditFile,
    ];

    pub(super) fn named(name: &str) -> Option<FilesTool> {
        let mut tools = FilesTool::ALL.iter().copied();
        tools.find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            FilesTool::ListDirectory => "list_directory",
            FilesTool::ReadFile => "read_file",
            FilesTool::SearchFiles => "search_files",
            FilesTool::SearchText => "search_text",
            FilesTool::FileInfo => "file_info",
            FilesTool::WriteFile => "write_file",
            FilesTool::EditFile => "edit_file",
        }
    }

    fn title(self) -> &'static str {
        match self {
            FilesTool::ListDirectory => "List a directory",
            FilesTool::ReadFile => "Read a file",
            FilesTool::SearchFiles => "Find files by name",
            FilesTool::SearchText => "Search in files",
            FilesTool::FileInfo => "File information",
            FilesTool::WriteFile => "Write a file",
            FilesTool::EditFile => "Edit a file",
        }
    }

    fn description(self) -> &'static str {
        match self {
            FilesTool::ListDirectory => {
                "List the files and directories in a directory, sorted by name."
            }
            FilesTool::ReadFile => {
                "Read a file. Text is returned as it is, up to 256 KiB at a time: use offset and limit to read more. Images and other binary files are returned whole, up to 4 MiB."
            }
            FilesTool::SearchFiles => {
                "Find files and directories whose names match a glob pattern. Directories end with a slash. Symbolic links are not followed, and .git is skipped."
            }
            FilesTool::SearchText => {
                "Find the lines that contain a text or match a regular expression. Binary files, files over 16 MiB and .git are skipped, and symbolic links are not followed."
            }
            FilesTool::FileInfo => {
                "Tell the type, size, permissions and modification time of a file or directory."
            }
            FilesTool::WriteFile => {
                "Create a file, or replace all of its content. Missing directories are created."
            }
            FilesTool::EditFile => {
                "Replace a piece of text in a file. It must occur exactly once, so include enough of the lines around it."
            }
        }
    }

    fn effect(self) -> ToolEffect {
        match self {
            FilesTool::WriteFile => ToolEffect::Replaces,
            FilesTool::EditFile => ToolEffect::Edits,
            _ => ToolEffect::Reads,
        }
    }

    fn input(self, roots: &RootSet) -> Value {
        let path = text(&describe_path(roots));
        let start = text(&format!("{} Default: all files.", describe_path(roots)));
        match self {
            FilesTool::ListDirectory => object(
                json!({ "path": text(&format!("{} Default: the top.", describe_path(roots))) }),
                &[],
            ),
            FilesTool::ReadFile => object(
                json!({
                    "path": path,
                    "offset": count("The first line to return, counted from 1. Only for text."),
                    "limit": count("How many lines to return at most. Only for text."),
                }),
                &["path"],
            ),
            FilesTool::SearchFiles => object(
                json!({
                    "path": start,
                    "pattern": text("A glob such as *.rs, src/**/test_*.py or *.{png,jpg}. Without a slash it matches names in all directories."),
                }),
                &["pattern"],
            ),
            FilesTool::SearchText => object(
                json!({
                    "path": start,
                    "query": text("The text to find, exactly as written. Give this or regex."),
                    "regex": text("A regular expression in the syntax of ripgrep; (?i) ignores case. Give this or query."),
                    "glob": text("Search only files that match this glob, such as *.rs."),
                }),
                &[],
            ),
            FilesTool::FileInfo => object(json!({ "path": path }), &["path"]),
            FilesTool::WriteFile => object(
                json!({ "path": path, "content": text("The new content of the file.") }),
                &["path", "content"],
            ),
            FilesTool::EditFile => object(
                json!({
                    "path": path,
                    "old": text("The text to replace, exactly as it stands in the file."),
                    "new": text("The text to put in its place."),
                }),
                &["path", "old", "new"],
            ),
        }
    }

    fn output(self) -> Option<Value> {
        let kind = json!({ "enum": ["file", "directory", "symlink", "other"] });
        let string = json!({ "type": "string" });
        let integer = json!({ "type": "integer", "minimum": 0 });
        let listed = |name: &str, items: Value| {
            json!({
                "type": "object",
                "properties": {
                    (name): { "type": "array", "items": items },
                    "truncated": { "type": "boolean" },
                    "note": { "type": "string", "description": "Why the list is not complete" },
                },
                "required": [name, "truncated"],
            })
        };
        match self {
            FilesTool::ListDirectory => Some(listed(
                "entries",
                json!({
                    "type": "object",
                    "properties": { "name": string, "type": kind, "size": integer },
                    "required": ["name", "type"],
                }),
            )),
            FilesTool::SearchFiles => Some(listed("matches", string)),
            FilesTool::SearchText => Some(listed(
                "matches",
                json!({
                    "type": "object",
                    "properties": { "path": string, "line": integer, "text": string },
                    "required": ["path", "line", "text"],
                }),
            )),
            FilesTool::FileInfo => Some(json!({
                "type": "object",
                "properties": {
                    "path": string,
                    "type": kind,
                    "size": integer,
                    "permissions": { "type": "string", "description": "In octal, such as 0644" },
                    "modified": { "type": "string", "format": "date-time" },
                },
                "required": ["path", "type", "size", "permissions", "modified"],
            })),
            FilesTool::ReadFile | FilesTool::WriteFile | FilesTool::EditFile => None,
        }
    }
}

pub(super) fn tools(roots: &RootSet, write: WriteAccess) -> Vec<ToolDefinition> {
    let is_offered =
        |tool: &FilesTool| write == WriteAccess::ReadWrite || tool.effect() == ToolEffect::Reads;
    let define = |tool: FilesTool| ToolDefinition {
        name: tool.name(),
        title: tool.title(),
        description: tool.description().to_owned(),
        input: tool.input(roots),
        output: tool.output(),
        effect: tool.effect(),
    };
    let tools = FilesTool::ALL.iter().copied();
    tools.filter(is_offered).map(define).collect()
}

fn describe_path(roots: &RootSet) -> String {
    match roots.only() {
        Some(root) => format!(
            "A path relative to {0}, or an absolute one below it.",
            root.path().display()
        ),
        None => format!(
            "A path that starts with {}, or an absolute path below one of them.",
            roots.describe()
        ),
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}
