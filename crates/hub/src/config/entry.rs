//! Reads one server's entry.
//!
//! Two kinds of mistakes are told apart. A wrong key or value under our own key makes the file invalid, because nobody but
//! us reads it. Anything else disables this server only.

use http::{HeaderName, HeaderValue};

use super::ServerName;
use super::auth_options::AuthOptions;
use super::env_file::read_env_file;
use super::error::{ConfigError, ConfigFault, ServerProblem};
use super::inherited::{InheritedEnv, read_inherited_env};
use super::keys::{ENTRY_KEYS, OWN_KEY, SERVER_KEYS, closest};
use super::node::{Fields, Node};
use super::roots::RootFolder;
use super::secret::{SecretText, ServerUrl};
use super::server::{BuiltinTarget, FileAccess, ServerSpec, ServerTarget, UrlKind};
use super::server_options::ServerOptions;
use super::warning::{ConfigWarning, UnknownConfigKey};

/// What `type` and `transport` can say.
#[derive(Clone, Copy, PartialEq)]
enum TypeWord {
    Stdio,
    /// VS Code falls back to SSE for `http`, so this is not taken as the final word.
    AnyHttp,
    Url(UrlKind),
}

const TYPE_WORDS: &[(&str, TypeWord)] = &[
    ("stdio", TypeWord::Stdio),
    ("http", TypeWord::AnyHttp),
    ("streamable-http", TypeWord::Url(UrlKind::StreamableHttp)),
    ("streamableHttp", TypeWord::Url(UrlKind::StreamableHttp)),
    ("streamable_http", TypeWord::Url(UrlKind::StreamableHttp)),
    ("sse", TypeWord::Url(UrlKind::Sse)),
];

/// Timeouts below this are seconds in some clients and milliseconds in others.
const SHORTEST_TIMEOUT_MS: u64 = 1000;

/// What is under our own key in an entry.
#[derive(Default)]
struct OwnPart {
    options: ServerOptions,
    builtin: Option<BuiltinWord>,
    write: Option<bool>,
    inherit_env: Option<InheritedEnv>,
}

#[derive(Clone, Copy)]
enum BuiltinWord {
    Time,
    Files,
    Demo,
}

/// What reading an entry yields besides the server.
#[derive(Default)]
pub(super) struct EntryNotes {
    pub(super) unknown_keys: Vec<UnknownConfigKey>,
    pub(super) warnings: Vec<ConfigWarning>,
}

/// Reads an entry. The outer error is one of the whole file.
pub(super) fn read_entry(
    entry: &Node<'_>,
    name: &str,
    notes: &mut EntryNotes,
) -> Result<Result<ServerSpec, ServerProblem>, ConfigError> {
    let fields = match entry.shared_fields(ENTRY_KEYS, &mut notes.unknown_keys) {
        Ok(fields) => fields,
        Err(error) => return Ok(Err(error.into())),
    };
    let own = match fields.read(OWN_KEY, read_own_part) {
        Ok(own) => own.unwrap_or_default(),
        Err(error) if matches!(error.fault, ConfigFault::MissingVariable(_)) => {
            // A server that is disabled needs no variables.
            return Ok(Err(match is_disabled(&fields) {
                Ok(true) => ServerProblem::Disabled,
                _ => error.into(),
            }));
        }
        Err(error) => return Err(error),
    };
    Ok(read_spec(entry, name, &fields, own, notes))
}

/// Reads what is under our own key. A missing variable is reported last, so that it does not hide a mistake that makes the file
/// invalid: whether a file is valid should not depend on the environment.
fn read_own_part(node: &Node<'_>) -> Result<OwnPart, ConfigError> {
    let mut fields = node.fields(SERVER_KEYS)?;
    let mut missing = None;
    loop {
        match (OwnPart::read(&fields), &missing) {
            (Err(error), _) if matches!(error.fault, ConfigFault::MissingVariable(_)) => {
                fields.remove_around(&error.key);
                missing.get_or_insert(error);
            }
            (Ok(_), Some(error)) => return Err(error.clone()),
            (read, _) => return read,
        }
    }
}

impl OwnPart {
    fn read(fields: &Fields<'_>) -> Result<OwnPart, ConfigError> {
        Ok(OwnPart {
            options: ServerOptions::read(fields)?,
            builtin: fields.read("builtin", |node| {
                node.choice(&[
                    ("time", BuiltinWord::Time),
                    ("files", BuiltinWord::Files),
                    ("demo", BuiltinWord::Demo),
                ])
            })?,
            write: fields.read("write", Node::boolean)?,
            inherit_env: fields.read("inherit-env", read_inherited_env)?,
        })
    }
}

