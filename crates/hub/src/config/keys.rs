//! The keys at the top of a config file, and "did you mean" for all others.

/// Our own key, at the top of a file and in a server's entry.
pub(super) const OWN_KEY: &str = "mcp-proxy";

/// At the top of a file. `inputs` is VS Code's list of what to ask the user; a server that needs one is disabled with a reason.
pub(super) const FILE_KEYS: &[&str] = &["mcpServers", "servers", OWN_KEY, "inputs", "$schema"];

/// Words of other clients that no spelling leads from: what they are here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("executable", "command"),
    ("environment", "env"),
    ("envs", "env"),
    ("arguments", "args"),
    ("uri", "url"),
    ("endpoint", "url"),
    ("workingdirectory", "cwd"),
];

/// The word of `known` that was probably meant.
pub(super) fn closest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = plain(word);
    let mut meanings = OTHER_WORDS.iter().filter(|(other, _)| *other == plain);
    let meant = meanings.find_map(|(_, ours)| known.iter().find(|key| *key == ours));
    if let Some(key) = meant {
        return Some(key);
    }
    // Comparing takes the product of both lengths, and no key is this long.
    if plain.len() > 64 {
        return None;
    }
    let distance = |known: &&'static str| strsim::damerau_levenshtein(&plain, &self::plain(known));
    // Of two that differ only in spelling, the one that is spelt like the word.
    let spelling = |known: &&'static str| strsim::damerau_levenshtein(word, known);
    let best = (known.iter().copied()).min_by_key(|known| (distance(known), spelling(known)))?;
    (distance(&best) <= (plain.chars().count() / 3).max(1)).then_some(best)
}

/// A word without its spelling: `listLimit`, `list_limit` and `list-limit` are one.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|letter| !matches!(letter, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::closest;

    const HUB_KEYS: &[&str] = &["expose", "list-limit", "profiles", "page-size"];
    const ENTRY_KEYS: &[&str] = &["command", "args", "env", "url"];
    const SERVER_KEYS: &[&str] = &["call-timeout", "start", "scope"];

    #[test]
    fn spelling_and_typos_find_the_key() {
        for (word, meant) in [
            ("listLimit", Some("list-limit")),
            ("list_limit", Some("list-limit")),
            ("lsit-limit", Some("list-limit")),
            ("profile", Some("profiles")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(closest(word, HUB_KEYS), meant, "{word}");
        }
        assert_eq!(closest("callTimeout", SERVER_KEYS), Some("call-timeout"));
        assert_eq!(closest("cmd", ENTRY_KEYS), Some("command"));
        assert_eq!(closest("environment", ENTRY_KEYS), Some("env"));
        assert_eq!(closest("cmd", SERVER_KEYS), None);
        assert_eq!(closest(&"x".repeat(1_000_000), SERVER_KEYS), None);
    }
}
