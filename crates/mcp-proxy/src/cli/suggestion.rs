//! What somebody meant whose first word is neither a command nor a URL: a misspelt command, a server's command without `--`,
//! or an address without its scheme.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Words that are less alike are not meant for each other.
const ALIKE: f64 = 0.8;

/// What to say about `words`, the first of which is not understood. `None`: nothing is wrong with it.
pub fn for_words(words: &[&OsStr], commands: &[String]) -> Option<String> {
    let first = words.first()?.to_str()?;
    if first.starts_with('-') || first.contains("://") {
        return None;
    }
    let typed = shown(words);
    if let Some(url) = with_scheme(first) {
        return Some(format!("`{first}` has no scheme; use: mcp-proxy {url}"));
    }
    let as_command = format!("use: mcp-proxy -- {typed}");
    if is_program(first) {
        return Some(format!(
            "the server's command goes after `--`; {as_command}"
        ));
    }
    if let Some(meant) = alike(first, commands) {
        return Some(format!(
            "unknown command `{first}`; did you mean `{meant}`?"
        ));
    }
    Some(format!(
        "`{first}` is neither a command of mcp-proxy nor a URL; if it starts a server, {as_command}"
    ))
}

/// The command that a misspelt one is most like, if it is like any.
pub fn alike<'a>(given: &str, commands: &'a [String]) -> Option<&'a String> {
    let alike = |name: &&String| strsim::jaro_winkler(given, name) >= ALIKE;
    let close = |name: &&String| (strsim::jaro_winkler(given, name) * 1000.0) as u32;
    commands.iter().filter(alike).max_by_key(close)
}

/// What to say about words that are flags of ours and then a server's command, without `--` between them.
pub fn for_command_after_flags(words: &[&OsStr]) -> Option<String> {
    let is_command = |word: &&OsStr| {
        let word = word.to_str();
        word.is_some_and(|word| !word.starts_with('-') && is_program(word))
    };
    let start = words.iter().position(is_command)?;
    if words.contains(&OsStr::new("--")) {
        return None;
    }
    let (flags, server) = (shown(&words[..start]), shown(&words[start..]));
    Some(format!(
        "the server's command goes after `--`; use: mcp-proxy {flags} -- {server}"
    ))
}

/// The URL that an address without a scheme stands for: `localhost:3000/mcp`, `example.com/mcp`.
pub fn with_scheme(word: &str) -> Option<String> {
    let (authority, path) = word.split_once('/').unwrap_or((word, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (authority, None),
    };
    let is_name = |host: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.[]:".contains(&byte);
        host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[')
            && host.bytes().all(is_part)
    };
    let is_host = port.is_some() || host == "localhost" || (host.contains('.') && !path.is_empty());
    if !is_name(host) || !is_host || Path::new(word).exists() {
        return None;
    }
    let is_local = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    let scheme = match is_local || port.is_some_and(|port| port != 443) {
        true => "http",
        false => "https",
    };
    Some(format!("{scheme}://{word}"))
}

/// Whether the shell would run it.
pub fn is_program(word: &str) -> bool {
    let can_run = |path: &Path| {
        let facts = path.metadata();
        facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return can_run(Path::new(word));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| can_run(&folder.join(word)))
}

/// Words as they would be typed.
pub fn shown(words: &[&OsStr]) -> String {
    let words = words.iter().map(|word| word.to_string_lossy());
    let quoted = words.map(|word| match shlex::try_quote(&word) {
        Ok(quoted) => quoted.into_owned(),
        Err(_) => word.into_owned(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_known() {
        for (word, url) in [
            ("localhost:3000/mcp", "http://localhost:3000/mcp"),
            ("localhost/mcp", "http://localhost/mcp"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("[::1]:8080/x", "http://[::1]:8080/x"),
            ("10.0.0.7:3000/mcp", "http://10.0.0.7:3000/mcp"),
            ("example.com/mcp", "https://example.com/mcp"),
            ("example.com:443/mcp", "https://example.com:443/mcp"),
        ] {
            assert_eq!(with_scheme(word).as_deref(), Some(url), "{word}");
        }
        for word in [
            "npx",
            "server.py",
            "./server/run",
            "/bin/sh",
            "a:b",
            "attch",
        ] {
            assert_eq!(with_scheme(word), None, "{word}");
        }
    }
}