fn read_spec(
    entry: &Node<'_>,
    name: &str,
    fields: &Fields<'_>,
    mut own: OwnPart,
    notes: &mut EntryNotes,
) -> Result<ServerSpec, ServerProblem> {
    if is_disabled(fields)? {
        return Err(ServerProblem::Disabled);
    }
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        let why = "a server's name must not be empty or have control characters";
        return Err(entry.key_error(ConfigFault::BadValue(why)).into());
    }
    if let Some(millis) = fields.read("timeout", read_timeout)? {
        match millis {
            millis if millis < SHORTEST_TIMEOUT_MS => {
                notes.warnings.push(ConfigWarning::AmbiguousTimeout {
                    server: ServerName::new(name),
                });
            }
            millis => {
                let timeout = std::time::Duration::from_millis(millis);
                own.options.call_timeout.get_or_insert(timeout);
            }
        }
    }
    let target = read_target(entry, fields, &mut own)?;
    let credentials = entry.credentials().into_iter().map(SecretText::new);
    Ok(ServerSpec {
        target,
        options: own.options,
        credentials: credentials.collect(),
    })
}

fn is_disabled(fields: &Fields<'_>) -> Result<bool, ConfigError> {
    let disabled = fields.read("disabled", Node::boolean)?.unwrap_or(false);
    let enabled = fields.read("enabled", Node::boolean)?.unwrap_or(true);
    Ok(disabled || !enabled)
}

/// Milliseconds, as in most clients.
fn read_timeout(node: &Node<'_>) -> Result<u64, ConfigError> {
    const EXPECTED: &str = "expected a whole number of milliseconds, at most a year";
    match node.integer(EXPECTED)? {
        millis if u128::from(millis) > super::duration::LONGEST.as_millis() => {
            Err(node.bad(EXPECTED))
        }
        millis => Ok(millis),
    }
}

fn read_target(
    entry: &Node<'_>,
    fields: &Fields<'_>,
    own: &mut OwnPart,
) -> Result<ServerTarget, ConfigError> {
    let url = read_url(fields)?;
    let command = fields.get("command");
    let word = fields.get("type").or(fields.get("transport"));
    let word = word.map(|node| node.choice(TYPE_WORDS)).transpose()?;
    let bad = |why| Err(entry.key_error(ConfigFault::BadValue(why)));
    if own.options.auth.is_some() && url.is_none() {
        return bad("`auth` is only for a server with a URL");
    }
    if own.inherit_env.is_some() && command.is_none() {
        return bad("`inherit-env` is only for a server with a `command`");
    }
    if own.write.is_some() && !matches!(own.builtin, Some(BuiltinWord::Files)) {
        return bad("`write` is only for `\"builtin\": \"files\"`");
    }
    match (own.builtin, command, url) {
        (Some(word), None, None) => read_builtin(entry, word, own),
        (Some(_), _, _) => bad("a built-in server takes no `command` and no `url`"),
        (None, Some(_), Some(_)) => bad("has both a `command` and a URL"),
        (None, None, None) => Err(misspelt_target(entry).unwrap_or_else(|| {
            entry.key_error(ConfigFault::BadValue("has no `command` and no `url`"))
        })),
        (None, Some(command), None) => match word {
            None | Some(TypeWord::Stdio) => read_command(command, fields, own),
            Some(_) => bad("`type` is for a URL, but there is a `command`"),
        },
        (None, None, Some((url, kind))) => {
            read_auth_of_other_client(fields, own)?;
            Ok(ServerTarget::Url {
                url,
                headers: fields.read("headers", read_headers)?.unwrap_or_default(),
                kind: match word {
                    Some(TypeWord::Stdio) => {
                        return bad("`type` is stdio, but `command` is missing");
                    }
                    Some(TypeWord::Url(kind)) => Some(kind),
                    Some(TypeWord::AnyHttp) | None => kind,
                },
            })
        }
    }
}

/// Takes what another client says about signing in, unless the entry says it under our key.
fn read_auth_of_other_client(fields: &Fields<'_>, own: &mut OwnPart) -> Result<(), ConfigError> {
    let auth = fields.get("oauth").or(fields.get("auth"));
    if let (Some(auth), None) = (auth, &own.options.auth) {
        own.options.auth = AuthOptions::of_other_client(auth)?;
    }
    Ok(())
}

