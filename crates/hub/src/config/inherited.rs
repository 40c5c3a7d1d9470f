//! Which variables of the hub's own environment a server's process gets.

use super::error::ConfigError;
use super::node::Node;
use super::secret::SecretCollector;

/// What a process gets besides the variables that are configured for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InheritedEnv {
    /// All of it, as a program has that is started from a shell.
    #[default]
    All,
    /// Only what every program needs.
    Minimal,
    /// What every program needs, and the variables with these names.
    Named(Vec<String>),
}

/// `inherit-env`: true, false, or a list of names.
pub(super) fn read_inherited_env(node: &Node<'_>) -> Result<InheritedEnv, ConfigError> {
    if node.is_list() {
        return Ok(InheritedEnv::Named(node.texts()?));
    }
    match node.boolean() {
        Ok(true) => Ok(InheritedEnv::All),
        Ok(false) => Ok(InheritedEnv::Minimal),
        Err(_) => Err(node.wrong_type("true, false or a list of names")),
    }
}

/// The values of an environment that are credentials by their names, to be masked wherever they appear: a server that inherits
/// them may print them. The longest come first.
pub fn inherited_secrets(environment: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut secrets = SecretCollector::default();
    for (name, value) in environment {
        if names_a_secret(&name) && may_be_a_secret(&value) {
            secrets.add(&value);
        }
    }
    secrets.into_secrets()
}

/// Whether a word of the name says so. `GOPATH` has `PAT` in it and is none.
fn names_a_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PASS",
        "PWD",
        "KEY",
        "KEYS",
        "APIKEY",
        "AUTH",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "DSN",
    ];
    let name = name.to_ascii_uppercase();
    // The shell's own, which are folders.
    let is_folder = name == "PWD" || name == "OLDPWD";
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    !is_folder && (name == "DATABASE_URL" || words.any(|word| WORDS.contains(&word)))
}

/// Paths and short words would hide ordinary text everywhere.
fn may_be_a_secret(value: &str) -> bool {
    const SHORTEST: usize = 8;
    value.len() >= SHORTEST && !value.starts_with(['/', '~', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_the_words_of_their_names() {
        let environment = [
            ("GITHUB_TOKEN", "ghp_0123456789"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
            ("MY_PAT", "0123456789abc"),
            ("GOPATH", "go/packages"),
            ("PATTERN", "everything"),
            ("KEYBOARD", "us-layout-1"),
            ("SSH_AUTH_SOCK", "/run/user/1000/agent"),
            ("PWD", "home-folder"),
            ("API_KEY", "short"),
            ("LANG", "en_US.UTF-8"),
        ];
        let pairs = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets = inherited_secrets(pairs);
        assert_eq!(
            secrets,
            ["ghp_0123456789", "0123456789abc", "wJalrXUtnFEMI"]
        );
    }
}
