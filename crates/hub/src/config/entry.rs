//! Reads one server's entry.
//!
//! Two kinds of mistakes are told apart. A wrong key or value under our own key makes the file invalid, because nobody but
//! us reads it. Anything else disables this server only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ServerName;
use super::auth_options::AuthOptions;
use super::env_file::EnvFile;
use super::error::{ConfigError, ConfigFault, ServerProblem};
use super::formats::ServerEntry;
use super::keys::OWN_KEY;
use super::reader::{ConfigReader, ReadError};
use super::roots::{RootFolder, in_home};
use super::secret::{SecretText, ServerUrl};
use super::server::{BuiltinTarget, FileAccess, ServerSpec, ServerTarget, UrlKind};
use super::server_options::{BuiltinName, ServerOptions};
use super::tree::{Member, Tree, is_off, join};
use super::values::{milliseconds, nonempty};
use super::variables::{Environment, credentials};
use super::warning::{ConfigWarning, UnknownConfigKey};

/// Timeouts below this are seconds in some clients and milliseconds in others.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// A server as all clients write it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenEntry {
    r#type: Option<TypeWord>,
    transport: Option<TypeWord>,
    #[serde(deserialize_with = "nonempty")]
    command: Option<String>,
    args: Vec<SecretText>,
    env: BTreeMap<String, SecretText>,
    env_file: Option<RootFolder>,
    #[serde(deserialize_with = "nonempty")]
    cwd: Option<String>,
    url: Option<ServerUrl>,
    server_url: Option<ServerUrl>,
    http_url: Option<ServerUrl>,
    headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "milliseconds")]
    timeout: Option<Duration>,
    disabled: bool,
    enabled: Option<bool>,
    // These are read by themselves.
    #[serde(rename = "oauth")]
    _oauth: IgnoredAny,
    #[serde(rename = "auth")]
    _auth: IgnoredAny,
    #[serde(rename = "mcp-proxy")]
    _own: IgnoredAny,
}

/// What `type` and `transport` can say.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TypeWord {
    Stdio,
    /// VS Code falls back to SSE for `http`, so this is not taken as the final word.
    Http,
    #[serde(alias = "streamableHttp", alias = "streamable_http")]
    StreamableHttp,
    Sse,
}

/// What reading an entry yields besides the server.
#[derive(Default)]
pub(super) struct EntryNotes {
    pub(super) unknown_keys: Vec<UnknownConfigKey>,
    pub(super) warnings: Vec<ConfigWarning>,
}

/// Reads an entry. The outer error is one of the whole file.
pub(super) fn read_entry(
    reader: ConfigReader<'_>,
    mut entry: ServerEntry,
    notes: &mut EntryNotes,
) -> Result<Result<ServerSpec, ServerProblem>, ConfigError> {
    let credentials = credentials_of(&entry.tree, reader.environment);
    let options = match entry.tree.member(OWN_KEY) {
        Some(own) if !own.value.is_null() => {
            read_options(reader, own, &join(&entry.path, &own.written))
        }
        _ => Ok(ServerOptions::default()),
    };
    let options = match options {
        Err(error) if !matches!(error.fault, ConfigFault::MissingVariable(_)) => return Err(error),
        options => options,
    };
    entry.tree.remove_nulls();
    Ok(
        read_spec(reader, entry, options, notes).map(|spec| ServerSpec {
            credentials,
            ..spec
        }),
    )
}

/// Reads what is under our own key. A missing variable is reported last, so that it does not hide a mistake that makes the file
/// invalid: whether a file is valid should not depend on the environment.
fn read_options(
    reader: ConfigReader<'_>,
    own: &Member,
    path: &str,
) -> Result<ServerOptions, ConfigError> {
    let mut tree = own.value.clone();
    let mut missing = None;
    let mut options: ServerOptions = loop {
        match reader.read(&tree, path) {
            Err(ReadError {
                error,
                key: Some(key),
            }) if matches!(error.fault, ConfigFault::MissingVariable(_)) => {
                tree.remove(&key);
                missing.get_or_insert(error);
            }
            read => break read?,
        }
    };
    if let Some((keys, why)) = options.problem() {
        let path = keys
            .iter()
            .fold(path.to_owned(), |path, key| join(&path, key));
        return Err(reader.bad(path, why));
    }
    if let Some(error) = missing {
        return Err(error);
    }
    let home = (reader.environment)("HOME");
    let roots = options.roots.take();
    options.roots = roots.map(|roots| in_home(roots, home.as_deref()));
    Ok(options)
}

