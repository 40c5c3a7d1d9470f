//! The kinds of things that servers offer.

/// What kind of thing a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    /// A tool, known by its name.
    Tool,
    /// A resource, known by its URI.
    Resource,
    /// A resource template, known by its URI template.
    Template,
    /// A prompt, known by its name.
    Prompt,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [ItemKind; 4] = [
        ItemKind::Tool,
        ItemKind::Resource,
        ItemKind::Template,
        ItemKind::Prompt,
    ];

    /// The member of a list result that holds the definitions.
    pub const fn list_member(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Resource => "resources",
            ItemKind::Template => "resourceTemplates",
            ItemKind::Prompt => "prompts",
        }
    }

    /// The word for it in texts.
    pub const fn word(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::Template => "resource template",
            ItemKind::Prompt => "prompt",
        }
    }

    /// The member of a definition that it is known by.
    pub const fn key_member(self) -> &'static str {
        match self {
            ItemKind::Tool | ItemKind::Prompt => "name",
            ItemKind::Resource => "uri",
            ItemKind::Template => "uriTemplate",
        }
    }

    /// Its place in [`ItemKind::ALL`].
    pub const fn position(self) -> usize {
        match self {
            ItemKind::Tool => 0,
            ItemKind::Resource => 1,
            ItemKind::Template => 2,
            ItemKind::Prompt => 3,
        }
    }
}
