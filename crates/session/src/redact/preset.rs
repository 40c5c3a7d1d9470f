//! The lists that `--redact-preset` stands for: shapes of well-known credentials, and names that credentials go by.

use regex::bytes::Regex;
use std::fmt;
use std::str::FromStr;

/// A list of rules with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedactionPreset {
    /// Values that look like credentials, whatever they are called.
    Tokens,
    /// Values of keys that are called like credentials, whatever they look like.
    Keys,
    /// Both.
    All,
    /// JSON Web Tokens and what is called an access token: what peers of a relay show to it. Not a word for the flag, because it
    /// is always on there and the others include it. It is looked for in bodies of any length while they pass.
    RelayTokens,
}

impl RedactionPreset {
    /// The words for the flag.
    pub const NAMES: [&'static str; 3] = ["tokens", "keys", "all"];

    pub(super) fn has_tokens(&self) -> bool {
        matches!(self, RedactionPreset::Tokens | RedactionPreset::All)
    }

    pub(super) fn has_keys(&self) -> bool {
        matches!(self, RedactionPreset::Keys | RedactionPreset::All)
    }
}

impl FromStr for RedactionPreset {
    type Err = String;

    fn from_str(text: &str) -> Result<RedactionPreset, String> {
        match text {
            "tokens" => Ok(RedactionPreset::Tokens),
            "keys" => Ok(RedactionPreset::Keys),
            "all" => Ok(RedactionPreset::All),
            other => Err(format!("{other} is not a preset: use tokens, keys or all")),
        }
    }
}

impl fmt::Display for RedactionPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RedactionPreset::Tokens => "tokens",
            RedactionPreset::Keys => "keys",
            RedactionPreset::All => "all",
            RedactionPreset::RelayTokens => "relay-tokens",
        })
    }
}

/// JSON Web Tokens. They begin with an object in base64, whatever white space follows its brace. What stands before them may be
/// a letter: that of an escaped line break, or the last one of `%3D`. What follows may be another part, or another token.
pub(super) const JWT: &str = r"(?-u)e(?:yJ|(?:yA|wo|wk|w0)[giJKN])[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*";

/// Shapes of credentials. Where there is a group, only what it holds is hidden.
///
/// Each begins with letters that hardly occur otherwise, and asks for a length that words of prose do not have. They are about
/// bytes (`-u`): tables of all the world's letters would make them a hundred times slower.
pub(super) const TOKENS: &[&str] = &[
    // Authorization schemes. "bearer authentication" is prose; twenty letters and more are not.
    r"(?i-u)\b(?:bearer|basic|digest|dpop)\s+([a-z0-9._~+/-]{20,}=*)",
    // Shorter ones: with a digit a word is not prose, and behind the header's name none is.
    r"(?i-u)\bbearer\s+((?:[0-9][\w.~+/-]{5}|[\w.~+/-][0-9][\w.~+/-]{4}|[\w.~+/-]{2}[0-9][\w.~+/-]{3}|[\w.~+/-]{3}[0-9][\w.~+/-]{2}|[\w.~+/-]{4}[0-9][\w.~+/-]|[\w.~+/-]{5,}[0-9])[\w.~+/-]*=*)",
    r#"(?i-u)\bauthorization\\*["']?\s*[:=,]\s*(?:[bfru]{1,2}["'])?\\*["']?(?:bearer|basic|dpop|token|negotiate)\s+([^\s"'\\,;\[<${%][^\s"'\\,;]*)"#,
    // Schemes with parameters: the line.
    r#"(?i-u)\bauthorization\\*["']?\s*[:=,]\s*\\*["']?(?:aws4-hmac-sha256|signature)\s+([^"'\\\[\r\n][^"'\\\r\n]*)"#,
    r#"(?i-u)\bauthorization\\*["']?\s*[:=,]\s*\\*["']?(?:digest|hawk|oauth)\s+([^\[\r\n][^\r\n]*)"#,
    // Cookies, as they stand in a head.
    r#"(?i-u)\bcookie:[ \t]*([^\s=;,"'\\]+=[^\r\n"'\\]+)"#,
    JWT,
    // Amazon.
    r"(?-u)\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    // GitHub and GitLab.
    r"(?-u)\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,})",
    // OpenAI, Anthropic and those who took over their form; Stripe.
    r"(?-u)\b(?:sk-[A-Za-z0-9_-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})",
    // Slack.
    r"(?-u)\b(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})",
    r"(?-u)https://hooks\.slack\.com/services/([A-Za-z0-9/]{20,})",
    // Google, npm, Hugging Face.
    r"(?-u)\b(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,})",
    // Private keys, also those that are cut off.
    r"(?-u)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.)*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    // The password in a URL.
    r"(?-u)\b[a-z][a-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@",
];

