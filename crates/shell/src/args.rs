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
    #[arg(value_name = "NAME", required_unless_present = "flag_name")]
    pub name: Option<String>,
    /// The same, for a name that begins with `-`
    #[arg(
        long = "name",
        value_name = "NAME",
        allow_hyphen_values = true,
        conflicts_with = "name"
    )]
    pub flag_name: Option<String>,
    /// One JSON document: the definition
    #[arg(long)]
    pub json: bool,
}

/// `call`
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// The tool
    #[arg(value_name = "NAME", required_unless_present = "flag_name")]
    pub name: Option<String>,
    /// The tool, if its name begins with `-`; then every other word is an argument
    #[arg(long = "name", value_name = "NAME", allow_hyphen_values = true)]
    pub flag_name: Option<String>,
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
    #[arg(value_name = "NAME", required_unless_present = "flag_name")]
    pub name: Option<String>,
    /// The prompt, if its name begins with `-`; then every other word is an argument
    #[arg(long = "name", value_name = "NAME", allow_hyphen_values = true)]
    pub flag_name: Option<String>,
    /// Its arguments, which are texts: key=value or key=@file
    #[arg(value_name = "KEY=VALUE")]
    pub words: Vec<String>,
    /// One JSON document: the result as the server sent it
    #[arg(long)]
    pub json: bool,
}

impl InfoArgs {
    /// What is asked for.
    pub(crate) fn name(&self) -> &str {
        let name = self.flag_name.as_deref().or(self.name.as_deref());
        name.unwrap_or_default()
    }
}

impl CallArgs {
    /// The tool, and the words that are its arguments.
    pub(crate) fn name_and_words(&self) -> (&str, Vec<&str>) {
        name_and_words(&self.name, &self.flag_name, &self.words)
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        self.name_and_words().0
    }
}

impl PromptArgs {
    /// The prompt, and the words that are its arguments.
    pub(crate) fn name_and_words(&self) -> (&str, Vec<&str>) {
        name_and_words(&self.name, &self.flag_name, &self.words)
    }
}

/// The first word is the name, unless a flag gives it.
fn name_and_words<'a>(
    first: &'a Option<String>,
    flag: &'a Option<String>,
    words: &'a [String],
) -> (&'a str, Vec<&'a str>) {
    let words = words.iter().map(String::as_str);
    match (flag, first.as_deref()) {
        (Some(name), first) => (name, first.into_iter().chain(words).collect()),
        (None, first) => (first.unwrap_or_default(), words.collect()),
    }
}
