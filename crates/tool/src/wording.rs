//! Words of others in our texts, and what a misspelt one was probably meant to be.

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