/// The shortest credential that one of them finds is longer than this.
pub(super) const SHORT: usize = 7;

/// Finds one of these, whichever.
pub(super) fn any_pattern(patterns: &[&str]) -> Result<Regex, regex::Error> {
    let all: Vec<String> = patterns
        .iter()
        .map(|pattern| format!("(?:{pattern})"))
        .collect();
    Regex::new(&all.join("|"))
}

/// Names that a preset knows.
#[derive(Debug, Default)]
pub(super) struct PresetKeys {
    /// Those of credentials.
    pub(super) secret: &'static [&'static str],
    /// Those that only look like it.
    pub(super) harmless: &'static [&'static str],
}

/// What the preset `keys` stands for.
pub(super) const PRESET_KEYS: PresetKeys = PresetKeys {
    secret: KEYS,
    harmless: HARMLESS,
};

/// The names of the preset for relays.
pub(super) const RELAY_KEYS: PresetKeys = PresetKeys {
    secret: &["access_token"],
    harmless: &[],
};

/// Names of credentials. The word that makes it one is the last, a number aside: `password_length` is not a password. `*` is any
/// letters, `_` is `_`, `-`, a space, a dot or nothing, so that `api_key` is also `apiKey` and `Api-Key`, and `-` is the same but
/// not nothing.
const KEYS: &[&str] = &[
    "*password",
    "*passwords",
    "*password_hash",
    "*password_digest",
    "*password_confirm",
    "*password_confirmation",
    "*passwd",
    "*pass_phrase",
    "*pass",
    "*pwd",
    "*secret",
    "*secrets",
    "*secret_value",
    "secret_string",
    "*token",
    "*access_tokens",
    "*auth_tokens",
    "*refresh_tokens",
    "*session_tokens",
    "*api_tokens",
    "*api_key",
    "*api_keys",
    "*access_key",
    "*access_keys",
    "*account_key",
    "*auth_key",
    "*encryption_key",
    "*private_key",
    "*private_keys",
    "*secret_key",
    "*secret_keys",
    "*shared_key",
    "*signing_key",
    "authorization",
    "proxy_authorization",
    "cookie",
    "set_cookie",
    "credential",
    "credentials",
    "otp",
    "pin_code",
];

/// What the names above would match and must not: questions, and words of MCP, of paging, of language models and of compilers.
const HARMLESS: &[&str] = &[
    "has-*",
    "has_password",
    "has_secret",
    "has_token",
    "has_api_key",
    "is-*",
    "is_password",
    "is_secret",
    "is_token",
    "*progress_token",
    "*page_token",
    "*next_token",
    "*continuation_token",
    "*sync_token",
    "*cancellation_token",
    "*per_token",
    "*first_token",
    "*last_token",
    "*stop_token",
    "*special_token",
    "bos_token",
    "eos_token",
    "*pad_token",
    "*mask_token",
    "unexpected_token",
    "oldpwd",
    "*by_pass",
    "*com_pass",
    "*over_pass",
    "*sur_pass",
    "*tres_pass",
    "*under_pass",
    "*band_pass",
    "*high_pass",
    "*low_pass",
    "*first_pass",
    "*second_pass",
];
