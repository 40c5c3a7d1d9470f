//! Masking of credentials in everything that is not a message body.
//!
//! The rule: `Authorization`, cookies, `--header` and `--env` values never reach a record; bodies are recorded as they
//! are. Masked values read `[masked]`, so that a reader sees that something was there. `Mcp-Session-Id` stays, because without
//! it an HTTP session cannot be followed.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

/// What stands where a secret stood.
pub const REDACTED_CREDENTIAL: &str = "[masked]";

/// Secrets shorter than this are only masked where they are the whole value: replacing every `1` would hide the record, not the secret.
const SHORTEST_INSIDE: usize = 4;
/// Secrets shorter than this are only masked where they are a word of their own, and not inside a longer one.
const SHORTEST_ANYWHERE: usize = 6;

/// Flags whose values are what redaction hides: not even a record that keeps secrets tells them.
const ALWAYS_REDACTED_FLAGS: [&str; 2] = ["--redact-value", "--fill"];

/// What to mask. Clones share their secrets: one that is added later is masked by all of them.
#[derive(Debug, Clone, Default)]
pub struct CredentialRedaction {
    keep: bool,
    secrets: Arc<RwLock<Vec<String>>>,
}

impl CredentialRedaction {
    /// Masks that hide the given values besides the credentials known by their place.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> CredentialRedaction {
        let masks = CredentialRedaction::default();
        masks.add(secrets);
        masks
    }

    /// Hides these values too, here and in all clones. Those that are known stay hidden.
    pub fn add(&self, secrets: impl IntoIterator<Item = String>) {
        if self.keep {
            return;
        }
        let mut known = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(secrets.into_iter().filter(|secret| !secret.is_empty()));
        // The longest first, so that no part of a longer secret is left over.
        known.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        known.dedup();
    }

    /// No masking at all: `--keep-secrets`.
    pub fn none() -> CredentialRedaction {
        CredentialRedaction {
            keep: true,
            ..CredentialRedaction::default()
        }
    }

    /// What the record shows instead of a header's value, or `None` to show it as it is. `name` is in lower case.
    pub(crate) fn header(&self, name: &str, value: &[u8]) -> Option<Cow<'static, str>> {
        if self.keep {
            return None;
        }
        match name {
            // The commonest names first: they never hold credentials, so the search below is left out.
            "content-type"
            | "content-length"
            | "accept"
            | "host"
            | "user-agent"
            | "date"
            | "mcp-session-id"
            | "mcp-protocol-version"
            | "mcp-method"
            | "mcp-name"
            | "connection"
            | "accept-encoding"
            | "cache-control"
            | "accept-language" => {}
            "authorization" | "proxy-authorization" => return Some(masked_credentials(value)),
            "cookie" | "set-cookie" => return Some(Cow::Borrowed(REDACTED_CREDENTIAL)),
            "location" | "content-location" | "referer" | "origin" => {
                return match self.url(&String::from_utf8_lossy(value)) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(masked) => Some(Cow::Owned(masked)),
                };
            }
            other
                if names_a_secret(
                    other,
                    &[
                        "token",
                        "secret",
                        "password",
                        "api-key",
                        "apikey",
                        "credential",
                    ],
                ) =>
            {
                return Some(Cow::Borrowed(REDACTED_CREDENTIAL));
            }
            _ => {}
        }
        match self.text(value) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(Cow::Owned(String::from_utf8_lossy(&masked).into_owned())),
        }
    }

    /// Masks every known secret in free text: a stderr line, a reason.
    pub(crate) fn text<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut masked = Cow::Borrowed(text);
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets.iter().map(String::as_bytes) {
            if *masked == *secret {
                return Cow::Owned(REDACTED_CREDENTIAL.as_bytes().to_vec());
            }
            if secret.len() >= SHORTEST_INSIDE && memchr::memmem::find(&masked, secret).is_some() {
                masked = Cow::Owned(replace(&masked, secret));
            }
        }
        masked
    }

    /// Masks every known secret in a text that people read, unless secrets are kept.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.string(text)
    }

    /// The same for a string.
    pub(crate) fn string<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.text(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }

    /// Masks user and password and query parameters that are named like secrets, in a URL or a request target.
    pub fn url<'a>(&self, url: &'a str) -> Cow<'a, str> {
        if self.keep {
            return Cow::Borrowed(url);
        }
        let mut masked = self.string(url);
        if let Some((start, end)) = user_info(&masked) {
            masked
                .to_mut()
                .replace_range(start..end, REDACTED_CREDENTIAL);
        }
        if let Some(query) = masked.find('?')
            && let Some(replaced) = masked_query(&masked[query + 1..])
        {
            masked.to_mut().replace_range(query + 1.., &replaced);
        }
        masked
    }

    /// Masks a command line: values of `--header` and `--env`, of flags named like secrets, URLs, and every known secret.
    pub fn argv(&self, argv: &[String]) -> Vec<String> {
        self.words(argv, CredentialRedaction::command)
    }

    /// The same; `spaced` masks a word with spaces in it.
    fn words(
        &self,
        argv: &[String],
        spaced: fn(&CredentialRedaction, &str) -> String,
    ) -> Vec<String> {
        let mut before = "";
        argv.iter()
            .map(|word| {
                let flag_before = std::mem::replace(&mut before, word);
                let flag = word.split('=').next().unwrap_or(word);
                if ALWAYS_REDACTED_FLAGS.contains(&flag) && flag.len() < word.len() {
                    return format!("{flag}={REDACTED_CREDENTIAL}");
                }
                if ALWAYS_REDACTED_FLAGS.contains(&flag_before) {
                    return REDACTED_CREDENTIAL.to_owned();
                }
                if self.keep {
                    return word.clone();
                }
                if hides_its_value(flag) && flag.len() < word.len() {
                    return format!("{flag}={}", masked_value(&word[flag.len() + 1..]));
                }
                let is_value = !word.starts_with('-');
                let hidden =
                    hides_its_value(flag_before) || (is_pair_flag(flag_before) && is_pair(word));
                if is_value && hidden {
                    masked_value(word)
                } else if word.contains(' ') {
                    // A whole command in one word, as `--target-command` takes it.
                    spaced(self, word)
                } else {
                    self.word(word)
                }
            })
            .collect()
    }

    /// [`CredentialRedaction::argv`] for a command in one string. Quotes around its words stay.
    pub fn command(&self, command: &str) -> String {
        let words = shell_words(command);
        let bare: Vec<String> = words.iter().map(|word| unquoted(word).to_owned()).collect();
        let shown: Vec<String> = words
            .iter()
            .zip(self.words(&bare, CredentialRedaction::command_in_command))
            .map(|(word, shown)| match word.len() > unquoted(word).len() {
                true => format!("{}{shown}{}", &word[..1], &word[..1]),
                false => shown,
            })
            .collect();
        self.string(&shown.join(" ")).into_owned()
    }

    /// The same for one of its words, `sh -c "run --token x"`, as if it had no quotes: this goes no deeper.
    fn command_in_command(&self, command: &str) -> String {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        self.words(&words, |masks, word| masks.word(word)).join(" ")
    }

    fn word(&self, word: &str) -> String {
        if word.contains("://") {
            self.url(word).into_owned()
        } else {
            self.string(word).into_owned()
        }
    }
}

