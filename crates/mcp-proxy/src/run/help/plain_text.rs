//! A page of `docs/` for the terminal: headings, paragraphs, lists, tables and code, as plain text.
//!
//! Not a Markdown reader: it knows what our pages use.

/// What a line of a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Paragraph,
    Table,
    Code,
}

/// The page, no wider than `width` columns; code is not broken.
pub fn page(markdown: &str, width: usize) -> String {
    let mut writer = PageWriter {
        out: String::new(),
        width,
        text: String::new(),
        rows: Vec::new(),
    };
    let mut block = Block::Paragraph;
    for line in markdown.lines() {
        if line.starts_with("```") {
            writer.finish();
            block = match block {
                Block::Code => Block::Paragraph,
                _ => Block::Code,
            };
            if block == Block::Code {
                writer.gap();
            }
            continue;
        }
        if block == Block::Code {
            if !line.is_empty() {
                writer.out.push_str("    ");
                writer.out.push_str(line);
            }
            writer.out.push('\n');
            continue;
        }
        let next = match line.starts_with('|') {
            true => Block::Table,
            false => Block::Paragraph,
        };
        if next != block || line.is_empty() {
            writer.finish();
        }
        block = next;
        writer.line(line);
    }
    writer.finish();
    writer.out
}

struct PageWriter {
    out: String,
    width: usize,
    /// The paragraph that is being read.
    text: String,
    /// The table that is being read.
    rows: Vec<Vec<String>>,
}

impl PageWriter {
    fn line(&mut self, line: &str) {
        if line.starts_with('#') {
            self.finish();
            self.gap();
            let title = bare(line.trim_start_matches('#').trim());
            self.out.push_str(&format!("{title}:\n"));
        } else if line.starts_with('|') {
            let cells = cells(line);
            let is_ruler = cells.iter().all(|cell| cell.chars().all(|c| c == '-'));
            if !is_ruler {
                self.rows.push(cells);
            }
        } else if line.starts_with("- ") {
            self.finish();
            self.text = line.to_owned();
        } else if !line.is_empty() {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(line.trim());
        }
    }

    /// An empty line before what comes, unless it is the first.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Writes what was read.
    fn finish(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let is_item = text.starts_with("- ");
            if !is_item {
                self.after_heading_or_gap();
            }
            let indent = if is_item { 2 } else { 0 };
            wrap(&mut self.out, &plain(&text), self.width, (0, indent));
        }
        let rows = std::mem::take(&mut self.rows);
        // The first row has the names of the columns, which the page explains.
        if rows.len() > 1 {
            self.after_heading_or_gap();
            self.table(&rows[1..]);
        }
    }

    fn after_heading_or_gap(&mut self) {
        if !self.out.ends_with(":\n") {
            self.gap();
        }
    }

    fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let longest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| bare(cell).chars().count())
                .max()
                .unwrap_or_default()
        };
        // All but the last column stand under each other, unless one is too long for that.
        let widths: Vec<usize> = (0..columns.saturating_sub(1)).map(longest).collect();
        let indent = 2 + widths.iter().map(|width| width + 2).sum::<usize>();
        let fits = indent * 2 <= self.width;
        for row in rows {
            let (last, before) = row
                .split_last()
                .map_or(("", &[][..]), |(last, before)| (last, before));
            let mut start = String::from("  ");
            for (cell, width) in before.iter().map(|cell| bare(cell)).zip(&widths) {
                start.push_str(&format!("{cell:<width$}  "));
            }
            if fits {
                let used = start.chars().count();
                self.out.push_str(&start);
                wrap(&mut self.out, last, self.width, (used, indent));
            } else {
                self.out.push_str(start.trim_end());
                self.out.push_str("\n      ");
                wrap(&mut self.out, last, self.width, (6, 6));
            }
        }
    }
}

/// The cells of a row.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let hidden = inner.replace("\\|", "\u{0}");
    let cells = hidden.split('|').map(|cell| plain(cell.trim()));
    cells.map(|cell| cell.replace('\u{0}', "|")).collect()
}

/// Text without the marks of code.
fn bare(text: &str) -> String {
    plain(text).replace('`', "")
}

/// Text without the marks of Markdown, except those of code: of a link, only what is shown.
fn plain(text: &str) -> String {
    let text = text.replace("**", "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, link)) = rest.split_once('[') {
        let target = link.split_once("](").and_then(|(shown, rest)| {
            let (_, rest) = rest.split_once(')')?;
            (!shown.contains(']')).then_some((shown, rest))
        });
        out.push_str(before);
        match target {
            Some((shown, after)) => {
                out.push_str(shown);
                rest = after;
            }
            None => {
                out.push('[');
                rest = link;
            }
        }
    }
    out + rest
}

/// Writes words in lines. The first line has `used` columns already, the others begin `indent` columns in.
fn wrap(out: &mut String, text: &str, width: usize, (used, indent): (usize, usize)) {
    let mut column = used;
    let mut is_first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_first && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        is_first = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_marks() {
        let markdown = "# Rules\n\nA `file` of\n[rules](rules.md).\n\n## Keys\n\n| key | |\n|---|---|\n| `a` | one `\\|` two three |\n\n- item that is long\n- other\n\n```toml\n[[rule]]\n```\n";
        let text = "Rules:\nA `file` of\nrules.\n\nKeys:\n  a  one `|` two\n     three\n- item that is\n  long\n- other\n\n    [[rule]]\n";
        assert_eq!(page(markdown, 16), text);
    }
}
