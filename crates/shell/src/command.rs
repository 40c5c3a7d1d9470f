//! What each command does.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use mcp_proxy_client::rmcp::model::JsonObject;
use mcp_proxy_client::{CallOptions, CapabilityType, ClientError, ToolWord};
use serde_json::{Value, json};

use crate::args::{
    CallArgs, CatalogCommand, InfoArgs, ListArgs, PromptArgs, ReadArgs, SearchWordsArgs,
};
use crate::arguments::{
    check_arguments, json_arguments, read_text, text_arguments, typed_arguments,
};
use crate::catalog::{CatalogItem, CatalogPart};
use crate::conversation::Conversation;
use crate::details::details;
use crate::failure::CommandFailure;
use crate::lookup::{self, FoundItem};
use crate::near_names::did_you_mean;
use crate::output::CommandOutput;
use crate::results::{check_output, prompt_result, resource_result, tool_result, write_output};
use crate::text::{columns, first_sentence};

/// The most that is read from stdin.
const STDIN_BYTES: u64 = 64 << 20;

/// A command for one server.
#[derive(Clone, Debug)]
pub enum ClientCommand {
    /// About one kind of capability.
    Catalog(CapabilityType, CatalogCommand),
    /// `search` over everything.
    Search(SearchWordsArgs),
    /// `info` about whatever has the name.
    Info(InfoArgs),
    /// `call`
    Call(CallArgs),
    /// `read`
    Read(ReadArgs),
    /// `prompt`
    Prompt(PromptArgs),
}

/// Runs a command.
pub(crate) async fn run(
    command: &ClientCommand,
    conversation: &Conversation,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    match command {
        ClientCommand::Catalog(kind, CatalogCommand::List(args)) => {
            list(&conversation.list(*kind).await?, args, screen)
        }
        ClientCommand::Catalog(kind, CatalogCommand::Search(args)) => {
            search(&[conversation.list(*kind).await?], args, screen)
        }
        ClientCommand::Catalog(kind, CatalogCommand::Info(args)) => {
            let parts = [conversation.list(*kind).await?];
            info(conversation, &parts, args, screen).await
        }
        ClientCommand::Search(args) => search(&everything(conversation).await?, args, screen),
        ClientCommand::Info(args) => {
            let parts = everything(conversation).await?;
            info(conversation, &parts, args, screen).await
        }
        ClientCommand::Call(args) => call(conversation, args, screen).await,
        ClientCommand::Read(args) => read(conversation, args, screen).await,
        ClientCommand::Prompt(args) => prompt(conversation, args, screen).await,
    }
}

async fn everything(conversation: &Conversation) -> Result<Vec<CatalogPart>, CommandFailure> {
    let mut parts = Vec::new();
    for &kind in CapabilityType::all() {
        parts.push(conversation.list(kind).await?);
    }
    Ok(parts)
}

fn list(
    part: &CatalogPart,
    args: &ListArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    part.check_known()?;
    let items = part.containing(args.filter.as_deref().unwrap_or_default());
    if args.json {
        return screen.print_json(&definitions(&items));
    }
    if items.is_empty() {
        let text = match (&args.filter, part.items.len()) {
            (Some(filter), count @ 1..) => format!(
                "none of the {count} {}s has a name with `{filter}`; `search` looks into descriptions too",
                part.kind
            ),
            _ => format!("the server offers no {}s", part.kind),
        };
        (screen.say)(&text);
        return Ok(());
    }
    print_items(&items, screen)
}

fn search(
    parts: &[CatalogPart],
    args: &SearchWordsArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    let words = args.words.join(" ");
    let found: Vec<&CatalogItem> = parts.iter().flat_map(|part| part.search(&words)).collect();
    if args.json {
        return screen.print_json(&definitions(&found));
    }
    if found.is_empty() {
        (screen.say)(&format!("nothing fits `{words}`"));
        return Ok(());
    }
    print_items(&found, screen)
}

fn definitions(items: &[&CatalogItem]) -> Value {
    items.iter().map(|item| item.definition.clone()).collect()
}

fn print_items(items: &[&CatalogItem], screen: &mut CommandOutput) -> Result<(), CommandFailure> {
    let rows = items
        .iter()
        .map(|item| (item.name.clone(), first_sentence(item.about())));
    let rows: Vec<(String, String)> = rows.collect();
    let text = columns(&rows, screen.width);
    screen.print(&text)
}

