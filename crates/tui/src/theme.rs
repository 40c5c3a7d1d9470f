//! Colours. Every mark is told by a sign as well, so that nothing is lost without them.

use ratatui::style::{Color, Modifier, Style};

/// Which colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// No colours: `NO_COLOR`, or a terminal without them.
    Mono,
}

/// Whether there are colours at all, whatever theme is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Those of the theme.
    Themed,
    /// None, as `NO_COLOR` wants it: every theme looks like [`Theme::Mono`].
    None,
}

/// What something on the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StyleRole {
    /// Ordinary text.
    Plain,
    /// Text of less weight.
    Faint,
    /// The title bar.
    Title,
    /// That messages are held.
    Alarm,
    /// A message of the client.
    ToServer,
    /// A message of the server.
    ToClient,
    /// A held message.
    Held,
    /// An error.
    Bad,
    /// The row or line that is selected.
    Selected,
    /// The border of the pane that gets key presses.
    Focus,
    /// The border of another.
    Border,
    /// A key in the status bar.
    Key,
    /// A button.
    Button,
    /// A button that does something now.
    ButtonOn,
    /// A JSON key.
    JsonKey,
    /// A JSON string.
    JsonText,
    /// A JSON number.
    JsonNumber,
    /// `true`, `false`, `null`.
    JsonWord,
    /// An escape for a character that must not be obeyed.
    Hidden,
    /// Added in a comparison.
    Added,
    /// Removed in a comparison.
    Removed,
    /// What a search found.
    Found,
}

impl Theme {
    /// All, in the order in which they follow one another.
    pub const ALL: [Theme; 3] = [Theme::Dark, Theme::Light, Theme::Mono];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Dark => "dark",
            Theme::Light => "light",
            Theme::Mono => "mono",
        }
    }

    /// By name.
    pub fn named(name: &str) -> Option<Theme> {
        Theme::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// The one after it.
    pub fn next(self) -> Theme {
        match self {
            Theme::Dark => Theme::Light,
            Theme::Light => Theme::Mono,
            Theme::Mono => Theme::Dark,
        }
    }

    /// How something looks.
    pub fn style(self, role: StyleRole, colours: Colours) -> Style {
        match (self, colours) {
            (Theme::Mono, _) | (_, Colours::None) => mono(role),
            (Theme::Dark, Colours::Themed) => coloured(role, &DARK),
            (Theme::Light, Colours::Themed) => coloured(role, &LIGHT),
        }
    }
}

struct Palette {
    faint: Color,
    bar: Color,
    bar_text: Color,
    client: Color,
    server: Color,
    held: Color,
    bad: Color,
    selected: Color,
    key: Color,
    text: Color,
    number: Color,
    word: Color,
}

const DARK: Palette = Palette {
    faint: Color::DarkGray,
    bar: Color::Blue,
    bar_text: Color::White,
    client: Color::Cyan,
    server: Color::Green,
    held: Color::Yellow,
    bad: Color::LightRed,
    selected: Color::Indexed(238),
    key: Color::LightBlue,
    text: Color::Green,
    number: Color::Yellow,
    word: Color::Magenta,
};

const LIGHT: Palette = Palette {
    faint: Color::Gray,
    bar: Color::LightBlue,
    bar_text: Color::Black,
    client: Color::Blue,
    server: Color::Indexed(22),
    held: Color::Indexed(130),
    bad: Color::Red,
    selected: Color::Indexed(254),
    key: Color::Blue,
    text: Color::Indexed(22),
    number: Color::Indexed(130),
    word: Color::Magenta,
};

fn coloured(role: StyleRole, palette: &Palette) -> Style {
    let plain = Style::new();
    match role {
        StyleRole::Plain => plain,
        StyleRole::Faint | StyleRole::Border => plain.fg(palette.faint),
        StyleRole::Title => plain.bg(palette.bar).fg(palette.bar_text),
        StyleRole::Alarm => plain
            .bg(palette.held)
            .fg(Color::Black)
            .add_modifier(Modifier::BOLD),
        StyleRole::ToServer => plain.fg(palette.client),
        StyleRole::ToClient => plain.fg(palette.server),
        StyleRole::Held => plain.fg(palette.held).add_modifier(Modifier::BOLD),
        StyleRole::Bad => plain.fg(palette.bad),
        StyleRole::Selected => plain.bg(palette.selected).add_modifier(Modifier::BOLD),
        StyleRole::Focus => plain.fg(palette.key),
        StyleRole::Key => plain.fg(palette.key).add_modifier(Modifier::BOLD),
        StyleRole::Button => plain.fg(palette.faint),
        StyleRole::ButtonOn => plain.fg(palette.held).add_modifier(Modifier::BOLD),
        StyleRole::JsonKey => plain.fg(palette.key),
        StyleRole::JsonText => plain.fg(palette.text),
        StyleRole::JsonNumber => plain.fg(palette.number),
        StyleRole::JsonWord => plain.fg(palette.word),
        StyleRole::Hidden => plain.bg(palette.bad).fg(Color::Black),
        StyleRole::Added => plain.fg(palette.server),
        StyleRole::Removed => plain.fg(palette.bad),
        StyleRole::Found => plain.add_modifier(Modifier::REVERSED),
    }
}

fn mono(role: StyleRole) -> Style {
    let plain = Style::new();
    match role {
        StyleRole::Title | StyleRole::Selected | StyleRole::Hidden | StyleRole::Found => {
            plain.add_modifier(Modifier::REVERSED)
        }
        StyleRole::Alarm
        | StyleRole::Held
        | StyleRole::Key
        | StyleRole::ButtonOn
        | StyleRole::Bad
        | StyleRole::Focus => plain.add_modifier(Modifier::BOLD),
        StyleRole::Faint | StyleRole::Border | StyleRole::Button => {
            plain.add_modifier(Modifier::DIM)
        }
        StyleRole::Added | StyleRole::Removed => plain.add_modifier(Modifier::UNDERLINED),
        _ => plain,
    }
}
