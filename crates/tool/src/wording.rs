//! Words of others in our texts, and what a misspelt one was probably meant to be.

/// The most characters of a summary.
const MAX_SUMMARY: usize = 160;

/// The one of `words` that `given` was meant to be: the same but for case and separators, one that `synonyms` leads to,
/// or one that is at most two typing errors away.
pub fn suggest(
    given: &str,
    words: &[&'static str],
    synonyms: &[(&str, &'static str)],
) -> Option<&'static str> {
    // Nothing longer can be close to a word of ours, and the distance takes quadratic time.
    if given.len() > 32 {
        return None;
    }
    let lowercase = given.trim().to_lowercase();
    if let Some((_, word)) = synonyms.iter().find(|(synonym, _)| *synonym == lowercase) {
        return Some(word);
    }
    let given = without_separators(&lowercase);
    words
        .iter()
        .map(|word| {
            let plain = without_separators(&word.to_lowercase());
            (strsim::osa_distance(&given, &plain), *word)
        })
        .filter(|(distance, word)| *distance <= (word.len() / 2).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

fn without_separators(word: &str) -> String {
    word.replace(['_', '-'], "")
}

/// `1 tool`, `2 tools`
pub fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}

/// `'a', 'b' or 'c'`
pub fn enumerate<'a>(words: impl Iterator<Item = &'a str>, conjunction: &str) -> String {
    let mut words: Vec<String> = words.map(|word| format!("'{}'", shorten(word))).collect();
    let Some(last) = words.pop() else {
        return String::new();
    };
    if words.is_empty() {
        return last;
    }
    format!("{} {conjunction} {last}", words.join(", "))
}

/// A name that came from outside, on one line and no longer than an error should be.
pub fn shorten(name: &str) -> String {
    const LONGEST: usize = 120;
    let mut shown: String = name
        .chars()
        .take(LONGEST)
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    if name.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// The first sentence of `text` on one line, cut after 160 characters.
pub fn first_sentence(text: &str) -> String {
    // Some servers send manuals. White space counts too, but nobody begins with this much of it.
    let beginning = match text.char_indices().nth(8 * MAX_SUMMARY) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    let mut sentence = String::new();
    let mut lines = beginning.trim_start().lines().map(str::trim);
    // A blank line ends a sentence, a line break alone does not.
    for word in lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .flat_map(str::split_whitespace)
    {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if ends_sentence(word) {
            break;
        }
    }
    cut(sentence, MAX_SUMMARY)
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '\'', ')', '`', '*']);
    let abbreviation = ["e.g.", "i.e.", "etc.", "vs.", "cf."]
        .iter()
        .any(|abbreviation| {
            word.trim_start_matches('(')
                .eq_ignore_ascii_case(abbreviation)
        });
    word.ends_with(['.', '!', '?', '。']) && !abbreviation
}

/// `text` with at most this many characters, the last one `…` if there were more.
pub fn cut(mut text: String, most: usize) -> String {
    if text.chars().nth(most).is_some() {
        let end = text
            .char_indices()
            .nth(most.saturating_sub(1))
            .map_or(0, |(end, _)| end);
        text.truncate(end);
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_sentence_on_one_line() {
        let cases = [
            ("Add two numbers", "Add two numbers"),
            ("  Reads a file.  Paths are relative.", "Reads a file."),
            (
                "Reads\n  a file (e.g. a.txt). More.",
                "Reads a file (e.g. a.txt).",
            ),
            ("Lists v1.2 items! Really", "Lists v1.2 items!"),
            ("A title\n\nThe rest.", "A title"),
            ("\n\n# Heading\nText", "# Heading Text"),
            ("", ""),
            ("ファイルを読む。 続き", "ファイルを読む。"),
        ];
        for (text, expected) in cases {
            assert_eq!(first_sentence(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_sentence_is_cut() {
        let cut = first_sentence(&"é ".repeat(1000));
        assert_eq!(cut.chars().count(), MAX_SUMMARY);
        assert!(cut.ends_with("é…"));
        assert_eq!(first_sentence(&"é".repeat(160)), "é".repeat(160));
        assert_eq!(
            first_sentence(&"é".repeat(161)).chars().count(),
            MAX_SUMMARY
        );
    }
}