fn read_spec(
    reader: ConfigReader<'_>,
    mut entry: ServerEntry,
    options: Result<ServerOptions, ConfigError>,
    notes: &mut EntryNotes,
) -> Result<ServerSpec, ServerProblem> {
    if is_off(entry.tree.members().unwrap_or_default()) {
        return Err(ServerProblem::Disabled);
    }
    let mut options = options?;
    if entry.name.trim().is_empty() || entry.name.chars().any(char::is_control) {
        let why = "a server's name must not be empty or have control characters";
        return Err(reader.bad(entry.path, why).into());
    }
    if let Some(problem) = entry.problem.take() {
        return Err(problem.into());
    }
    let (written, unknown) = read_written(reader, &mut entry)?;
    match written.timeout {
        Some(timeout) if timeout < SHORTEST_TIMEOUT => {
            notes.warnings.push(ConfigWarning::AmbiguousTimeout {
                server: ServerName::new(&entry.name),
            });
        }
        Some(timeout) => {
            options.call_timeout.get_or_insert(timeout);
        }
        None => {}
    }
    let misspelt = unknown.iter().find_map(|key| {
        let suggestion = key.suggestion?;
        let is_target = ["command", "url", "serverUrl", "httpUrl"].contains(&suggestion);
        let fault = ConfigFault::UnknownKey {
            suggestion: Some(suggestion),
        };
        is_target.then(|| reader.error(&key.path, fault))
    });
    notes.unknown_keys.extend(unknown);
    let target = read_target(reader, &entry, written, &mut options, misspelt)?;
    Ok(ServerSpec {
        options,
        ..ServerSpec::new(target)
    })
}

/// Keys that are not known are for other programs: they are left out and returned.
fn read_written(
    reader: ConfigReader<'_>,
    entry: &mut ServerEntry,
) -> Result<(WrittenEntry, Vec<UnknownConfigKey>), ConfigError> {
    let mut unknown = Vec::new();
    loop {
        match reader.read(&entry.tree, &entry.path) {
            Err(ReadError {
                error:
                    ConfigError {
                        fault: ConfigFault::UnknownKey { suggestion },
                        key: path,
                        ..
                    },
                key: Some(key),
            }) => {
                unknown.push(UnknownConfigKey { path, suggestion });
                entry.tree.remove(&key);
            }
            read => return Ok((read?, unknown)),
        }
    }
}

fn read_target(
    reader: ConfigReader<'_>,
    entry: &ServerEntry,
    mut written: WrittenEntry,
    options: &mut ServerOptions,
    misspelt: Option<ConfigError>,
) -> Result<ServerTarget, ConfigError> {
    let bad = |why| Err(reader.bad(&entry.path, why));
    let word = written.r#type.or(written.transport);
    let urls = [
        ("url", written.url.take(), None),
        ("serverUrl", written.server_url.take(), None),
        (
            "httpUrl",
            written.http_url.take(),
            Some(UrlKind::StreamableHttp),
        ),
    ];
    let mut urls = urls
        .into_iter()
        .filter_map(|(key, url, kind)| Some((key, url?, kind)));
    let url = urls.next();
    if let Some((key, ..)) = urls.next() {
        return Err(reader.bad(join(&entry.path, key), "has more than one URL"));
    }
    if options.auth.is_some() && url.is_none() {
        return bad("`auth` is only for a server with a URL");
    }
    if options.inherit_env.is_some() && written.command.is_none() {
        return bad("`inherit-env` is only for a server with a `command`");
    }
    if options.write.is_some() && options.builtin != Some(BuiltinName::Files) {
        return bad("`write` is only for `\"builtin\": \"files\"`");
    }
    match (options.builtin, written.command.is_some(), url) {
        (Some(name), false, None) => read_builtin(reader, entry, name, options),
        (Some(_), _, _) => bad("a built-in server takes no `command` and no `url`"),
        (None, true, Some(_)) => bad("has both a `command` and a URL"),
        (None, false, None) => misspelt.map_or_else(|| bad("has no `command` and no `url`"), Err),
        (None, true, None) => match word {
            None | Some(TypeWord::Stdio) => read_command(reader, entry, written, options),
            Some(_) => bad("`type` is for a URL, but there is a `command`"),
        },
        (None, false, Some((_, url, kind))) => {
            let other = ["oauth", "auth"]
                .iter()
                .find_map(|key| entry.tree.member(key));
            if let (Some(auth), None) = (other, &options.auth) {
                let path = join(&entry.path, &auth.written);
                options.auth = AuthOptions::of_other_client(reader, &auth.value, &path)?;
            }
            let headers = written.headers.into_iter();
            let headers = headers.map(|(name, value)| header(reader, entry, &name, value));
            Ok(ServerTarget::Url {
                url,
                headers: headers.collect::<Result<_, _>>()?,
                kind: match word {
                    Some(TypeWord::Stdio) => {
                        return bad("`type` is stdio, but `command` is missing");
                    }
                    Some(TypeWord::StreamableHttp) => Some(UrlKind::StreamableHttp),
                    Some(TypeWord::Sse) => Some(UrlKind::Sse),
                    Some(TypeWord::Http) | None => kind,
                },
            })
        }
    }
}

