//! The help page on filters, in the two forms it is shown in: `mcp-proxy help filters` and `docs/filters.md`.

use std::fmt::Write as _;

use super::FIELDS;

/// A filter as an example, and what it chooses.
pub struct FilterExample {
    /// The filter.
    pub filter: &'static str,
    /// What it chooses.
    pub chooses: &'static str,
}

/// Examples that work; the tests try them.
pub const EXAMPLES: &[FilterExample] = &[
    example(
        "tools/call read_file",
        "messages with both of these words in them",
    ),
    example(
        r#"/"path": *"\/(etc|home)\//"#,
        "messages whose bytes match",
    ),
    example("/permission denied/i", "the same, case-insensitive"),
    example(r#".method == "tools/call""#, "tool calls and their answers"),
    example(
        r#".tool == "read_file" and .kind == "request""#,
        "calls of this tool",
    ),
    example(
        r#".server == "files""#,
        "messages between a hub and its server files",
    ),
    example(
        r#".status == "error""#,
        "answers that are errors, tool errors too",
    ),
    example(
        ".latency_ms > 1000",
        "answers that took longer than a second",
    ),
    example(
        r#".params.arguments.path // "" | startswith("/etc")"#,
        "by an argument",
    ),
    example(
        r#"any(.result.tools[]?; .name == "delete")"#,
        "lists of tools with this one among them",
    ),
    example(
        ".http.status >= 400",
        "messages that are the body of an HTTP response that failed",
    ),
    example(
        r#"select(.size > 100000 and .direction == "server_to_client")"#,
        "large messages from the server",
    ),
];

const FORMS: &[(&str, &str)] = &[
    (
        "words",
        "Everything else. All words must be in the message: in its method, in the name of its tool, prompt or resource (of an answer, in those of the request it answers), in its id or in its text; case-insensitive, in any order. A character may be written as an escape there: grüße finds `Gr\\u00fc\\u00dfe`, and a/b finds `a\\/b`.",
    ),
    (
        "/regex/",
        "Begins and ends with a slash; `/i` at the end makes it case-insensitive. A regular expression over the bytes of the message as they were sent, escapes and all. (/etc/passwd has no slash at its end and is a word.)",
    ),
    (
        "jq",
        "Begins with a field of the message (.method …), with `(` or `[.`, or with a call (select(…)). A message is chosen if the program gives anything but null and false. A program that fails on a message does not choose it.",
    ),
];

const PREFIXES: &str = "`jq:` or `words:` in front decides where the beginning does not.";

const LIMITS: &[&str] = &[
    "A jq program and a long search with a regular expression run on a thread of their own, and have a second for each message (and one more for each 8 MiB of it). One that takes longer is switched off: it chooses nothing from then on. inspect and export end with an error; for a breakpoint or rule, a note in the record says so. Setting the breakpoint again, or reloading the rules, switches it on again. What a program does to the memory is not limited.",
    "A program has at most 1000 tokens.",
    "Functions that call themselves are refused: use recurse, while, until, walk or reduce.",
    "Functions for the environment, files, input and the terminal are left out. Regular expressions are those of Rust: no backreferences, always linear.",
    "A message nested deeper than 256 has null in params, result, error and message. So has a recorded one over 16 MiB, in raw too.",
    "Of duplicate keys the last one counts. Whole numbers of any length compare exactly up to 40 digits.",
];

/// The page as text, no wider than `width` columns.
pub fn page(width: usize) -> String {
    let mut page = String::from(
        "Filters choose messages, in the same language everywhere: views, breakpoints, rules, inspect, export and replay.\n\nThree forms:\n",
    );
    page = wrapped(&page, width, 0);
    for (name, about) in FORMS {
        let _ = write!(
            page,
            "  {name:<9} {}",
            wrapped(about, width, 12).trim_start()
        );
    }
    page.push('\n');
    page.push_str(&wrapped(PREFIXES, width, 0));
    page.push_str("\nExamples:\n");
    for example in EXAMPLES {
        let _ = write!(
            page,
            "  {}\n{}",
            example.filter,
            wrapped(example.chooses, width, 6)
        );
    }
    page.push_str("\nThe fields that jq sees:\n");
    for field in FIELDS {
        let about = format!("{}: {}", field.holds, field.about);
        let _ = write!(
            page,
            "  .{:<15} {}",
            field.name,
            wrapped(&about, width, 19).trim_start()
        );
    }
    page.push_str("\nLimits:\n");
    for limit in LIMITS {
        let _ = write!(page, "  - {}", wrapped(limit, width, 4).trim_start());
    }
    page
}

/// The page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Filters\n\nFilters choose messages, in the same language everywhere: views, breakpoints, rules, `inspect`, `export` and replay. \
         `mcp-proxy help filters` shows this page in the terminal.\n\n## Three forms\n\n| form | how it is recognised, and what it chooses |\n|---|---|\n",
    );
    for (name, about) in FORMS {
        let _ = writeln!(page, "| {name} | {about} |");
    }
    let _ = write!(
        page,
        "\n{PREFIXES}\n\n## Examples\n\n| filter | chooses |\n|---|---|\n"
    );
    for example in EXAMPLES {
        let filter = example.filter.replace('|', "\\|");
        let _ = writeln!(page, "| `{filter}` | {} |", example.chooses);
    }
    page.push_str("\n## The fields that jq sees\n\nWhat a message does not have is `null`.\n\n| field | holds | meaning |\n|---|---|---|\n");
    for field in FIELDS {
        let _ = writeln!(
            page,
            "| `.{}` | {} | {} |",
            field.name, field.holds, field.about
        );
    }
    page.push_str("\n## Limits\n\n");
    for limit in LIMITS {
        let _ = writeln!(page, "- {limit}");
    }
    page
}

const fn example(filter: &'static str, chooses: &'static str) -> FilterExample {
    FilterExample { filter, chooses }
}

/// `text` in lines that begin `indent` columns in and end before `width`.
fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > width {
                out.push('\n');
                column = 0;
            }
            if column == 0 {
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out.push('\n');
    }
    out
}
