//! Which of the proxy's own variables a server process gets.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

/// Which variables of the proxy's own environment a server process gets, besides those configured for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// All of them, as a program has that is started from a shell.
    #[default]
    Inherit,
    /// Only [`MINIMAL_VARIABLES`]: a server does not see the tokens that are meant for the proxy or for other servers.
    Minimal,
    /// [`MINIMAL_VARIABLES`] and the variables with these names.
    Named(Vec<OsString>),
}

/// What [`Environment::Minimal`] passes on: what the official SDKs give a server.
pub const MINIMAL_VARIABLES: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

impl Environment {
    /// Gives `command` its environment; a configured variable wins over an inherited one. The guard is started with
    /// it and passes it on to the server as it is, so secrets are not in the guard's environment either.
    pub(super) fn apply(&self, configured: &[(OsString, OsString)], command: &mut Command) {
        if *self != Environment::Inherit {
            let passed_on = std::env::vars_os().filter(|(name, _)| self.passes_on(name));
            command.env_clear().envs(passed_on);
        }
        command.envs(configured.iter().map(|(name, value)| (name, value)));
    }
}

impl Environment {
    fn passes_on(&self, name: &OsStr) -> bool {
        match self {
            Environment::Inherit => true,
            Environment::Minimal => is_minimal(name),
            Environment::Named(names) => {
                is_minimal(name) || names.iter().any(|listed| listed == name)
            }
        }
    }
}

fn is_minimal(name: &OsStr) -> bool {
    MINIMAL_VARIABLES.iter().any(|listed| name == *listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_minimal() {
        for name in ["PATH", "HOME", "LOGNAME", "USER"] {
            assert!(is_minimal(OsStr::new(name)), "{name}");
        }
        for name in [
            "",
            "path",
            "PATHS",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(!is_minimal(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn d4_named_variables_are_passed_on_with_the_minimal_ones() {
        let named = Environment::Named(vec!["HTTPS_PROXY".into()]);
        for name in ["PATH", "HTTPS_PROXY"] {
            assert!(named.passes_on(OsStr::new(name)), "{name}");
        }
        assert!(!named.passes_on(OsStr::new("GITHUB_TOKEN")));
    }

    #[test]
    fn a_configured_variable_wins() {
        let environment = |mode: Environment| {
            let mut command = Command::new("server");
            mode.apply(&[("PATH".into(), "/own".into())], &mut command);
            let set = command.as_std().get_envs();
            set.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        for mode in [Environment::Inherit, Environment::Minimal] {
            assert_eq!(environment(mode)[OsStr::new("PATH")], "/own");
        }
        // `Inherit` sets nothing else, and so leaves the rest as it is.
        assert_eq!(environment(Environment::Inherit).len(), 1);
        assert!(
            environment(Environment::Minimal)
                .keys()
                .all(|name| is_minimal(name))
        );
    }

    #[test]
    fn the_documented_list_is_this_one() {
        let page = include_str!("../../../../docs/transports.md");
        let documented = MINIMAL_VARIABLES.map(|name| format!("`{name}`")).join(", ");
        assert!(
            page.contains(&documented),
            "docs/transports.md: {documented}"
        );
    }
}
