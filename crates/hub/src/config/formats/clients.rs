//! How the entries of each client become the common form.

use super::super::tree::{Member, Tree, is_off};
use super::ServerEntry;
use super::draft::{EntryDraft, EntryUse, names};

/// Why an entry of Continue's hub is skipped.
pub(super) const USES: &str = "`uses` is for Continue, which downloads the definition";

/// `mcpServers` as nearly all clients have it, with the keys that single ones add: which tools there are, Copilot's `local`,
/// Continue's `requestOptions`.
pub(super) fn plain(entry: &mut EntryDraft<'_>) -> EntryUse {
    entry.rename_type("local", "stdio");
    entry.set_option("tools", "allow", names);
    entry.set_option("includeTools", "allow", names);
    entry.deny("excludeTools");
    entry.deny("disabledTools");
    match entry.get("name").is_some() {
        true => continue_entry(entry),
        false => EntryUse::Server,
    }
}

/// Continue's entries are in a list and carry their names.
fn continue_entry(entry: &mut EntryDraft<'_>) -> EntryUse {
    if entry.get("uses").is_some() {
        return EntryUse::Skipped(USES);
    }
    entry.rewrite_texts(continue_variables);
    entry.forget(&["name", "faviconUrl", "description"]);
    entry.set_option("connectionTimeout", "start-timeout", milliseconds);
    entry.set_bearer("apiKey");
    if let Some(headers) = entry.get("requestOptions").and_then(|it| it.get("headers")) {
        let value = headers.clone();
        entry.forget(&["requestOptions"]);
        entry.members.push(Member {
            key: "headers".to_owned(),
            written: "requestOptions.headers".to_owned(),
            value,
        });
    }
    EntryUse::Server
}

/// OpenCode: the command is a list. VS Code's entries have none of these keys.
pub(super) fn opencode(entry: &mut EntryDraft<'_>) -> EntryUse {
    entry.rewrite_texts(opencode_variables);
    entry.rename_type("local", "stdio");
    entry.rename_type("remote", "http");
    entry.split_command();
    entry.rename("environment", "env");
    // How long a list of tools may take, not a call.
    entry.set_option("timeout", "list-timeout", milliseconds);
    entry.forget(&["oauth", "codemode"]);
    plain(entry)
}

/// Zed, also with the older `command: {path, args, env}`.
pub(super) fn zed(entry: &mut EntryDraft<'_>) -> EntryUse {
    entry.unfold("command");
    entry.rename("path", "command");
    if entry.get("command").is_none() && entry.get("url").is_none() {
        return match is_off(entry.members) {
            true => EntryUse::Ignored,
            false => EntryUse::Skipped("an extension of Zed starts it; add its `command`"),
        };
    }
    entry.forget(&["source", "settings", "remote"]);
    plain(entry)
}

/// Codex.
pub(super) fn codex(entry: &mut EntryDraft<'_>) -> EntryUse {
    entry.set_option("startup_timeout_sec", "start-timeout", seconds);
    entry.set_option("startup_timeout_ms", "start-timeout", milliseconds);
    entry.set_option("tool_timeout_sec", "call-timeout", seconds);
    entry.set_option("enabled_tools", "allow", names);
    entry.deny("disabled_tools");
    entry.set_option("env_vars", "inherit-env", names);
    entry.rename("http_headers", "headers");
    if let Some(Tree::Text(name)) = entry.take("bearer_token_env_var") {
        let token = entry.variable(&["bearer_token_env_var"], &name);
        entry.add_to(
            "headers",
            Member::new("Authorization", Tree::Text(format!("Bearer {token}"))),
        );
    }
    entry.set_bearer("bearer_token");
    if let Some(Tree::Table(headers)) = entry.take("env_http_headers") {
        for header in headers {
            if let Tree::Text(name) = header.value {
                let keys = ["env_http_headers", &header.key];
                let value = Tree::Text(entry.variable(&keys, &name));
                entry.add_to("headers", Member::new(header.key, value));
            }
        }
    }
    // How Codex asks and signs in. `tools` has settings of single tools.
    entry.forget(&[
        "required",
        "tools",
        "default_tools_approval_mode",
        "supports_parallel_tool_calls",
        "experimental_environment",
        "environment_id",
        "scopes",
        "oauth",
        "oauth_resource",
    ]);
    EntryUse::Server
}

/// Goose's extensions; those that are part of Goose cannot run anywhere else.
pub(super) fn goose(entry: &mut EntryDraft<'_>) -> EntryUse {
    // Older files have everything but `enabled` in `config`.
    entry.unfold("config");
    let own = ["builtin", "platform", "frontend", "inline_python"];
    if entry.text("type").is_some_and(|word| own.contains(&word)) {
        return match is_off(entry.members) {
            true => EntryUse::Ignored,
            false => EntryUse::Skipped("it is a part of Goose"),
        };
    }
    entry.rename("cmd", "command");
    entry.rename("envs", "env");
    entry.rename("uri", "url");
    entry.set_option("timeout", "call-timeout", seconds);
    if entry
        .get("available_tools")
        .and_then(Tree::items)
        .is_some_and(<[Tree]>::is_empty)
    {
        entry.forget(&["available_tools"]);
    }
    entry.set_option("available_tools", "allow", names);
    if let Some(Tree::List(keys)) = entry.take("env_keys") {
        for name in keys.iter().filter_map(Tree::as_text) {
            let value = Tree::Text(entry.variable(&["env_keys"], name));
            entry.add_to("env", Member::new(name, value));
        }
    }
    entry.forget(&["name", "display_name", "description", "bundled", "socket"]);
    EntryUse::Server
}