fn header(
    reader: ConfigReader<'_>,
    entry: &ServerEntry,
    name: &str,
    value: String,
) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let bad = |why| reader.bad(entry.path_in("headers", name), why);
    let name = HeaderName::try_from(name).map_err(|_| bad("not a header's name"))?;
    let value = HeaderValue::try_from(value);
    let mut value = value.map_err(|_| bad("has characters that a header cannot have"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn read_command(
    reader: ConfigReader<'_>,
    entry: &ServerEntry,
    written: WrittenEntry,
    options: &ServerOptions,
) -> Result<ServerTarget, ConfigError> {
    let program = written.command.unwrap_or_default();
    // A path can have spaces; a name that is looked up in PATH has none.
    if program.contains(char::is_whitespace) && !program.contains(['/', '\\']) {
        let why = "a program without its arguments: put each argument into `args`";
        return Err(reader.bad(join(&entry.path, "command"), why));
    }
    let variable = |name| (reader.environment)(name);
    // A relative path starts at the project that the config file belongs to, if there is one.
    let project = PathBuf::from(variable("workspaceFolder").unwrap_or_default());
    let env_file = written.env_file.map(|file| EnvFile {
        path: project.join(file.in_home(variable("HOME").as_deref()).path()),
        key: join(&entry.path, "envFile"),
    });
    let is_bad = |name: &&String| name.is_empty() || name.contains('=');
    if let Some(name) = written.env.keys().find(is_bad) {
        return Err(reader.bad(entry.path_in("env", name), "not a variable's name"));
    }
    Ok(ServerTarget::Command {
        program,
        args: written.args,
        env: written.env.into_iter().collect(),
        env_file,
        cwd: written.cwd.map(Into::into),
        inherit_env: options.inherit_env.clone(),
    })
}

fn read_builtin(
    reader: ConfigReader<'_>,
    entry: &ServerEntry,
    name: BuiltinName,
    options: &mut ServerOptions,
) -> Result<ServerTarget, ConfigError> {
    Ok(ServerTarget::Builtin(match name {
        BuiltinName::Time => BuiltinTarget::Time,
        BuiltinName::Demo => BuiltinTarget::Demo,
        BuiltinName::Files => {
            let roots = options.roots.take();
            let roots = roots.unwrap_or_else(|| vec![RootFolder::current()]);
            if roots.is_empty() {
                let why = "the built-in file server can see nothing without `roots`; leave the key out for the current folder";
                return Err(reader.bad(&entry.path, why));
            }
            let access = match options.write {
                Some(true) => FileAccess::ReadWrite,
                Some(false) | None => FileAccess::ReadOnly,
            };
            BuiltinTarget::Files { roots, access }
        }
    }))
}

/// The values of all variables in an entry whose names sound like credentials.
fn credentials_of(entry: &Tree, environment: Environment<'_>) -> Vec<SecretText> {
    let mut found = Vec::new();
    entry.for_each_text(&mut |text| {
        found.extend(
            credentials(text, environment)
                .into_iter()
                .map(SecretText::new),
        );
    });
    found
}
