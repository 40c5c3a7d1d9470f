//! Keys by name: as the table of commands writes them, as people read them, and the page that lists them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{COMMANDS, CommandGroup};

/// A key as the table writes it.
pub(crate) fn key_name(key: KeyEvent) -> Option<String> {
    // Esc and a letter in quick succession look like this.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    let base = match key.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::F(number) => format!("F{number}"),
        KeyCode::Enter => "enter".to_owned(),
        KeyCode::Esc => "esc".to_owned(),
        KeyCode::Tab => "tab".to_owned(),
        KeyCode::Delete => "delete".to_owned(),
        KeyCode::Backspace => "backspace".to_owned(),
        KeyCode::Up => "up".to_owned(),
        KeyCode::Down => "down".to_owned(),
        KeyCode::Left => "left".to_owned(),
        KeyCode::Right => "right".to_owned(),
        KeyCode::Home => "home".to_owned(),
        KeyCode::End => "end".to_owned(),
        KeyCode::PageUp => "pageup".to_owned(),
        KeyCode::PageDown => "pagedown".to_owned(),
        _ => return None,
    };
    match key.modifiers.contains(KeyModifiers::CONTROL) {
        true => Some(format!("ctrl-{base}")),
        false => Some(base),
    }
}

/// A key for people: `Ctrl-S`, `Space`, `F5`, `j`.
pub(crate) fn shown_key(name: &str) -> String {
    if let Some(letter) = name.strip_prefix("ctrl-") {
        return format!("Ctrl-{}", letter.to_uppercase());
    }
    match name {
        "up" => "↑".to_owned(),
        "down" => "↓".to_owned(),
        "left" => "←".to_owned(),
        "right" => "→".to_owned(),
        "pageup" => "PgUp".to_owned(),
        "pagedown" => "PgDn".to_owned(),
        "space" | "enter" | "tab" | "esc" | "home" | "end" | "delete" | "backspace" => {
            let mut letters = name.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
        other => other.to_owned(),
    }
}

/// `docs/keys.md`.
pub fn keys_page() -> String {
    let mut page = String::from(
        "# Keys of the terminal UI\n\nGenerated from the program's table of commands; a test compares, and\n`UPDATE_DOCS=1 cargo test -p mcp-proxy-tui` writes the page again. A command with a `:` can also be typed: `:name`.\n[tui.md](tui.md) explains the screen.\n",
    );
    for group in CommandGroup::ALL {
        page.push_str(&format!(
            "\n## {}\n\n| key | command | does |\n|---|---|---|\n",
            group.heading()
        ));
        for entry in COMMANDS.iter().filter(|entry| entry.group == group) {
            let keys: Vec<String> = entry
                .keys
                .iter()
                .map(|key| format!("`{}`", shown_key(key)))
                .collect();
            let about = entry.about.replace('|', "\\|");
            let (keys, name) = (keys.join(" "), entry.shown_name());
            page.push_str(&format!("| {keys} | `{name}` | {about} |\n"));
        }
    }
    page
}
