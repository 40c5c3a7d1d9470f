//! A light English stemmer: `issues` and `issue`, `deleting` and `deletion` become the same term.
//!
//! It follows the idea of Porter's algorithm with the endings that matter in names and descriptions of tools. A stem need not be
//! a word; it only has to be the same for words of one family.

/// Endings of nouns and adjectives made from verbs, longest first, and what is left of them.
const DERIVED_ENDINGS: &[(&str, &str)] = &[
    ("ization", "ize"),
    ("isation", "ize"),
    ("ification", "ify"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("iveness", "ive"),
    ("ousness", "ous"),
    ("ability", "able"),
    ("ibility", "ible"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("ising", "ize"),
    ("ment", ""),
    ("ness", ""),
    ("able", ""),
    ("ible", ""),
    ("ance", ""),
    ("ence", ""),
    ("tion", "t"),
    ("sion", "s"),
    ("izer", "ize"),
    ("ally", "al"),
    ("ise", "ize"),
    ("ful", ""),
    ("ive", ""),
    ("ity", ""),
    ("er", ""),
    ("or", ""),
    ("ly", ""),
    ("al", ""),
];

/// Words whose stem the rules get wrong, sorted.
const IRREGULAR: &[(&str, &str)] = &[
    ("active", "active"),
    ("address", "address"),
    ("addresses", "address"),
    ("aliases", "alias"),
    ("analyse", "analysis"),
    ("analyses", "analysis"),
    ("analyze", "analysis"),
    ("analyzed", "analysis"),
    ("analyzes", "analysis"),
    ("analyzing", "analysis"),
    ("answer", "answer"),
    ("apply", "apply"),
    ("archive", "archive"),
    ("author", "author"),
    ("aws", "aws"),
    ("balance", "balance"),
    ("bought", "buy"),
    ("broken", "break"),
    ("buffer", "buffer"),
    ("built", "build"),
    ("business", "business"),
    ("calendar", "calendar"),
    ("canvas", "canvas"),
    ("capital", "capital"),
    ("center", "center"),
    ("centre", "center"),
    ("channel", "channel"),
    ("children", "child"),
    ("chosen", "choose"),
    ("cities", "city"),
    ("city", "city"),
    ("cluster", "cluster"),
    ("color", "color"),
    ("colour", "color"),
    ("comment", "comment"),
    ("container", "container"),
    ("css", "css"),
    ("cursor", "cursor"),
    ("customer", "customer"),
    ("dbs", "db"),
    ("deployment", "deploy"),
    ("dms", "dm"),
    ("dns", "dns"),
    ("docker", "docker"),
    ("document", "document"),
    ("door", "door"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("drive", "drive"),
    ("email", "email"),
    ("emails", "email"),
    ("entities", "entity"),
    ("entity", "entity"),
    ("environment", "environment"),
    ("error", "error"),
    ("everything", "everything"),
    ("family", "family"),
    ("feed", "feed"),
    ("filter", "filter"),
    ("floor", "floor"),
    ("folder", "folder"),
    ("footer", "footer"),
    ("found", "find"),
    ("function", "function"),
    ("general", "general"),
    ("got", "get"),
    ("gotten", "get"),
    ("gps", "gps"),
    ("header", "header"),
    ("https", "http"),
    ("ids", "id"),
    ("indexes", "index"),
    ("indices", "index"),
    ("instance", "instance"),
    ("ips", "ip"),
    ("journal", "journal"),
    ("kept", "keep"),
    ("kubernetes", "kubernetes"),
    ("kvs", "kv"),
    ("layer", "layer"),
    ("left", "leave"),
    ("letter", "letter"),
    ("made", "make"),
    ("making", "make"),
    ("master", "master"),
    ("matrices", "matrix"),
    ("meal", "meal"),
    ("media", "media"),
    ("member", "member"),
    ("monitor", "monitor"),
    ("mrs", "mr"),
    ("news", "news"),
    ("number", "number"),
    ("offer", "offer"),
    ("option", "option"),
    ("order", "order"),
    ("paid", "pay"),
    ("paper", "paper"),
    ("paragraph", "paragraph"),
    ("parameter", "parameter"),
    ("payment", "pay"),
    ("people", "person"),
    ("permission", "permission"),
    ("portal", "portal"),
    ("power", "power"),
    ("process", "process"),
    ("processes", "process"),
    ("prs", "pr"),
    ("ran", "run"),
    ("redis", "redis"),
    ("reference", "reference"),
    ("register", "register"),
    ("replies", "reply"),
    ("reply", "reply"),
    ("said", "say"),
    ("section", "section"),
    ("seed", "seed"),
    ("sending", "send"),
    ("sent", "send"),
    ("sequence", "sequence"),
    ("server", "server"),
    ("session", "session"),
    ("several", "several"),
    ("shown", "show"),
    ("signal", "signal"),
    ("sms", "sms"),
    ("sold", "sell"),
    ("something", "something"),
    ("speed", "speed"),
    ("spent", "spend"),
    ("spoken", "speak"),
    ("station", "station"),
    ("status", "status"),
    ("statuses", "status"),
    ("string", "string"),
    ("table", "table"),
    ("taken", "take"),
    ("terminal", "terminal"),
    ("thing", "thing"),
    ("told", "tell"),
    ("took", "take"),
    ("total", "total"),
    ("transfer", "transfer"),
    ("trigger", "trigger"),
    ("user", "user"),
    ("variable", "variable"),
    ("vector", "vector"),
    ("version", "version"),
    ("vertices", "vertex"),
    ("vms", "vm"),
    ("weather", "weather"),
    ("written", "write"),
    ("wrote", "write"),
];

/// The stem of a lower-case word.
pub(crate) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    if let Some(stem) = irregular(word) {
        return stem.to_owned();
    }
    let one = singular(word);
    if let Some(stem) = irregular(&one) {
        return stem.to_owned();
    }
    let plain = strip_tense(one);
    if let Some(stem) = irregular(&plain) {
        return stem.to_owned();
    }
    finish(strip_derived(plain), word)
}

fn irregular(word: &str) -> Option<&'static str> {
    let found = IRREGULAR.binary_search_by(|(form, _)| (*form).cmp(word));
    found.ok().map(|at| IRREGULAR[at].1)
}

/// A word without the ending of a plural.
pub(crate) fn singular(word: &str) -> String {
    if word.ends_with("sses")
        || word.ends_with("xes")
        || word.ends_with("ches")
        || word.ends_with("shes")
    {
        return word[..word.len() - 2].to_owned();
    }
    if word.ends_with("ies") && word.len() > 4 {
        return format!("{}y", &word[..word.len() - 3]);
    }
    let keeps = word.ends_with("ss") || word.ends_with("us") || word.ends_with("is");
    if word.ends_with('s') && !keeps && word.len() > 3 {
        return word[..word.len() - 1].to_owned();
    }
    word.to_owned()
}

/// Takes `-ed` and `-ing` away and restores the verb as far as needed to meet its other forms.
fn strip_tense(word: String) -> String {
    let rest = if word.ends_with("eed") {
        return word;
    } else if let Some(rest) = word.strip_suffix("ied").filter(|rest| rest.len() > 1) {
        return format!("{rest}y");
    } else if let Some(rest) = word.strip_suffix("ed").or(word.strip_suffix("ing")) {
        rest
    } else {
        return word;
    };
    if !has_vowel(rest) || rest.len() < 2 {
        return word;
    }
    undouble(rest).to_owned()
}

fn strip_derived(word: String) -> String {
    for (ending, left) in DERIVED_ENDINGS {
        if let Some(rest) = word.strip_suffix(ending) {
            if rest.len() < 3 || !has_vowel(rest) {
                continue;
            }
            let joined = format!("{rest}{left}");
            return if left.is_empty() {
                undouble(&joined).to_owned()
            } else {
                joined
            };
        }
    }
    word
}

/// Takes away the final letters in which forms of one word differ.
fn finish(mut word: String, original: &str) -> String {
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    // `configuration` meets `configure` and `translation` meets `translate`, but `format` stays.
    if word.len() > 6 && word.ends_with("at") && original.len() > word.len() {
        word.truncate(word.len() - 2);
    }
    if word.len() > 3 && word.ends_with('y') && !ends_with_vowel(&word[..word.len() - 1]) {
        word.pop();
        word.push('i');
    }
    word
}

/// `runn` is `run`, but `call` stays.
fn undouble(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., a, b] if a == b && !matches!(a, b'l' | b's' | b'z') && !is_vowel(*a) => {
            &word[..word.len() - 1]
        }
        _ => word,
    }
}

