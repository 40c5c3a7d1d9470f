//! How far a mistyped word is from a known one.

/// Longer words are not compared.
const MAX_LENGTH: usize = 32;

/// The number of edits that a word of this length may be away from what was meant.
pub(crate) fn allowed_edits(length: usize) -> Option<usize> {
    match length {
        4..=7 => Some(1),
        8..=MAX_LENGTH => Some(2),
        _ => None,
    }
}

/// One bit for each letter that a word has. Each edit changes at most two of them.
pub(crate) fn letters_of(word: &str) -> u32 {
    let letters = word.bytes().map(|b| 1u32 << (b & 31));
    letters.fold(0, |all, letter| all | letter)
}

/// Whether words with these letters can be at most so many edits apart.
pub(crate) fn may_be_close(a: u32, b: u32, max_edits: usize) -> bool {
    (a ^ b).count_ones() as usize <= 2 * max_edits
}

/// The number of letters added, left out, replaced or swapped with their neighbour between two words, if it is at most `max`.
pub(crate) fn edit_distance(a: &str, b: &str, max: usize) -> Option<usize> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > max || a.len() > MAX_LENGTH || b.len() > MAX_LENGTH {
        return None;
    }
    let mut before = [0usize; MAX_LENGTH + 1];
    let mut last = [0usize; MAX_LENGTH + 1];
    let mut row = [0usize; MAX_LENGTH + 1];
    for (j, cell) in last.iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        row[0] = i;
        let mut least = i;
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
            least = least.min(best);
        }
        if least > max {
            return None;
        }
        before = last;
        last = row;
    }
    Some(last[b.len()]).filter(|distance| *distance <= max)
}

#[cfg(test)]
mod tests {
    use super::{allowed_edits, edit_distance};

    #[test]
    fn each_kind_of_slip_is_one_edit() {
        for typo in ["isue", "isssue", "issie", "isseu"] {
            assert_eq!(edit_distance(typo, "issue", 1), Some(1), "{typo}");
        }
        assert_eq!(edit_distance("issue", "issue", 0), Some(0));
        assert_eq!(edit_distance("iuess", "issue", 1), None);
        assert_eq!(edit_distance("repsitroy", "repository", 2), Some(2));
    }

    #[test]
    fn longer_words_may_have_more_slips() {
        let allowed = [3, 4, 7, 8, 32, 33].map(allowed_edits);
        assert_eq!(allowed, [None, Some(1), Some(1), Some(2), Some(2), None]);
    }
}
