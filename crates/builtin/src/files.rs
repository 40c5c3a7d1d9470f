//! The `files` server: reading and searching below configured roots, and writing if that is allowed.
//!
//! `root` finds out which root a path means, `confined` opens it and nothing else. Every tool goes through both.

mod access_error;
mod confined;
mod definitions;
mod lines;
mod list;
mod read;
mod result_list;
mod root;
mod search;
mod walk;
mod write;

use crate::arguments::Arguments;
use crate::error::BuiltinError;
use crate::tool::{ToolDefinition, ToolFailure, ToolResult};
use definitions::FilesTool;
pub use root::Root;
use root::RootSet;

/// Files larger than this are read only in parts, and not searched, edited or written.
const FILE_LIMIT: u64 = 16 << 20;

/// What the server may do, and where.
pub struct FilesOptions {
    /// The directories to serve. With several, paths start with the name of one.
    pub roots: Vec<Root>,
    /// Whether files may be changed.
    pub write: WriteAccess,
}

/// Whether files may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteAccess {
    /// No. The tools that write are not offered.
    #[default]
    ReadOnly,
    /// Yes, below all roots.
    ReadWrite,
}

/// Serves files.
pub struct FilesServer {
    roots: RootSet,
    write: WriteAccess,
    tools: Vec<ToolDefinition>,
}

impl FilesOptions {
    /// The current directory, without write access.
    pub fn current_directory() -> Result<FilesOptions, BuiltinError> {
        Ok(FilesOptions {
            roots: vec![Root::open(".")?],
            write: WriteAccess::ReadOnly,
        })
    }
}

impl FilesServer {
    /// A server of these roots.
    pub fn new(options: FilesOptions) -> Result<FilesServer, BuiltinError> {
        let roots = RootSet::new(options.roots)?;
        Ok(FilesServer {
            tools: definitions::tools(&roots, options.write),
            roots,
            write: options.write,
        })
    }

    pub(crate) fn instructions(&self) -> String {
        let access = match self.write {
            WriteAccess::ReadOnly => "Reads and searches",
            WriteAccess::ReadWrite => "Reads, searches and writes",
        };
        format!("{access} files below {}.", self.roots.describe())
    }

    pub(crate) fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Arguments<'_>) -> ToolResult {
        let roots = &self.roots;
        let Some(tool) = FilesTool::named(tool) else {
            return Err(ToolFailure::unknown_tool(tool));
        };
        match tool {
            FilesTool::ListDirectory => list::list_directory(roots, arguments),
            FilesTool::ReadFile => read::read_file(roots, arguments),
            FilesTool::SearchFiles => search::search_files(roots, arguments),
            FilesTool::SearchText => search::search_text(roots, arguments),
            FilesTool::FileInfo => list::file_info(roots, arguments),
            FilesTool::WriteFile => write::write_file(roots, arguments),
            FilesTool::EditFile => write::edit_file(roots, arguments),
        }
    }
}
