//! URLs as browsers read them.

/// A URL as a browser understands it, as far as patterns can tell the difference: no white space around it, slashes that lean
/// forward, scheme and host in small letters, a path, and what `view-source:` shows.
pub(super) fn as_browsers_read(url: &str) -> String {
    let is_ignored = |character: char| character.is_ascii_control() || character == ' ';
    let url = url.trim_matches(is_ignored).replace('\\', "/");
    let url: String = url
        .chars()
        .filter(|character| !matches!(character, '\t' | '\n' | '\r'))
        .collect();
    let Some((scheme, rest)) = url.split_once(':') else {
        return url;
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "view-source" {
        return as_browsers_read(rest);
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return format!("{scheme}:{rest}");
    };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(host);
    let slash = if rest.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{}{slash}{rest}", host.to_ascii_lowercase())
}
