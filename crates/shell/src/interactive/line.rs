//! A line of the shell, as a command.

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::args::{CallArgs, InfoArgs, ListArgs, PromptArgs, ReadArgs, SearchWordsArgs};
use crate::failure::CommandFailure;
use crate::interactive::ConnectTarget;
use crate::near_names::did_you_mean;
use crate::text::columns;

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}";

#[derive(Debug, Parser)]
#[command(
    name = "",
    no_binary_name = true,
    disable_help_subcommand = true,
    disable_version_flag = true
)]
struct ShellLine {
    #[command(subcommand)]
    verb: ShellVerb,
}

/// What can be typed.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum ShellVerb {
    /// List the tools, with the first sentence of each description
    Tools(ListArgs),
    /// List the resources and resource templates
    Resources(ListArgs),
    /// List the prompts
    Prompts(ListArgs),
    /// Find tools, resources and prompts by words, the best first
    Search(SearchWordsArgs),
    /// Show a tool, resource or prompt: its parameters and an example
    Info(InfoArgs),
    /// Call a tool
    Call(CallArgs),
    /// Read a resource
    Read(ReadArgs),
    /// Get a prompt
    Prompt(PromptArgs),
    /// Open another connection and use it
    Connect(ConnectArgs),
    /// List the connections
    Connections,
    /// Use another connection
    Use {
        /// Its name
        name: String,
    },
    /// Close a connection
    Disconnect {
        /// Its name [default: the one in use]
        name: Option<String>,
    },
    /// Show the commands, or one of them
    Help {
        /// The command
        command: Option<String>,
    },
    /// Leave the shell
    #[command(alias = "exit")]
    Quit,
}

/// `connect`
#[derive(Clone, Debug, clap::Args)]
#[command(override_usage = "connect NAME URL | connect NAME -- COMMAND… | connect NAME [--hub ID]")]
pub(super) struct ConnectArgs {
    /// What to call it
    pub(super) name: String,
    /// The server's URL [default: the running hub]
    url: Option<String>,
    /// The running hub with this id, if several run
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "command"])]
    hub: Option<String>,
    /// A header for every request, `Name: value` (repeatable)
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// The server's command, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl ConnectArgs {
    pub(super) fn target(self) -> Result<(String, ConnectTarget), CommandFailure> {
        let target = match (self.url, self.command.is_empty()) {
            (Some(_), false) => {
                let text = "give a URL or a command, not both".to_owned();
                return Err(CommandFailure::Mistake(text));
            }
            (Some(url), true) => ConnectTarget::Url {
                url,
                headers: self.header,
            },
            (None, false) => ConnectTarget::Command(self.command),
            (None, true) => ConnectTarget::Hub { id: self.hub },
        };
        Ok((self.name, target))
    }
}

fn command() -> clap::Command {
    let command = ShellLine::command();
    command.mut_subcommands(|verb| verb.help_template(TEMPLATE))
}

/// All verbs and what they do.
pub(super) fn verbs() -> Vec<(String, String)> {
    let command = command();
    let verbs = command.get_subcommands().map(|verb| {
        let about = verb.get_about().map(ToString::to_string);
        (verb.get_name().to_owned(), about.unwrap_or_default())
    });
    verbs.collect()
}

/// Whether all quotes of a command are closed.
pub(super) fn is_complete(command: &str) -> bool {
    command.trim_start().starts_with('#') || shlex::split(command).is_some()
}

/// The commands of a text, one a line; a line with an open quote continues on the next. And what is left if the last one
/// does not end.
pub(super) fn commands(text: &str) -> (Vec<String>, String) {
    let mut commands = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        open.push_str(line);
        match is_complete(&open) {
            true => commands.push(std::mem::take(&mut open)),
            false => open.push('\n'),
        }
    }
    (commands, open)
}