/// The key that was meant to be `command` or `url`, as an error.
fn misspelt_target(entry: &Node<'_>) -> Option<ConfigError> {
    let members = entry.members().ok()?;
    members.iter().find_map(|(key, node)| {
        let suggestion = closest(key, ENTRY_KEYS);
        let is_target = matches!(
            suggestion,
            Some("command" | "url" | "serverUrl" | "httpUrl")
        );
        is_target.then(|| node.key_error(ConfigFault::UnknownKey { suggestion }))
    })
}

/// The URL, with its kind if the key implies one.
fn read_url(fields: &Fields<'_>) -> Result<Option<(ServerUrl, Option<UrlKind>)>, ConfigError> {
    let keys = [
        ("url", None),
        ("serverUrl", None),
        ("httpUrl", Some(UrlKind::StreamableHttp)),
    ];
    let mut found = None;
    for (key, kind) in keys {
        let Some(node) = fields.get(key) else {
            continue;
        };
        if found.is_some() {
            return Err(node.key_error(ConfigFault::BadValue("has more than one URL")));
        }
        let url = ServerUrl::parse(&node.text()?).map_err(|why| node.bad(why))?;
        found = Some((url, kind));
    }
    Ok(found)
}

fn read_command(
    command: &Node<'_>,
    fields: &Fields<'_>,
    own: &OwnPart,
) -> Result<ServerTarget, ConfigError> {
    let cwd = fields.read("cwd", |node| without_nul(node, node.nonempty_text()?))?;
    let program = without_nul(command, command.nonempty_text()?)?;
    // A path can have spaces; a name that is looked up in PATH has none.
    if program.contains(char::is_whitespace) && !program.contains(['/', '\\']) {
        let why = "a program without its arguments: put each argument into `args`";
        return Err(command.bad(why));
    }
    Ok(ServerTarget::Command {
        program,
        args: fields.read("args", read_args)?.unwrap_or_default(),
        env: fields.read("env", read_env)?.unwrap_or_default(),
        env_file: fields.read("envFile", read_env_file)?,
        cwd: cwd.map(Into::into),
        inherit_env: own.inherit_env.clone(),
    })
}

fn read_args(node: &Node<'_>) -> Result<Vec<SecretText>, ConfigError> {
    let read = |item: &Node<'_>| without_nul(item, item.scalar_text()?).map(SecretText::new);
    node.items()?.iter().map(read).collect()
}

/// Names and values; one that is null is left out, as in VS Code.
fn read_env(node: &Node<'_>) -> Result<Vec<(String, SecretText)>, ConfigError> {
    let mut env = Vec::new();
    for (name, node) in node.members()? {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(node.key_error(ConfigFault::BadValue("not a variable's name")));
        }
        if !node.is_null() {
            let value = without_nul(&node, node.scalar_text()?)?;
            env.push((name.to_owned(), SecretText::new(value)));
        }
    }
    // The order means nothing, and a reload should not see a change in it.
    env.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(env)
}

fn read_headers(node: &Node<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
    let mut headers = Vec::new();
    for (name, node) in node.members()? {
        if node.is_null() {
            continue;
        }
        let name = HeaderName::try_from(name)
            .map_err(|_| node.key_error(ConfigFault::BadValue("not a header's name")))?;
        let mut value = HeaderValue::try_from(node.scalar_text()?)
            .map_err(|_| node.bad("has characters that a header cannot have"))?;
        value.set_sensitive(true);
        headers.push((name, value));
    }
    Ok(headers)
}

fn read_builtin(
    entry: &Node<'_>,
    word: BuiltinWord,
    own: &mut OwnPart,
) -> Result<ServerTarget, ConfigError> {
    let server = match word {
        BuiltinWord::Time => BuiltinTarget::Time,
        BuiltinWord::Demo => BuiltinTarget::Demo,
        BuiltinWord::Files => {
            let roots = own.options.roots.take();
            let roots = roots.unwrap_or_else(|| vec![RootFolder::current()]);
            if roots.is_empty() {
                let why = "the built-in file server can see nothing without `roots`; leave the key out for the current folder";
                return Err(entry.key_error(ConfigFault::BadValue(why)));
            }
            let access = match own.write {
                Some(true) => FileAccess::ReadWrite,
                Some(false) | None => FileAccess::ReadOnly,
            };
            BuiltinTarget::Files { roots, access }
        }
    };
    Ok(ServerTarget::Builtin(server))
}

/// A process gets its program, arguments, variables and folder as C strings.
fn without_nul(node: &Node<'_>, text: String) -> Result<String, ConfigError> {
    match text.contains('\0') {
        true => Err(node.bad("must not contain a NUL character")),
        false => Ok(text),
    }
}
