//! What a client can connect to.

use std::fmt;
use std::path::PathBuf;

/// A server, by its URL or by the command that starts it.
///
/// A string that begins with `http://` or `https://` is a URL; any other is a command line, split as a shell would.
///
/// ```
/// use mcp_proxy_client::ClientTarget;
///
/// assert!(matches!(ClientTarget::from("https://example.com/mcp"), ClientTarget::Url(_)));
/// let ClientTarget::Command { program, args, .. } = ClientTarget::from("npx -y 'my server'") else {
///     panic!("a command");
/// };
/// assert_eq!((program.as_str(), args.as_slice()), ("npx", &["-y".to_owned(), "my server".to_owned()][..]));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientTarget {
    /// A server that speaks Streamable HTTP.
    Url(String),
    /// A server that is started for this client and speaks on its standard streams. It ends with the client.
    #[non_exhaustive]
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables in addition to those of this process.
        env: Vec<(String, String)>,
        /// The folder to start it in, if not the current one.
        current_dir: Option<PathBuf>,
        /// Where its error output goes.
        stderr: ServerStderr,
    },
}

/// Where the error output of a server that is started goes.
///
/// ```
/// use mcp_proxy_client::{ClientTarget, ServerStderr};
///
/// let quiet = ClientTarget::from("my-server --verbose").stderr(ServerStderr::Discard);
/// # let _ = quiet;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerStderr {
    /// To the error output of this process.
    #[default]
    Inherit,
    /// Nowhere.
    Discard,
}

impl ClientTarget {
    /// A server at a URL.
    ///
    /// ```
    /// use mcp_proxy_client::ClientTarget;
    ///
    /// assert_eq!(ClientTarget::url("http://localhost:3000/mcp").to_string(), "http://localhost:3000/mcp");
    /// ```
    pub fn url(url: impl Into<String>) -> ClientTarget {
        ClientTarget::Url(url.into())
    }

    /// A server that `program` starts.
    ///
    /// ```
    /// use mcp_proxy_client::ClientTarget;
    ///
    /// let target = ClientTarget::command("uvx", ["mcp-server-time"]).env("TZ", "UTC");
    /// assert_eq!(target.to_string(), "uvx mcp-server-time");
    /// ```
    pub fn command<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> ClientTarget {
        ClientTarget::Command {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            current_dir: None,
            stderr: ServerStderr::default(),
        }
    }

    /// Adds a variable to the environment of a command. A URL has none.
    ///
    /// ```
    /// use mcp_proxy_client::ClientTarget;
    ///
    /// let target = ClientTarget::from("my-server").env("TOKEN", "secret");
    /// assert!(!format!("{target:?}").contains("secret"));
    /// ```
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> ClientTarget {
        if let ClientTarget::Command { env, .. } = &mut self {
            env.push((name.into(), value.into()));
        }
        self
    }

    /// Starts a command in this folder.
    ///
    /// ```
    /// use mcp_proxy_client::ClientTarget;
    ///
    /// let target = ClientTarget::from("./server.py").current_dir("/srv/mcp");
    /// # let _ = target;
    /// ```
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> ClientTarget {
        if let ClientTarget::Command { current_dir, .. } = &mut self {
            *current_dir = Some(folder.into());
        }
        self
    }

    /// Says where the error output of a command goes.
    ///
    /// ```
    /// use mcp_proxy_client::{ClientTarget, ServerStderr};
    ///
    /// let target = ClientTarget::from("my-server").stderr(ServerStderr::Discard);
    /// # let _ = target;
    /// ```
    pub fn stderr(mut self, to: ServerStderr) -> ClientTarget {
        if let ClientTarget::Command { stderr, .. } = &mut self {
            *stderr = to;
        }
        self
    }
}

impl From<&str> for ClientTarget {
    fn from(text: &str) -> ClientTarget {
        let text = text.trim();
        let is_url = ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if is_url {
            return ClientTarget::url(text);
        }
        // Quotes that do not close are part of the name, which then cannot be started.
        let mut words = shlex::split(text)
            .unwrap_or_else(|| vec![text.to_owned()])
            .into_iter();
        ClientTarget::command(words.next().unwrap_or_default(), words)
    }
}

impl From<String> for ClientTarget {
    fn from(text: String) -> ClientTarget {
        ClientTarget::from(text.as_str())
    }
}

impl From<&String> for ClientTarget {
    fn from(text: &String) -> ClientTarget {
        ClientTarget::from(text.as_str())
    }
}

/// `url` without its user, password, query and fragment, which may be secrets.
pub(crate) fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// As `Display`, with the names of the variables but not their values.
impl fmt::Debug for ClientTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientTarget::Url(url) => f.debug_tuple("Url").field(&without_secrets(url)).finish(),
            ClientTarget::Command {
                program,
                args,
                env,
                current_dir,
                stderr,
            } => {
                let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
                f.debug_struct("Command")
                    .field("program", program)
                    .field("args", args)
                    .field("env", &names)
                    .field("current_dir", current_dir)
                    .field("stderr", stderr)
                    .finish()
            }
        }
    }
}

/// The URL without its user and query, or the command line without its variables: these may be secrets.
impl fmt::Display for ClientTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientTarget::Url(url) => f.write_str(&without_secrets(url)),
            ClientTarget::Command { program, args, .. } => {
                f.write_str(program)?;
                args.iter()
                    .try_for_each(|argument| write!(f, " {argument}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let url = ClientTarget::from("https://me:secret@example.com:8443/mcp?key=secret#secret");
        assert_eq!(url.to_string(), "https://example.com:8443/mcp");
        let command = ClientTarget::from("server --fast").env("TOKEN", "secret");
        assert_eq!(command.to_string(), "server --fast");
        for target in [url, command] {
            let shown = format!("{target:?}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
}