async fn info(
    conversation: &Conversation,
    parts: &[CatalogPart],
    args: &InfoArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    let name = args.name();
    let listed = parts.iter().find(|part| part.find(name).is_some());
    let mut found = None;
    for part in listed.map_or(parts, std::slice::from_ref) {
        found = lookup::find(conversation, part, name)
            .await?
            .map(|found| (part.kind, found.item));
        if found.is_some() {
            break;
        }
    }
    let Some((kind, item)) = found else {
        return Err(unknown(parts, name));
    };
    match args.json {
        true => screen.print_json(&item.definition),
        false => {
            let text = details(kind, &item, &screen.form);
            screen.print(&text)
        }
    }
}

fn unknown(parts: &[CatalogPart], name: &str) -> CommandFailure {
    let kind = match parts {
        [one] => one.kind.as_str(),
        _ => "tool, resource or prompt",
    };
    let near = did_you_mean(name, parts.iter().flat_map(CatalogPart::names));
    let hint = near.unwrap_or_else(|| match parts {
        [one] if one.items.is_empty() => format!("the server offers no {kind}s"),
        [one] => format!("`{}s list` shows them", one.kind),
        _ => "`search` finds things by what they do".to_owned(),
    });
    CommandFailure::Mistake(format!("there is no {kind} `{name}`; {hint}"))
}

async fn call(
    conversation: &Conversation,
    args: &CallArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    args.output.as_deref().map_or(Ok(()), check_output)?;
    let (name, words) = args.name_and_words();
    let given = given_arguments(args, words).await?;
    let tools = conversation.list_quietly(CapabilityType::Tool).await;
    let tools = tools.inspect_err(|_| conversation.say_unavailable())?;
    let found = lookup::find(conversation, &tools, name).await?;
    // What is missing of other servers does not matter if the tool is there.
    if found.is_none() || conversation.is_verbose() {
        conversation.say_unavailable();
    }
    let found = match found {
        // It may be one of the server that is not available: the hub knows, and starts it.
        None if tools.lacks_a_server => FoundItem {
            item: CatalogItem::new(CapabilityType::Tool, json!({ "name": name })),
            name: name.to_owned(),
        },
        None => return Err(unknown(&[tools], name)),
        Some(found) => found,
    };
    let FoundItem { item, name } = found;
    let schema = item.input_schema();
    let arguments = match given {
        GivenArguments::Json(arguments) => arguments,
        GivenArguments::Words(words) => typed_arguments(&words, &schema)?,
    };
    check_arguments(&name, &schema, &arguments)?;
    let (line, width) = (Arc::clone(&conversation.progress), screen.width);
    let options = CallOptions::new()
        .timeout(conversation.timeout)
        .progress(move |progress| line.show(&progress, width));
    let called = conversation
        .client
        .with_options(options)
        .call_tool(&name, arguments)
        .await;
    conversation.progress.clear();
    let result = match called {
        Ok(result) => to_value(&result),
        // The tool behind a hub failed, or the hub could not reach it.
        Err(ClientError::ToolFailed { result, .. }) => to_value(&result),
        Err(error) => return fail(error, args.json, screen),
    };
    let has_failed = result["isError"] == json!(true);
    if args.json {
        screen.print_json(&result)?;
        return match has_failed {
            true => Err(CommandFailure::Server(String::new())),
            false => Ok(()),
        };
    }
    if has_failed {
        let text = tool_result(&result, crate::output::OutputReader::Terminal);
        let text = text.trim_end();
        return Err(CommandFailure::Server(format!("{name} failed: {text}")));
    }
    match &args.output {
        Some(path) => write(&result, path, screen),
        None => {
            let text = tool_result(&result, screen.reader);
            screen.print(&text)
        }
    }
}

enum GivenArguments<'a> {
    Words(Vec<&'a str>),
    Json(JsonObject),
}

