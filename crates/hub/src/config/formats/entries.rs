//! How the entries of each client become the common form.
//!
//! A key with another name is renamed, a value in another form is rewritten, and what the hub has an option for goes under our
//! own key, unless the entry has that option already. A value of the wrong type stays as it is: then its key is reported as
//! unknown.

use super::super::document::{DocumentContent, DocumentMember, DocumentValue};
use super::super::keys::OWN_KEY;

/// Why an entry of Continue's hub is skipped.
pub(super) const USES: &str = "`uses` is for Continue, which downloads the definition";

/// What happens to an entry.
pub(super) enum EntryUse {
    /// It is a server.
    Server,
    /// Only its client can run it. People are told why.
    Skipped(&'static str),
    /// It is turned off and could not run anyway.
    Ignored,
}

/// The members of an entry that is rewritten.
pub(super) struct EntryDraft<'a>(&'a mut Vec<DocumentMember>);

impl<'a> EntryDraft<'a> {
    /// Nothing if the entry is not an object.
    pub(super) fn of(entry: &'a mut DocumentValue) -> Option<EntryDraft<'a>> {
        match &mut entry.content {
            DocumentContent::Table(members) => Some(EntryDraft(members)),
            _ => None,
        }
    }

    pub(super) fn rewrite_texts(&mut self, rewrite: fn(&str) -> String) {
        for member in self.0.iter_mut() {
            member.value.rewrite_texts(rewrite);
        }
    }

    fn get(&self, key: &str) -> Option<&DocumentValue> {
        let found = self.0.iter().find(|member| member.key == key)?;
        Some(&found.value)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    fn is_off(&self) -> bool {
        let is = |key: &str, wanted: bool| match self.get(key).map(|value| &value.content) {
            Some(DocumentContent::Boolean(value)) => *value == wanted,
            _ => false,
        };
        is("enabled", false) || is("disabled", true)
    }

    /// Adds tools to `excludeTools`.
    pub(super) fn exclude_tools(&mut self, names: &[&str]) {
        const KEY: &str = "excludeTools";
        let Some(start) = self.0.first().map(|member| member.key_start) else {
            return;
        };
        let added = names.iter().map(|name| DocumentValue::text(start, *name));
        let known = self.0.iter_mut().find(|member| member.key == KEY);
        match known.map(|member| &mut member.value.content) {
            Some(DocumentContent::List(known)) => known.extend(added),
            Some(_) => {}
            None if names.is_empty() => {}
            None => self.0.push(DocumentMember {
                key: KEY.to_owned(),
                written: KEY.to_owned(),
                key_start: start,
                value: DocumentValue {
                    start,
                    content: DocumentContent::List(added.collect()),
                },
            }),
        }
    }

    fn take(&mut self, key: &str) -> Option<DocumentMember> {
        let at = self.0.iter().position(|member| member.key == key)?;
        Some(self.0.remove(at))
    }

    /// Keys that mean something to their client alone.
    fn forget(&mut self, keys: &[&str]) {
        self.0.retain(|member| !keys.contains(&member.key.as_str()));
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(member) = self.0.iter_mut().find(|member| member.key == from) {
            to.clone_into(&mut member.key);
        }
    }

    /// `type: local` and the like.
    fn rename_type(&mut self, from: &str, to: &str) {
        let mut members = self.0.iter_mut();
        let found = members.find(|member| member.key == "type");
        if let Some(member) = found.filter(|member| member.value.as_text() == Some(from)) {
            member.value = DocumentValue::text(member.value.start, to);
        }
    }

    /// A table in the entry, which is made if it is missing or null.
    fn table(
        &mut self,
        key: &str,
        written: &str,
        start: usize,
    ) -> Option<&mut Vec<DocumentMember>> {
        if self.get(key).is_none_or(is_null) {
            self.0.retain(|member| member.key != key);
            self.0.push(DocumentMember {
                key: key.to_owned(),
                written: written.to_owned(),
                key_start: start,
                value: DocumentValue {
                    start,
                    content: DocumentContent::Table(Vec::new()),
                },
            });
        }
        let member = self.0.iter_mut().find(|member| member.key == key)?;
        match &mut member.value.content {
            DocumentContent::Table(members) => Some(members),
            _ => None,
        }
    }

    /// Adds a member to a table of the entry, unless it is there and not null.
    fn add_to(&mut self, key: &str, added: DocumentMember) {
        let written = if key == OWN_KEY { "" } else { key };
        let Some(members) = self.table(key, written, added.key_start) else {
            return;
        };
        members.retain(|member| member.key != added.key || !is_null(&member.value));
        if members.iter().all(|member| member.key != added.key) {
            members.push(added);
        }
    }

    /// Moves a key to an option of ours, if `convert` accepts the value.
    fn set_option(
        &mut self,
        key: &str,
        option: &str,
        convert: fn(&DocumentContent) -> Option<DocumentContent>,
    ) {
        let Some(content) = self.get(key).and_then(|value| convert(&value.content)) else {
            return;
        };
        if let Some(mut member) = self.take(key) {
            option.clone_into(&mut member.key);
            member.value.content = content;
            self.add_to(OWN_KEY, member);
        }
    }

    /// Adds a list of tools to those that the entry denies already: all of them are meant.
    fn deny(&mut self, key: &str) {
        let added = self.get(key).and_then(|value| names(&value.content));
        let own = self.0.iter_mut().find(|member| member.key == OWN_KEY);
        if let Some(DocumentContent::List(added)) = added
            && let Some(DocumentContent::Table(options)) = own.map(|own| &mut own.value.content)
            && let Some(denied) = options.iter_mut().find(|option| option.key == "deny")
            && let DocumentContent::List(denied) = &mut denied.value.content
        {
            denied.extend(added);
            self.forget(&[key]);
        }
        self.set_option(key, "deny", names);
    }

    /// A header whose value is made from the text of a key.
    fn set_header(&mut self, key: &str, header: &str, value: fn(&str) -> String) {
        let Some(text) = self.text(key).map(value) else {
            return;
        };
        if let Some(mut member) = self.take(key) {
            header.clone_into(&mut member.key);
            member.value = DocumentValue::text(member.value.start, text);
            self.add_to("headers", member);
        }
    }

    /// `["npx", "-y", "server"]` becomes a command and its arguments.
    fn split_command(&mut self) {
        let Some(DocumentContent::List(words)) = self.get("command").map(|value| &value.content)
        else {
            return;
        };
        let Some((program, args)) = words.split_first() else {
            return;
        };
        let (program, args) = (program.clone(), args.to_vec());
        let Some(mut command) = self.take("command") else {
            return;
        };
        let mut list = command.clone();
        "args".clone_into(&mut list.key);
        list.value.content = DocumentContent::List(args);
        command.value = program;
        if let Some(more) = self.take("args")
            && let (DocumentContent::List(args), DocumentContent::List(more)) =
                (&mut list.value.content, more.value.content)
        {
            args.extend(more);
        }
        self.0.extend([command, list]);
    }
}

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
    entry.set_header("apiKey", "Authorization", bearer);
    let Some(options) = entry.take("requestOptions") else {
        return EntryUse::Server;
    };
    match options.value.get("headers") {
        Some(headers) => entry.0.push(DocumentMember {
            key: "headers".to_owned(),
            written: "requestOptions.headers".to_owned(),
            key_start: options.key_start,
            value: headers.clone(),
        }),
        None => entry.0.push(options),
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
    if let Some(DocumentContent::Table(parts)) =
        entry.get("command").map(|value| value.content.clone())
    {
        entry.forget(&["command"]);
        entry.0.extend(parts.into_iter().map(|mut part| {
            part.written = format!("command.{}", part.key);
            if part.key == "path" {
                "command".clone_into(&mut part.key);
            }
            part
        }));
    }
    if entry.get("command").is_none() && entry.get("url").is_none() {
        return match entry.is_off() {
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
    if let Some(name) = entry.text("bearer_token_env_var").map(str::to_owned)
        && let Some(mut member) = entry.take("bearer_token_env_var")
    {
        "Authorization".clone_into(&mut member.key);
        member.written.clear();
        member.value = variable(member.value.start, "bearer_token_env_var", "Bearer ", &name);
        entry.add_to("headers", member);
    }
    entry.set_header("bearer_token", "Authorization", bearer);
    if let Some(headers) = entry.take("env_http_headers") {
        for header in headers.value.members().unwrap_or_default() {
            let mut header = header.clone();
            if let Some(name) = header.value.as_text() {
                header.value = variable(header.value.start, "env_http_headers", "", name);
                entry.add_to("headers", header);
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
    if let Some(DocumentContent::Table(members)) =
        entry.get("config").map(|value| value.content.clone())
    {
        entry.forget(&["config"]);
        entry.0.extend(members);
    }
    if matches!(
        entry.text("type"),
        Some("builtin" | "platform" | "frontend" | "inline_python")
    ) {
        return match entry.is_off() {
            true => EntryUse::Ignored,
            false => EntryUse::Skipped("it is a part of Goose"),
        };
    }
    entry.rename("cmd", "command");
    entry.rename("envs", "env");
    entry.rename("uri", "url");
    entry.set_option("timeout", "call-timeout", seconds);
    entry.set_option("available_tools", "allow", some_names);
    if let Some(keys) = entry.take("env_keys")
        && let DocumentContent::List(names) = &keys.value.content
    {
        for value in names {
            let Some(name) = value.as_text() else {
                continue;
            };
            entry.add_to(
                "env",
                DocumentMember {
                    key: name.to_owned(),
                    written: String::new(),
                    key_start: value.start,
                    value: variable(value.start, "env_keys", "", name),
                },
            );
        }
    }
    if let Some(DocumentContent::List(none)) =
        entry.get("available_tools").map(|value| &value.content)
        && none.is_empty()
    {
        entry.forget(&["available_tools"]);
    }
    entry.forget(&["name", "display_name", "description", "bundled", "socket"]);
    EntryUse::Server
}

/// Whether a file is Gemini CLI's, in whose strings `$NAME` is a variable.
pub(super) fn is_gemini(root: &DocumentValue, entries: &[DocumentMember]) -> bool {
    let own_keys = ["httpUrl", "trust", "includeTools", "excludeTools"];
    let has =
        |value: &DocumentValue, keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    has(root, &["selectedAuthType", "security", "contextFileName"])
        || entries.iter().any(|entry| has(&entry.value, &own_keys))
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

/// The value of a variable that a key of the file names.
fn variable(start: usize, key: &'static str, before: &'static str, name: &str) -> DocumentValue {
    DocumentValue {
        start,
        content: DocumentContent::Variable {
            key,
            before,
            name: name.to_owned(),
        },
    }
}

fn is_null(value: &DocumentValue) -> bool {
    matches!(value.content, DocumentContent::Null)
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// A list of names; `*` means all of them here too.
fn names(content: &DocumentContent) -> Option<DocumentContent> {
    let DocumentContent::List(items) = content else {
        return None;
    };
    let is_name = |item: &DocumentValue| item.as_text().is_some_and(|text| !text.is_empty());
    items.iter().all(is_name).then(|| content.clone())
}

/// A list of names that is not empty.
fn some_names(content: &DocumentContent) -> Option<DocumentContent> {
    names(content)
        .filter(|names| matches!(names, DocumentContent::List(items) if !items.is_empty()))
}

fn seconds(content: &DocumentContent) -> Option<DocumentContent> {
    positive(content).map(|number| DocumentContent::Text(format!("{number}s")))
}

fn milliseconds(content: &DocumentContent) -> Option<DocumentContent> {
    positive(content).map(|number| DocumentContent::Text(format!("{number}ms")))
}

/// A number that is a duration of at most a year, in either unit.
fn positive(content: &DocumentContent) -> Option<&str> {
    const YEAR_SECONDS: f64 = 31_536_000.0;
    match content {
        DocumentContent::Number(number) => {
            let is_plain = number
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            let value: f64 = number.parse().ok()?;
            (is_plain && (0.001..=YEAR_SECONDS).contains(&value)).then_some(number)
        }
        _ => None,
    }
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