/// A command's words with their quotes. If a quote is open at its end, the quotes are none: it is cut at each space.
fn shell_words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut open = None;
    let mut escaped = false;
    let mut start = 0;
    for (at, byte) in command.bytes().enumerate() {
        match (open, byte) {
            _ if escaped => escaped = false,
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b' ') => {
                words.push(&command[start..at]);
                start = at + 1;
            }
            (None, b'"' | b'\'') => open = Some(byte),
            (Some(quote), byte) if byte == quote => open = None,
            _ => {}
        }
    }
    words.push(&command[start..]);
    match open {
        None => words,
        Some(_) => command.split(' ').collect(),
    }
}

/// A word without the quotes around it.
fn unquoted(word: &str) -> &str {
    let inside = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(word)
}

/// `Bearer [masked]`: the scheme is not a secret and explains a 401.
fn masked_credentials(value: &[u8]) -> Cow<'static, str> {
    for scheme in ["Bearer", "Basic", "Digest", "DPoP", "Negotiate"] {
        if let Some((word, rest)) = value.split_at_checked(scheme.len())
            && word.eq_ignore_ascii_case(scheme.as_bytes())
            && rest.first() == Some(&b' ')
        {
            return Cow::Owned(format!("{scheme} {REDACTED_CREDENTIAL}"));
        }
    }
    Cow::Borrowed(REDACTED_CREDENTIAL)
}

/// `NAME=[masked]`, `Name: [masked]`, or all of it.
fn masked_value(value: &str) -> String {
    match value.find(['=', ':']) {
        Some(at) if value[at..].starts_with(':') => {
            format!("{}: {REDACTED_CREDENTIAL}", &value[..at])
        }
        Some(at) => format!("{}={REDACTED_CREDENTIAL}", &value[..at]),
        None => REDACTED_CREDENTIAL.to_owned(),
    }
}

/// Flags that carry `NAME=value` or `Name: value` in some programs (`docker run -e`, `curl -H`) and something else in others (`node -e`).
fn is_pair_flag(flag: &str) -> bool {
    matches!(flag, "-e" | "-H")
}

fn is_pair(word: &str) -> bool {
    let name = word.find(['=', ':']).map(|at| &word[..at]);
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    })
}

fn hides_its_value(flag: &str) -> bool {
    if !flag.starts_with('-') {
        return false;
    }
    matches!(flag, "--header" | "--env")
        || names_a_secret(&flag.to_ascii_lowercase(), &["token", "secret", "password", "api-key", "apikey", "credential"])
            // A file that holds a token is a path, and worth seeing.
            && !flag.ends_with("-file")
}

fn names_a_secret(name: &str, words: &[&str]) -> bool {
    // Names are short: setting up a real substring search would cost more than this.
    words.iter().any(|word| {
        name.as_bytes()
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    })
}

/// Where `user:password` stands in `scheme://user:password@host`.
fn user_info(url: &str) -> Option<(usize, usize)> {
    let start = url.find("://")? + 3;
    let authority = url[start..].split(['/', '?', '#']).next()?;
    Some((start, start + authority.rfind('@')?))
}

fn masked_query(query: &str) -> Option<String> {
    let mut changed = false;
    let masked: Vec<Cow<'_, str>> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value))
                if !value.is_empty()
                    && names_a_secret(
                        &name.to_ascii_lowercase(),
                        &[
                            "token",
                            "key",
                            "secret",
                            "passw",
                            "pwd",
                            "auth",
                            "signature",
                            "credential",
                        ],
                    ) =>
            {
                changed = true;
                Cow::Owned(format!("{name}={REDACTED_CREDENTIAL}"))
            }
            _ => Cow::Borrowed(pair),
        })
        .collect();
    changed.then(|| masked.join("&"))
}

fn replace(text: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, secret) {
        if secret.len() < SHORTEST_ANYWHERE && !is_word(text, at, at + secret.len()) {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(REDACTED_CREDENTIAL.as_bytes());
        from = at + secret.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// Whether no letter or digit stands next to this part of a text.
fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    !is_part(before) && !is_part(text.get(end))
}
