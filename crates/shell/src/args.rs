//! The words of the commands, the same on the command line and in the shell.

use std::path::PathBuf;

/// What can be done with one kind of capability.
#[derive(Clone, Debug)]
pub enum CatalogCommand {
    /// Lists them.
    List(ListArgs),
    /// Finds them by words.
    Search(SearchWordsArgs),
    /// Shows one.
    Info(InfoArgs),
}

/// `list`
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ListArgs {
    /// Only those whose name contains this text
    #[arg(value_name = "TEXT")]
    pub filter: Option<String>,
    /// One JSON document: the definitions
    #[arg(long)]
    pub json: bool,
}

/// `search`
#[derive(Clone, Debug, clap::Args)]
pub struct SearchWordsArgs {
    /// What to look for
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// One JSON document: the definitions
    #[arg(long)]
    pub json: bool,
}

/// `info`
#[derive(Clone, Debug, clap::Args)]
pub struct InfoArgs {
    /// The name, or the URI of a resource
    #[arg(value_name = "NAME")]
    pub name: String,
    /// One JSON document: the definition
    #[arg(long)]
    pub json: bool,
}

/// `call`
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// The tool
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its arguments, typed by its schema: key=value, key:=json, key=@file; repeat a key for a list. `-` reads all of them as
    /// JSON from stdin
    #[arg(value_name = "KEY=VALUE", conflicts_with_all = ["args", "args_file"])]
    pub words: Vec<String>,
    /// All arguments, a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "args_file")]
    pub args: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE")]
    pub args_file: Option<PathBuf>,
    /// Write the image, audio, blob or text of the result to this file; `-` is stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub output: Option<PathBuf>,
    /// One JSON document: the result as the server sent it
    #[arg(long)]
    pub json: bool,
}

/// `read`
#[derive(Clone, Debug, clap::Args)]
pub struct ReadArgs {
    /// The resource
    #[arg(value_name = "URI")]
    pub uri: String,
    /// Write the contents to this file; `-` is stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub output: Option<PathBuf>,
    /// One JSON document: the result as the server sent it
    #[arg(long)]
    pub json: bool,
}

/// `prompt`
#[derive(Clone, Debug, clap::Args)]
pub struct PromptArgs {
    /// The prompt
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its arguments, which are texts: key=value or key=@file
    #[arg(value_name = "KEY=VALUE")]
    pub words: Vec<String>,
    /// One JSON document: the result as the server sent it
    #[arg(long)]
    pub json: bool,
}
