//! Words and columns.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use mcp_proxy_wire::terminal_text::sanitize;

/// A name wider than this does not push the other column away.
const WIDEST_NAME: usize = 36;

/// The first sentence of a description, on one line.
pub(crate) fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.match_indices(['.', '!', '?']).find(|(at, _)| {
        let (before, after) = (&line[..*at], &line[at + 1..]);
        // `e.g. this` and `2.5` are not ends.
        after.starts_with(' ')
            && !before.ends_with(".g")
            && !before.ends_with("i.e")
            && !["e", "i", "etc", "vs"].contains(&before.rsplit(' ').next().unwrap_or_default())
    });
    match end {
        Some((at, _)) => line[..=at].to_owned(),
        None => line,
    }
}

/// Two columns. `width` is that of the terminal, if it is one: longer lines are cut there.
pub(crate) fn columns(rows: &[(String, String)], width: Option<usize>) -> String {
    let name_width = |name: &String| name.width();
    let widest = rows.iter().map(|(name, _)| name_width(name));
    let first = widest
        .filter(|width| *width <= WIDEST_NAME)
        .max()
        .unwrap_or(WIDEST_NAME);
    let lines = rows.iter().map(|(name, about)| {
        let (name, about) = (sanitize(name), sanitize(about));
        let gap = " ".repeat(first.saturating_sub(name.width()));
        let line = format!("{name}{gap}  {about}");
        let line = line.trim_end();
        match width {
            Some(width) => format!("{}\n", cut(line, width)),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// A text that takes at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or_default();
        used < width
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{kept}…")
}

/// Lines with spaces in front.
pub(crate) fn indented(text: &str, spaces: usize) -> String {
    let pad = " ".repeat(spaces);
    let lines = text.lines().map(|line| match line.is_empty() {
        true => String::new(),
        false => format!("{pad}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_where_one_ends() {
        for (text, first) in [
            ("Adds numbers. Twice.", "Adds numbers."),
            ("Takes 2.5 s\nat most. Then ends", "Takes 2.5 s at most."),
            ("Units, e.g. metres. More", "Units, e.g. metres."),
            ("No end", "No end"),
            ("One\n\nTwo", "One"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), first);
        }
    }

    #[test]
    fn columns_are_cut_to_the_screen() {
        let rows = [
            ("a".to_owned(), "first".to_owned()),
            ("long".to_owned(), "日本語".to_owned()),
        ];
        assert_eq!(columns(&rows, Some(10)), "a     fir…\nlong  日…\n");
        assert_eq!(columns(&rows, None), "a     first\nlong  日本語\n");
    }
}
