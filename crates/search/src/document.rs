//! What is searched: a document and its fields.

/// A tool, resource or prompt, as the texts that people may search for.
#[derive(Clone, Debug, Default)]
pub struct SearchDocument<'a> {
    /// The name that a call uses.
    pub name: &'a str,
    /// The name for people.
    pub title: Option<&'a str>,
    /// The server that offers it.
    pub server: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The name and description of each parameter.
    pub parameters: Vec<(&'a str, &'a str)>,
    /// Titles in annotations, tags, and the names in what a tool answers with.
    pub other: Vec<&'a str>,
}

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SearchField {
    /// The name that a call uses.
    Name,
    /// The name for people.
    Title,
    /// The server that offers it.
    Server,
    /// What it does.
    Description,
    /// Names and descriptions of parameters.
    Parameters,
    /// Titles in annotations, tags, and the names in what a tool answers with.
    Annotations,
}

/// A set of fields, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(u8);

impl SearchField {
    /// Every field, in the order in which matches are reported.
    pub const ALL: [SearchField; 6] = [
        SearchField::Name,
        SearchField::Title,
        SearchField::Server,
        SearchField::Description,
        SearchField::Parameters,
        SearchField::Annotations,
    ];

    /// The key of a definition that holds the field.
    pub fn as_str(self) -> &'static str {
        match self {
            SearchField::Name => "name",
            SearchField::Title => "title",
            SearchField::Server => "server",
            SearchField::Description => "description",
            SearchField::Parameters => "inputSchema",
            SearchField::Annotations => "annotations.title",
        }
    }

    /// How much a word in the field counts.
    pub(crate) fn weight(self) -> f32 {
        match self {
            SearchField::Name => 4.0,
            SearchField::Title => 2.0,
            SearchField::Server => 4.0,
            SearchField::Description => 1.0,
            SearchField::Parameters => 0.3,
            SearchField::Annotations => 0.6,
        }
    }

    /// The number of words in a usual field of this kind. It is fixed, so that a server that comes or goes does not change what
    /// the documents of the others are worth.
    pub(crate) fn usual_length(self) -> f32 {
        match self {
            SearchField::Name | SearchField::Title => 3.0,
            SearchField::Server => 1.0,
            SearchField::Description => 20.0,
            SearchField::Parameters => 30.0,
            SearchField::Annotations => 4.0,
        }
    }

    /// How much a longer field than usual lowers the worth of each of its words, from 0 to 1.
    pub(crate) fn length_penalty(self) -> f32 {
        match self {
            SearchField::Server => 0.0,
            SearchField::Name | SearchField::Title => 0.5,
            SearchField::Description | SearchField::Parameters | SearchField::Annotations => 0.75,
        }
    }
}

impl FieldSet {
    pub(crate) fn insert(&mut self, field: SearchField) {
        self.0 |= 1 << field as u8;
    }

    pub(crate) fn insert_all(&mut self, other: FieldSet) {
        self.0 |= other.0;
    }

    pub(crate) fn fields(self) -> Vec<SearchField> {
        let contains = |field: &SearchField| self.0 & (1 << *field as u8) != 0;
        SearchField::ALL.into_iter().filter(contains).collect()
    }
}