/// Whether a file is Gemini CLI's, in whose strings `$NAME` is a variable.
pub(super) fn is_gemini(root: &Tree, entries: &[ServerEntry]) -> bool {
    let own_keys = ["httpUrl", "trust", "includeTools", "excludeTools"];
    let has = |value: &Tree, keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    has(root, &["selectedAuthType", "security", "contextFileName"])
        || entries.iter().any(|entry| has(&entry.tree, &own_keys))
}

/// `$NAME` anywhere, as Gemini CLI does: a name that is not set stays as it is, which may be meant for a shell. As the whole
/// string it must be set.
pub(super) fn gemini_variables(text: &str) -> String {
    if let Some(name) = text.strip_prefix('$').filter(|name| is_variable_name(name)) {
        return format!("${{{name}}}");
    }
    let mut rewritten = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, found) = rest.split_at(at);
        let name_start = found.len() - found.trim_start_matches('$').len();
        let (dollars, behind) = found.split_at(name_start);
        // `${NAME}` is known as it is.
        let name_end = match behind.starts_with('{') {
            true => behind.find('}'),
            false => behind.find(|letter: char| !is_word(letter)),
        };
        let (name, after) = behind.split_at(name_end.unwrap_or(behind.len()));
        rewritten.push_str(before);
        match dollars == "$" && is_variable_name(name) {
            true => rewritten.push_str(&format!("${{{name}:-${name}}}")),
            false => rewritten.extend([dollars, name]),
        }
        rest = after;
    }
    rewritten + rest
}

fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(is_word)
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// `{env:NAME}` and `{file:path}`; the latter cannot be filled in here, and the server is disabled with a reason.
fn opencode_variables(text: &str) -> String {
    replace_references(text, "{env:", "}").replace("{file:", "${file:")
}

/// `${{ secrets.NAME }}`
fn continue_variables(text: &str) -> String {
    replace_references(text, "${{", "}}")
}

/// Rewrites `OPEN NAME CLOSE` to `${NAME}`; a word with a dot in front of the name says where the client has it from.
fn replace_references(text: &str, open: &str, close: &str) -> String {
    let mut rewritten = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(open) {
        let Some((inside, after)) = behind.split_once(close) else {
            break;
        };
        let name = inside.trim();
        let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
        // `${env:NAME}` is known as it is.
        let before = before.strip_suffix('$').unwrap_or(before);
        rewritten.push_str(before);
        rewritten.push_str(&format!("${{{name}}}"));
        rest = after;
    }
    rewritten + rest
}

fn seconds(value: &Tree) -> Option<Tree> {
    positive(value).map(|number| Tree::Text(format!("{number}s")))
}

fn milliseconds(value: &Tree) -> Option<Tree> {
    positive(value).map(|number| Tree::Text(format!("{number}ms")))
}

/// A number that is a duration of at most a year, in either unit.
fn positive(value: &Tree) -> Option<&str> {
    const YEAR_SECONDS: f64 = 31_536_000.0;
    let Tree::Number(number) = value else {
        return None;
    };
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_duration = number
        .parse()
        .is_ok_and(|value: f64| (0.001..=YEAR_SECONDS).contains(&value));
    (is_duration && number.bytes().all(is_plain)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_other_clients_become_ours() {
        for (rewrite, text, expected) in [
            (
                opencode_variables as fn(&str) -> String,
                "Bearer {env:KEY}",
                "Bearer ${KEY}",
            ),
            (opencode_variables, "${env:A}{env:B}", "${A}${B}"),
            (opencode_variables, "{file:~/.key}", "${file:~/.key}"),
            (opencode_variables, "{env:", "{env:"),
            (continue_variables, "${{ secrets.KEY }}!", "${KEY}!"),
            (continue_variables, "${{KEY}} ${OTHER}", "${KEY} ${OTHER}"),
            (continue_variables, "${{ x", "${{ x"),
            (gemini_variables, "$MY_KEY", "${MY_KEY}"),
            (gemini_variables, "costs $5", "costs $5"),
            (gemini_variables, "$5", "$5"),
            (gemini_variables, "Bearer $KEY", "Bearer ${KEY:-$KEY}"),
            (gemini_variables, "$A-$B.", "${A:-$A}-${B:-$B}."),
            (gemini_variables, "${A:-$B} $${C}", "${A:-$B} $${C}"),
            (gemini_variables, "$$A ${B $", "$$A ${B $"),
        ] {
            assert_eq!(rewrite(text), expected, "{text}");
        }
    }
}
