//! Names that another was probably meant to be.

/// Up to three of `names` that `name` may have been meant to be, the nearest first.
pub fn near_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    const NEAR: f64 = 0.8;
    // Comparing takes the product of both lengths, and a client may send anything as a name.
    const LONGEST: usize = 256;
    if name.len() > LONGEST {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let letters = letter_counts(&wanted);
    let mut lower = String::new();
    let mut near: Vec<(f64, &str)> = names
        .filter(|candidate| candidate.len() <= LONGEST)
        .filter_map(|candidate| {
            lower.clear();
            lower.extend(candidate.chars().flat_map(char::to_lowercase));
            // A name without its prefix, or only the beginning of one, is near too.
            let inside = wanted.len() >= 3 && lower.contains(&wanted);
            if !inside && most_likeness(&wanted, &letters, &lower) < NEAR {
                return None;
            }
            let likeness = strsim::jaro_winkler(&wanted, &lower) + if inside { 0.5 } else { 0.0 };
            (likeness >= NEAR).then_some((likeness, candidate))
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// How often each byte is in a text.
fn letter_counts(text: &str) -> [u16; 256] {
    let mut counts = [0; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    counts
}

/// The most that the Jaro-Winkler likeness of two texts can be, from the letters that they share. It is found much faster than
/// the likeness itself, and most names have too little in common.
fn most_likeness(wanted: &str, letters: &[u16; 256], other: &str) -> f64 {
    let mut left = *letters;
    let mut shared = 0_u16;
    for byte in other.bytes() {
        let left = &mut left[usize::from(byte)];
        if *left > 0 {
            *left -= 1;
            shared += 1;
        }
    }
    let characters = |text: &str| text.chars().count().max(1) as f64;
    let shared = f64::from(shared);
    let jaro = (shared / characters(wanted) + shared / characters(other) + 1.0) / 3.0;
    let same_start = wanted.chars().zip(other.chars()).take(4);
    let same_start = same_start.take_while(|(a, b)| a == b).count() as f64;
    let jaro = jaro.min(1.0);
    jaro + 0.1 * same_start * (1.0 - jaro)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_few_and_near() {
        let names = ["calc_add", "calc_sub", "files_read", "calc_addition", "x"];
        let near = |name: &str| near_names(name, names.into_iter());
        assert_eq!(near("calc_ad")[0], "calc_add");
        assert_eq!(near("CALC_ADD")[0], "calc_add");
        assert_eq!(near("read"), ["files_read"]);
        assert!(near("calc_").len() <= 3);
        assert!(near("zzz").is_empty());
        assert_eq!(near_names("Größe", ["größe", "x"].into_iter()), ["größe"]);
        assert!(near(&"calc_add".repeat(100)).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_near_name_is_passed_over(a in "[a-d_é]{1,12}", b in "[a-d_é]{1,12}") {
            let most = most_likeness(&a, &letter_counts(&a), &b);
            proptest::prop_assert!(most + 1e-9 >= strsim::jaro_winkler(&a, &b));
        }
    }
}
