//! The lines of a pretty-printed schema around the keyword that was broken.

use serde_json::Value;

use super::pointer;

/// Lines that are shown before and after the broken one.
const AROUND: usize = 3;

/// `tools/add inputSchema, line 6, at /properties/n/type`, and the lines around it.
pub(crate) fn excerpt(schema: &Value, path: &[String]) -> String {
    let mut printer = SchemaPrinter {
        lines: Vec::new(),
        wanted: path,
        found: None,
        matched: 0,
    };
    printer.print(schema, 0, String::new(), &mut Vec::new(), "");
    let broken = printer.found.unwrap_or_default();
    let first = broken.saturating_sub(AROUND);
    let last = (broken + AROUND).min(printer.lines.len().saturating_sub(1));
    let width = (last + 1).to_string().len();
    let shown = printer.lines[first..=last].iter().enumerate();
    let shown = shown.map(|(offset, line)| {
        let at = first + offset;
        let mark = if at == broken { '>' } else { ' ' };
        format!("  {mark} {:>width$} | {line}\n", at + 1)
    });
    format!(
        "  schema, line {}, at {}:\n{}",
        broken + 1,
        match pointer(path) {
            path if path.is_empty() => "its top".to_owned(),
            path => path,
        },
        shown.collect::<String>().trim_end_matches('\n')
    )
}

struct SchemaPrinter<'a> {
    lines: Vec<String>,
    wanted: &'a [String],
    /// The line of the longest beginning of the wanted path that exists.
    found: Option<usize>,
    matched: usize,
}

impl SchemaPrinter<'_> {
    fn print(
        &mut self,
        value: &Value,
        indent: usize,
        label: String,
        path: &mut Vec<String>,
        comma: &str,
    ) {
        let is_on_the_way = self.wanted.starts_with(path);
        if is_on_the_way && (self.found.is_none() || path.len() > self.matched) {
            self.found = Some(self.lines.len());
            self.matched = path.len();
        }
        let pad = "  ".repeat(indent);
        match value {
            Value::Object(members) if !members.is_empty() => {
                self.lines.push(format!("{pad}{label}{{"));
                let last = members.len() - 1;
                for (at, (name, member)) in members.iter().enumerate() {
                    path.push(name.clone());
                    let label = format!("{}: ", Value::String(name.clone()));
                    let comma = if at == last { "" } else { "," };
                    self.print(member, indent + 1, label, path, comma);
                    path.pop();
                }
                self.lines.push(format!("{pad}}}{comma}"));
            }
            // Lists of words, such as `required` and `enum`, are one line.
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                self.lines.push(format!("{pad}{label}["));
                let last = items.len() - 1;
                for (at, item) in items.iter().enumerate() {
                    path.push(at.to_string());
                    let comma = if at == last { "" } else { "," };
                    self.print(item, indent + 1, String::new(), path, comma);
                    path.pop();
                }
                self.lines.push(format!("{pad}]{comma}"));
            }
            value => {
                let line = format!("{pad}{label}{}{comma}", spaced(value));
                self.lines.push(line);
            }
        }
    }
}

/// A value on one line, with spaces after commas.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        value => value.to_string(),
    }
}