fn has_vowel(word: &str) -> bool {
    word.bytes().any(|b| is_vowel(b) || b == b'y')
}

fn ends_with_vowel(word: &str) -> bool {
    word.bytes().next_back().is_some_and(is_vowel)
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

#[cfg(test)]
mod tests {
    use super::{IRREGULAR, stem};

    #[test]
    fn the_list_is_sorted() {
        assert!(IRREGULAR.is_sorted());
    }

    #[test]
    fn forms_of_one_word_have_one_stem() {
        for family in [
            "issue issues",
            "delete deletes deleted deleting",
            "repository repositories",
            "create creates created creating creation creator",
            "search searches searched searching",
            "run runs running ran",
            "query queries querying queried",
            "update updates updating updated",
            "deploy deploys deployment deployments deployed",
            "subscribe subscribed subscribing",
            "translate translation translating translator",
            "generate generation generating generator",
            "convert converting converter converted",
            "notify notification notifications",
            "message messages messaging",
            "schedule scheduled scheduling scheduler",
            "branch branches branching",
            "send sent sending",
            "status statuses",
            "navigate navigation navigating",
            "reply replies replied",
            "configure configuration configuring",
            "install installs installation",
            "verify verification verified",
        ] {
            let mut words = family.split(' ');
            let first = stem(words.next().unwrap_or_default());
            for word in words {
                assert_eq!(stem(word), first, "{word}");
            }
        }
    }

    #[test]
    fn other_words_keep_their_distance() {
        for (a, b) in [
            ("user", "use"),
            ("number", "numb"),
            ("table", "tab"),
            ("news", "new"),
            ("string", "str"),
            ("order", "ord"),
            ("process", "proceed"),
        ] {
            assert_ne!(stem(a), stem(b), "{a} and {b}");
        }
    }

    #[test]
    fn short_and_foreign_words_stay() {
        for word in ["s3", "is", "größe", "", "as"] {
            assert_eq!(stem(word), word);
        }
    }
}
