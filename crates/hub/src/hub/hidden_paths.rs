//! What a client reads tells nothing about the machine that the hub runs on.

/// A text in which paths are cut down to their last part. Addresses in the web stay.
pub(super) fn without_paths(text: &str) -> String {
    let is_border = |c: char| c.is_whitespace() || "\"'`()<>[]{}=,;|".contains(c);
    let mut shortened = String::with_capacity(text.len());
    for word in text.split_inclusive(is_border) {
        let (word, border) = match word.char_indices().next_back() {
            Some((at, last)) if is_border(last) => word.split_at(at),
            _ => (word, ""),
        };
        match path_start(word) {
            Some(start) => {
                let (before, path) = word.split_at(start);
                shortened.push_str(before.strip_suffix("file:").unwrap_or(before));
                shortened.push_str(last_part(path));
            }
            None => shortened.push_str(word),
        }
        shortened.push_str(border);
    }
    shortened
}

/// Where a path begins in a word: at its start, or behind a colon as in `error:/a/path`.
fn path_start(word: &str) -> Option<usize> {
    let begins = |text: &str| {
        ["/", "./", "../", "~/", "\\\\"]
            .iter()
            .any(|start| text.starts_with(start))
    };
    let drive = |text: &str| {
        let mut letters = text.bytes();
        letters
            .next()
            .is_some_and(|letter| letter.is_ascii_alphabetic())
            && letters.next() == Some(b':')
            && matches!(letters.next(), Some(b'\\' | b'/'))
            && letters.next() != Some(b'/')
    };
    if begins(word) || drive(word) {
        return Some(0);
    }
    let colons = word.match_indices(':').map(|(at, _)| at);
    for at in colons {
        let behind = &word[at + 1..];
        // What is behind `https:` is an address; behind `file:` it is a path.
        if behind.starts_with("//") && !word[..at].ends_with("file") {
            return None;
        }
        if begins(behind) || drive(behind) {
            return Some(at + 1);
        }
    }
    None
}

fn last_part(path: &str) -> &str {
    let parts = path.trim_end_matches(['/', '\\']);
    parts.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::without_paths;

    #[test]
    fn paths_are_cut_down_to_their_last_part() {
        for (text, shown) in [
            ("cannot open /srv/bob/inner/x.py", "cannot open x.py"),
            ("at file:///srv/bob/inner/server.js:3:5", "at server.js:3:5"),
            ("Error:/srv/bob/x.py", "Error:x.py"),
            ("path=/srv/bob/k", "path=k"),
            ("open(/srv/bob/a/b.txt)", "open(b.txt)"),
            ("~/secret/x", "x"),
            (r"C:\Users\bob\x", "x"),
            ("C:/Users/bob/x", "x"),
            (r"\\host\share\x", "x"),
            ("./inner/dir/file", "file"),
            ("../inner/file", "file"),
            ("//srv/bob/q", "q"),
            ("src:/opt/in/ner.py:12", "src:ner.py:12"),
            ("/srv/bob/", "bob"),
        ] {
            assert_eq!(without_paths(text), shown, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_path_stays() {
        for text in [
            "https://example.com/mcp answered 404",
            "exit status 1 and/or worse",
            "@scope/package@1.2: not found",
            "1/2 at 12:30",
            "/",
            "",
        ] {
            assert_eq!(without_paths(text), text.trim_end_matches('/'), "{text}");
        }
    }
}
