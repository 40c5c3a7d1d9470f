//! Which variables of the hub's own environment a server's process gets.

use serde::Deserialize;

use super::roots::percent_decode;
use super::secret::SecretCollector;

/// Shorter values would hide ordinary text everywhere.
const SHORTEST: usize = 8;

/// What a process gets besides the variables that are configured for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "InheritedEnvForm")]
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
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected true, false or a list of names")]
enum InheritedEnvForm {
    Switch(bool),
    Names(Vec<String>),
}

impl From<InheritedEnvForm> for InheritedEnv {
    fn from(form: InheritedEnvForm) -> InheritedEnv {
        match form {
            InheritedEnvForm::Switch(true) => InheritedEnv::All,
            InheritedEnvForm::Switch(false) => InheritedEnv::Minimal,
            InheritedEnvForm::Names(names) => InheritedEnv::Named(names),
        }
    }
}

/// The values of an environment that are credentials by their names, and the passwords in its URLs, to be masked wherever they
/// appear: a server that inherits them may print them. The longest come first. `exists` says whether there is such a path, which
/// is not a secret.
pub fn inherited_secrets(
    environment: impl IntoIterator<Item = (String, String)>,
    exists: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut secrets = SecretCollector::default();
    for (name, value) in environment {
        let is_path = || {
            // Keys in base64 may begin with a slash.
            let is_relative = ["~/", "./", "../"].iter().any(|it| value.starts_with(it));
            is_relative || (value.starts_with('/') && exists(&value))
        };
        if names_a_secret(&name) && value.len() >= SHORTEST && !is_path() {
            secrets.add(&value);
        }
        add_password(&mut secrets, &value);
    }
    secrets.into_secrets()
}

/// Adds the password of `scheme://user:password@host`, also together with the user: a short one is masked only there.
fn add_password(secrets: &mut SecretCollector, url: &str) {
    let behind = url.split_once("://").map(|(_, behind)| behind);
    let authority = behind.and_then(|behind| behind.split(['/', '?', '#']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    let Some((user, _)) = user else {
        return;
    };
    let Some((name, password)) = user.split_once(':').filter(|it| !it.1.is_empty()) else {
        return;
    };
    secrets.add(user);
    // `postgres:postgres` would hide a word that everybody uses.
    if password.len() >= SHORTEST && password != name {
        secrets.add(password);
        secrets.add(&percent_decode(password));
    }
}

/// Whether a word of the name says so, or ends so: `githubToken`. `GOPATH` has `PAT` in it and is none.
pub(super) fn names_a_secret(name: &str) -> bool {
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
        "AUTH",
        "AUTHORIZATION",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "DSN",
    ];
    let name = name.to_ascii_uppercase();
    // The shell's own, which are folders.
    let is_folder = name == "PWD" || name == "OLDPWD";
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_secret = |word: &str| WORDS.iter().any(|secret| word.ends_with(secret));
    !is_folder && (name == "DATABASE_URL" || words.any(is_secret))
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
        assert_eq!(
            secrets_of(&environment),
            ["ghp_0123456789", "0123456789abc", "wJalrXUtnFEMI"]
        );
    }

    #[test]
    fn a_secret_that_looks_like_a_path_and_the_password_of_a_url_are_secrets() {
        let environment = [
            ("AWS_SECRET_ACCESS_KEY", "/bPxRfiCYEXAMPLEKEY/"),
            ("SSH_AUTH_SOCK", "/run/user/1000/agent"),
            ("MY_KEY", "~/.ssh/id_ed25519"),
            ("OTHER_PASSWORD", "~.punctuation"),
            ("HTTPS_PROXY", "http://ada:love%20lace@proxy:8080/a@b"),
            ("REDIS_URL", "redis://:hunter2@localhost/0"),
            ("DB", "postgres://postgres:postgres@localhost"),
            ("HOME_PAGE", "https://example.com/ada:lovelace@x"),
        ];
        let expected = [
            "/bPxRfiCYEXAMPLEKEY/",
            "postgres:postgres",
            "ada:love%20lace",
            "~.punctuation",
            "love%20lace",
            "love lace",
            ":hunter2",
        ];
        assert_eq!(secrets_of(&environment), expected);
    }

    fn secrets_of(environment: &[(&str, &str)]) -> Vec<String> {
        let pairs = environment.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        inherited_secrets(pairs, |path| path == "/run/user/1000/agent")
    }
}
