//! What is wrong with a filter's text, and where.

/// A filter or a change that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// What was read.
    text: String,
    /// At which of its characters, from 1.
    place: Option<usize>,
    why: String,
}

impl FilterError {
    /// `at` is the piece of `text` where it is wrong.
    pub(crate) fn new(text: &str, at: Option<&str>, why: String) -> FilterError {
        let start = text.as_ptr() as usize;
        let place = at.and_then(|at| {
            let offset = (at.as_ptr() as usize).checked_sub(start)?;
            text.get(..offset).map(|before| before.chars().count() + 1)
        });
        FilterError {
            text: text.to_owned(),
            place,
            why,
        }
    }

    /// `offset` is the byte of `text` where it is wrong.
    pub(crate) fn at(text: &str, offset: usize, why: String) -> FilterError {
        FilterError::new(text, text.get(offset..), why)
    }

    /// Which character is wrong, from 1, if one is.
    pub fn place(&self) -> Option<usize> {
        self.place
    }

    /// What is wrong, without the place.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Some(place) => write!(f, "`{}`, character {place}: {}", self.text, self.why),
            None => write!(f, "`{}`: {}", self.text, self.why),
        }
    }
}

impl std::error::Error for FilterError {}