async fn given_arguments<'a>(
    args: &CallArgs,
    words: Vec<&'a str>,
) -> Result<GivenArguments<'a>, CommandFailure> {
    let json = match (&args.args, &args.args_file, words.as_slice()) {
        // clap knows only the words after the name.
        (Some(_), _, [_, ..]) | (_, Some(_), [_, ..]) => {
            let text = "give key=value words, --args or --args-file; nothing was sent".to_owned();
            return Err(CommandFailure::Mistake(text));
        }
        (Some(text), _, []) => json_arguments(text, "--args")?,
        (None, Some(path), []) => {
            let source = format!("--args-file {}", path.display());
            let text = read_text(path).map_err(CommandFailure::Mistake)?;
            json_arguments(&text, &source)?
        }
        (None, None, ["-"]) => json_arguments(&read_stdin().await?, "stdin")?,
        (None, None, _) => return Ok(GivenArguments::Words(words)),
    };
    Ok(GivenArguments::Json(json))
}

/// All of stdin. On a thread of its own: a person who types may press Ctrl-C instead.
async fn read_stdin() -> Result<String, CommandFailure> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin()
            .lock()
            .take(STDIN_BYTES)
            .read_to_string(&mut text);
        // A command that was cancelled does not wait for it.
        let _ = sender.send(read.map(|_| text));
    });
    let read = receiver
        .await
        .unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
    read.map_err(|error| CommandFailure::Mistake(format!("cannot read stdin: {error}")))
}

async fn read(
    conversation: &Conversation,
    args: &ReadArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    args.output.as_deref().map_or(Ok(()), check_output)?;
    let result = match conversation.client.read_resource(&args.uri).await {
        Ok(result) => to_value(&result),
        Err(error) => {
            // Only now it is worth listing what there is.
            let listed = conversation.list(CapabilityType::Resource).await;
            let near = listed.ok().filter(|part| part.find(&args.uri).is_none());
            let near = near.and_then(|part| did_you_mean(&args.uri, part.names()));
            if let Some(near) = near {
                (screen.say)(&near);
            }
            return fail(error, args.json, screen);
        }
    };
    if args.json {
        return screen.print_json(&result);
    }
    match &args.output {
        Some(path) => write(&result, path, screen),
        None => {
            let text = resource_result(&result, screen.reader);
            screen.print(&text)
        }
    }
}

async fn prompt(
    conversation: &Conversation,
    args: &PromptArgs,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    let (name, words) = args.name_and_words();
    let prompts = conversation.list(CapabilityType::Prompt).await?;
    let Some(FoundItem { item, name }) = lookup::find(conversation, &prompts, name).await? else {
        prompts.check_known()?;
        return Err(unknown(&[prompts], name));
    };
    let known = item.prompt_arguments();
    let names: Vec<&str> = known.iter().map(|(name, ..)| *name).collect();
    let arguments = text_arguments(&words, &names)?;
    let missing: Vec<&str> = known
        .iter()
        .filter(|(name, _, is_required)| *is_required && !arguments.contains_key(*name))
        .map(|(name, ..)| *name)
        .collect();
    if !missing.is_empty() {
        return Err(CommandFailure::Mistake(format!(
            "{name} needs {}; nothing was sent",
            missing.join(", ")
        )));
    }
    let arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
    let result = match conversation.client.get_prompt(&name, arguments).await {
        Ok(result) => to_value(&result),
        Err(error) => return fail(error, args.json, screen),
    };
    match args.json {
        true => screen.print_json(&result),
        false => {
            let text = prompt_result(&result, screen.reader);
            screen.print(&text)
        }
    }
}

/// What the server refused. For programs its error is a document too.
fn fail(
    error: ClientError,
    is_json: bool,
    screen: &mut CommandOutput,
) -> Result<(), CommandFailure> {
    if is_json
        && let ClientError::Protocol {
            code,
            message,
            data,
        } = &error
    {
        let mut inner = json!({"code": code, "message": message});
        if let Some(data) = data {
            inner["data"] = data.clone();
        }
        screen.print_json(&json!({"error": inner}))?;
        return Err(CommandFailure::Server(String::new()));
    }
    Err(error.into())
}

fn write(result: &Value, path: &Path, screen: &mut CommandOutput) -> Result<(), CommandFailure> {
    let written = write_output(result, path, screen.reader, &mut *screen.out)?;
    for line in &written.files {
        (screen.say)(line);
    }
    // Next to bytes on stdout a text is said to the person.
    match path == Path::new("-") && !written.texts.is_empty() {
        true => (screen.say)(written.texts.trim_end()),
        false => screen.print(&written.texts)?,
    }
    screen.print("")
}

fn to_value(result: &impl serde::Serialize) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}
