//! What a person types about a held message.

/// One line from the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It goes on.
    Forward,
    /// Something else goes on; `None`: it is not typed yet.
    Modify(Option<String>, Checked),
    /// It does not go on.
    Drop,
    /// Its sender gets an error.
    Error(Option<i64>, Option<String>),
    /// The oldest goes on.
    Step,
    /// All go on, and nothing is held any more.
    Continue,
    /// Everything is held.
    Intercept,
    /// Enough.
    Quit,
    /// None of these.
    Unknown,
}

/// Whether a new message must be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// It must.
    Json,
    /// It is sent whatever it is.
    AsIs,
}

impl Answer {
    /// Reads a line: a letter, a word that begins with it, and what follows.
    pub fn read(line: &str) -> Answer {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        let is = |full: &str| !word.is_empty() && full.starts_with(&word.to_lowercase());
        match (word, rest) {
            ("m!", rest) => Answer::Modify(rest.map(str::to_owned), Checked::AsIs),
            (_, rest) if is("modify") => Answer::Modify(rest.map(str::to_owned), Checked::Json),
            (_, rest) if is("error") => error(rest),
            (_, Some(_)) => Answer::Unknown,
            _ if is("forward") => Answer::Forward,
            _ if is("drop") => Answer::Drop,
            _ if is("step") => Answer::Step,
            _ if is("continue") => Answer::Continue,
            _ if is("intercept") => Answer::Intercept,
            _ if is("quit") => Answer::Quit,
            _ => Answer::Unknown,
        }
    }
}

/// `-32000 not now`, `not now`, `-32000`
fn error(rest: Option<&str>) -> Answer {
    let Some(rest) = rest else {
        return Answer::Error(None, None);
    };
    let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
    match first.parse() {
        Ok(code) => Answer::Error(
            Some(code),
            Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        ),
        Err(_) => Answer::Error(None, Some(rest.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_words_and_what_follows() {
        let is = |line: &str, answer: Answer| assert_eq!(Answer::read(line), answer, "{line}");
        is("f", Answer::Forward);
        is(" F \n", Answer::Forward);
        is("drop", Answer::Drop);
        is("m", Answer::Modify(None, Checked::Json));
        is(
            "m {\"a\":  1}",
            Answer::Modify(Some("{\"a\":  1}".into()), Checked::Json),
        );
        is(
            "m! no json",
            Answer::Modify(Some("no json".into()), Checked::AsIs),
        );
        is("e", Answer::Error(None, None));
        is(
            "e -5 not now",
            Answer::Error(Some(-5), Some("not now".into())),
        );
        is("error not now", Answer::Error(None, Some("not now".into())));
        is("e 7", Answer::Error(Some(7), None));
        is("s", Answer::Step);
        is("c", Answer::Continue);
        is("i", Answer::Intercept);
        is("q", Answer::Quit);
        for wrong in ["", "x", "f 3", "forwards", "dropp"] {
            is(wrong, Answer::Unknown);
        }
    }
}
