//! What a person types about a held message.

/// One line from the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyboardCommand {
    /// Forward it.
    Forward,
    /// Forward another message; `None` if it is not typed yet.
    Modify(Option<String>, ReplacementCheck),
    /// Drop it.
    Drop,
    /// Its sender gets an error.
    Error(Option<i64>, Option<String>),
    /// It may wait longer.
    MoreTime,
    /// Forward the oldest.
    Step,
    /// Forward everything and leave intercept mode.
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
pub enum ReplacementCheck {
    /// It must.
    Json,
    /// It is sent whatever it is.
    AsIs,
}

impl KeyboardCommand {
    /// Reads a line: a letter, a word that begins with it, and what follows.
    pub fn read(line: &str) -> KeyboardCommand {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        let is = |full: &str| !word.is_empty() && full.starts_with(&word.to_lowercase());
        match (word, rest) {
            ("m!", rest) => {
                KeyboardCommand::Modify(rest.map(str::to_owned), ReplacementCheck::AsIs)
            }
            (_, rest) if is("modify") => {
                KeyboardCommand::Modify(rest.map(str::to_owned), ReplacementCheck::Json)
            }
            (_, rest) if is("error") => error(rest),
            (_, Some(_)) => KeyboardCommand::Unknown,
            _ if is("forward") => KeyboardCommand::Forward,
            _ if is("drop") => KeyboardCommand::Drop,
            _ if is("time") => KeyboardCommand::MoreTime,
            _ if is("step") => KeyboardCommand::Step,
            _ if is("continue") => KeyboardCommand::Continue,
            _ if is("intercept") => KeyboardCommand::Intercept,
            _ if is("quit") => KeyboardCommand::Quit,
            _ => KeyboardCommand::Unknown,
        }
    }
}

/// `-32000 not now`, `not now`, `-32000`
fn error(rest: Option<&str>) -> KeyboardCommand {
    let Some(rest) = rest else {
        return KeyboardCommand::Error(None, None);
    };
    let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
    match first.parse() {
        Ok(code) => KeyboardCommand::Error(
            Some(code),
            Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        ),
        Err(_) => KeyboardCommand::Error(None, Some(rest.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_words_and_what_follows() {
        let is = |line: &str, answer: KeyboardCommand| {
            assert_eq!(KeyboardCommand::read(line), answer, "{line}")
        };
        is("f", KeyboardCommand::Forward);
        is(" F \n", KeyboardCommand::Forward);
        is("drop", KeyboardCommand::Drop);
        is("m", KeyboardCommand::Modify(None, ReplacementCheck::Json));
        is(
            "m {\"a\":  1}",
            KeyboardCommand::Modify(Some("{\"a\":  1}".into()), ReplacementCheck::Json),
        );
        is(
            "m! no json",
            KeyboardCommand::Modify(Some("no json".into()), ReplacementCheck::AsIs),
        );
        is("e", KeyboardCommand::Error(None, None));
        is(
            "e -5 not now",
            KeyboardCommand::Error(Some(-5), Some("not now".into())),
        );
        is(
            "error not now",
            KeyboardCommand::Error(None, Some("not now".into())),
        );
        is("e 7", KeyboardCommand::Error(Some(7), None));
        is("t", KeyboardCommand::MoreTime);
        is("s", KeyboardCommand::Step);
        is("c", KeyboardCommand::Continue);
        is("i", KeyboardCommand::Intercept);
        is("q", KeyboardCommand::Quit);
        for wrong in ["", "x", "f 3", "forwards", "dropp"] {
            is(wrong, KeyboardCommand::Unknown);
        }
    }
}
