//! Cuts texts and identifiers into lower-case words.

/// Longer words are cut: they are data, not language.
const MAX_WORD_BYTES: usize = 40;
/// A name such as `GitHub` is also one word up to this length.
const MAX_JOINED_BYTES: usize = 14;

/// Calls `visit` for each word of a text, in order and in lower case.
///
/// Identifiers are split where their style says so: `list_pull-requests`, `listPullRequests`, `HTTPServer2`. A name of two
/// parts, such as `GitHub`, is visited as a whole too, after its parts. So is a short one with digits, such as `s3` or `k8s`,
/// without its parts of one character.
pub(crate) fn for_each_word(text: &str, mut visit: impl FnMut(&str)) {
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’') {
        let run = run.trim_matches(['\'', '’']);
        if !run.is_empty() {
            split_run(run, &mut visit);
        }
    }
}

/// The words of a text.
pub(crate) fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words
}

/// The letters and digits of a text in lower case: `List-Issues` and `list issues` become the same.
pub(crate) fn squeeze(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// The longest beginning of a text that has at most this many bytes and ends between two characters.
pub(crate) fn cut(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A run of letters, digits and apostrophes.
fn split_run(run: &str, visit: &mut impl FnMut(&str)) {
    // `colleague's` is about a colleague; `don't` has no better form than its first part.
    let run = match run.find(['\'', '’']) {
        Some(apostrophe) => &run[..apostrophe],
        None => run,
    };
    let lower = run.to_lowercase();
    if run.bytes().all(|b| b.is_ascii_lowercase()) {
        return visit(cut(&lower, MAX_WORD_BYTES));
    }
    let parts = parts_of(run);
    let has_digits = run.bytes().any(|b| b.is_ascii_digit());
    let short_mix = has_digits && lower.len() <= 4 && parts.len() > 1;
    for part in &parts {
        if part.chars().all(is_ideograph) {
            pairs_of(part, visit);
            continue;
        }
        let word = part.to_lowercase();
        if !(short_mix && word.len() == 1) {
            visit(cut(&word, MAX_WORD_BYTES));
        }
    }
    if parts.len() > 1
        && (short_mix
            || parts.len() == 2 && !has_digits && run.is_ascii() && lower.len() <= MAX_JOINED_BYTES)
    {
        visit(&lower);
    }
}

/// Scripts without spaces: each pair of neighbours is a word, and a character that stands alone.
fn pairs_of(run: &str, visit: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    if starts.len() == 1 {
        return visit(run);
    }
    for (place, start) in starts[..starts.len() - 1].iter().enumerate() {
        let end = starts.get(place + 2).copied().unwrap_or(run.len());
        visit(&run[*start..end]);
    }
}

/// The parts of an identifier without separators.
fn parts_of(run: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for i in 1..chars.len() {
        if is_boundary(&chars, i) {
            parts.push(&run[start..chars[i].0]);
            start = chars[i].0;
        }
    }
    parts.push(&run[start..]);
    parts
}

/// Whether a part begins at the character with this index, which is not the first.
fn is_boundary(chars: &[(usize, char)], i: usize) -> bool {
    let (before, here) = (chars[i - 1].1, chars[i].1);
    if is_ideograph(before) || is_ideograph(here) {
        return !(is_ideograph(before) && is_ideograph(here));
    }
    if before.is_numeric() != here.is_numeric() {
        return true;
    }
    if !here.is_uppercase() {
        return false;
    }
    if before.is_lowercase() {
        return true;
    }
    // The last capital of an acronym begins the next word, except in plurals such as `URLs`.
    let next = chars.get(i + 1).map(|next| next.1);
    let plural = next == Some('s') && chars.get(i + 2).is_none_or(|after| !after.1.is_lowercase());
    next.is_some_and(char::is_lowercase) && !plural
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::{cut, squeeze, words_of};

    #[test]
    fn identifiers_are_split_by_their_style() {
        for (text, words) in [
            ("list_pull-requests", "list pull requests"),
            ("listPullRequests", "list pull requests"),
            ("HTTPServer2", "http server 2"),
            ("get file", "get file"),
            ("GitHub", "git hub github"),
            ("URLs of PRs", "urls of prs"),
            ("s3 k8s", "s3 k8s"),
            ("base64", "base 64"),
            ("a colleague's", "a colleague"),
            ("地図", "地図"),
            ("東京駅mapを", "東京 京駅 map を"),
        ] {
            assert_eq!(words_of(text).join(" "), words, "{text}");
        }
    }

    #[test]
    fn squeezing_leaves_letters_and_digits() {
        assert_eq!(squeeze("List-Issues_2!"), "listissues2");
    }

    #[test]
    fn a_cut_keeps_characters_whole() {
        assert_eq!(cut("größe", 3), "gr");
        assert_eq!(cut("size", 10), "size");
    }
}