/// What a line says. `None`: nothing.
pub(super) fn parse(line: &str) -> Result<Option<ShellVerb>, CommandFailure> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let Some(words) = shlex::split(line) else {
        let text = "a quote does not close".to_owned();
        return Err(CommandFailure::Mistake(text));
    };
    let Some(first) = words.first() else {
        return Ok(None);
    };
    let verbs = verbs();
    let names = verbs.iter().map(|(name, _)| name.as_str());
    if first != "exit" && !first.starts_with('-') && names.clone().all(|name| name != first) {
        let near = did_you_mean(first, names);
        let hint = near.unwrap_or_else(|| "`help` lists the commands".to_owned());
        let text = format!("there is no command `{first}`; {hint}");
        return Err(CommandFailure::Mistake(text));
    }
    use clap::FromArgMatches as _;
    let parsed = command()
        .try_get_matches_from(&words)
        .and_then(|matches| ShellLine::from_arg_matches(&matches));
    match parsed {
        Ok(ShellLine {
            verb: ShellVerb::Call(call),
        }) if call.name_and_words().1.contains(&"-") => Err(CommandFailure::Mistake(
            "the shell reads its commands from stdin, so `-` cannot; use --args or --args-file"
                .to_owned(),
        )),
        Ok(line) => Ok(Some(line.verb)),
        Err(error) if !error.use_stderr() => Ok(Some(ShellVerb::Help {
            command: Some(first.clone()).filter(|word| !word.starts_with('-')),
        })),
        Err(error) => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            Err(CommandFailure::Mistake(text.trim_end().to_owned()))
        }
    }
}

/// The commands, or one of them.
pub(super) fn help(verb: Option<&str>) -> Result<String, CommandFailure> {
    let Some(verb) = verb else {
        return Ok(columns(&verbs(), None));
    };
    let mut command = command();
    match command.find_subcommand_mut(verb) {
        Some(found) => Ok(found.render_help().to_string()),
        None => {
            let verbs = verbs();
            let near = did_you_mean(verb, verbs.iter().map(|(name, _)| name.as_str()));
            let hint = near.unwrap_or_else(|| "`help` lists them".to_owned());
            let text = format!("there is no command `{verb}`; {hint}");
            Err(CommandFailure::Mistake(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_comments_or_mistakes() {
        assert!(parse("  # note").unwrap().is_none());
        assert!(parse("").unwrap().is_none());
        assert!(matches!(parse("exit").unwrap(), Some(ShellVerb::Quit)));
        let Some(ShellVerb::Call(call)) = parse("call add a=1 'b=x y'").unwrap() else {
            panic!("a call");
        };
        assert_eq!(call.words, ["a=1", "b=x y"]);
        let Some(ShellVerb::Connect(connect)) = parse("connect x -- npx -y s").unwrap() else {
            panic!("a connection");
        };
        assert_eq!(
            connect.target().unwrap().1,
            ConnectTarget::Command(vec!["npx".to_owned(), "-y".to_owned(), "s".to_owned()])
        );
        assert!(matches!(
            parse("call --help").unwrap(),
            Some(ShellVerb::Help { .. })
        ));
        for line in ["cal add", "call", "use", "call add 'x"] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        assert!(!is_complete("call add 'x"));
        assert!(is_complete("# it's fine"));
    }

    #[test]
    fn a_text_of_several_lines_is_several_commands() {
        let text = "call a\n# it's one\n\ncall b --args '{\n}' \ncall c";
        let expected = [
            "call a",
            "# it's one",
            "",
            "call b --args '{\n}' ",
            "call c",
        ];
        assert_eq!(commands(text).0, expected);
        assert!(commands(text).1.is_empty());
        let (complete, open) = commands("call a\ncall 'b\nc");
        assert_eq!(complete, ["call a"]);
        assert_eq!(open, "call 'b\nc\n");
    }

    #[test]
    fn arguments_from_stdin_are_refused() {
        let failure = parse("call add -").unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.text().contains("--args"), "{}", failure.text());
    }

    #[test]
    fn help_shows_all_commands_and_each() {
        insta::assert_snapshot!("shell-help", help(None).unwrap());
        insta::assert_snapshot!("shell-help-connect", help(Some("connect")).unwrap());
        for (verb, about) in verbs() {
            assert!(!about.is_empty(), "{verb}");
            assert!(help(Some(&verb)).is_ok());
        }
        assert!(help(Some("cal")).unwrap_err().text().contains("call"));
    }
}
