//! The tools of a canned server: ten short ones, or any number with definitions as long as those of real servers.

use std::num::NonZeroUsize;

use bytes::Bytes;
use clap::Args;

use super::TOOLS;

const VERBS: [&str; 10] = [
    "list", "search", "read", "create", "update", "archive", "export", "compare", "count", "share",
];
const NOUNS: [&str; 10] = [
    "orders", "invoices", "tickets", "branches", "messages", "contacts", "events", "reports",
    "tables", "folders",
];

/// Which tools a canned server offers.
#[derive(Args, Clone, Debug, Default)]
pub struct ToolSet {
    /// Offer this many tools with definitions of about 600 bytes, instead of ten short ones
    #[arg(long)]
    tools: Option<NonZeroUsize>,
    /// What the names of these tools begin with
    #[arg(long, default_value = "", requires = "tools")]
    prefix: String,
}

impl ToolSet {
    /// The definitions, joined by commas.
    pub fn definitions(&self) -> String {
        let all: Vec<String> = match self.tools {
            None => TOOLS.iter().map(|name| short_definition(name)).collect(),
            Some(count) => (0..count.get())
                .map(|index| definition(&self.prefix, index))
                .collect(),
        };
        all.join(",")
    }
}

/// The name of one of many tools.
pub fn tool_name(prefix: &str, index: usize) -> String {
    let (verb, noun) = words(index);
    format!("{prefix}{verb}_{noun}_{index:04}")
}

/// Bytes of the definitions of so many tools, without what is between them.
pub fn definition_bytes(prefix: &str, count: usize) -> usize {
    (0..count)
        .map(|index| definition(prefix, index).len())
        .sum()
}

/// The result of `tools/list`, and the end of the answer.
pub(super) fn answer(definitions: &str) -> Bytes {
    format!(
        r#","result":{{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{definitions}]}}}}"#
    )
    .into()
}

fn words(index: usize) -> (&'static str, &'static str) {
    (VERBS[index % 10], NOUNS[index / 10 % 10])
}

fn short_definition(name: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"A canned tool","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}"#
    )
}

fn definition(prefix: &str, index: usize) -> String {
    let name = tool_name(prefix, index);
    let (verb, noun) = words(index);
    format!(
        r#"{{"name":"{name}","title":"{verb} {noun}","description":"{verb} the {noun} of the current workspace. Takes the filter that the web interface takes, returns at most `limit` of them with the newest first, and says in `next` where to continue.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to look for in the {noun}, as words or as a quoted phrase"}},"limit":{{"type":"integer","minimum":1,"maximum":500,"default":50}},"sort":{{"type":"string","enum":["newest","oldest","name"]}}}},"required":["text"]}},"annotations":{{"readOnlyHint":false,"openWorldHint":true}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_json_of_about_600_bytes_with_distinct_names() {
        let set = ToolSet {
            tools: NonZeroUsize::new(1_000),
            prefix: "a_".into(),
        };
        let text = set.definitions();
        let tools: Vec<serde_json::Value> = serde_json::from_str(&format!("[{text}]")).unwrap();
        let mut names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names[17], tool_name("a_", 17));
        names.dedup();
        assert_eq!(names.len(), 1_000);
        assert!((550..700).contains(&(text.len() / 1_000)));
    }
}
