//! The answer to `search`.

use bytes::Bytes;

use super::catalog_answers::SERVERS_NOT_READY;
use super::own_result::{json_result, text_result};
use super::summary::Definition;
use super::{DispatchAction, DispatchFormat, DispatchSearchQuery, MissingConnection};
use crate::proxy_tool::ToolWord;
use crate::proxy_tool::{prompt_signature, search_lines, tool_signature};
use crate::wording::shorten;
use crate::{ItemKind, PublicDefinition};
use mcp_proxy_wire::json::ObjectWriter;

/// Something that a search found.
#[derive(Clone, Debug)]
pub struct DispatchHit<'a> {
    /// One line about it, under its public name.
    pub line: String,
    /// The alias of its connection.
    pub alias: &'a str,
    /// The name of its server in the configuration.
    pub connection: &'a str,
    /// What it is.
    pub kind: ItemKind,
    /// The name that its server knows, or that the configuration gave it. Of a resource or a template it is the URI, in the
    /// form that clients use.
    pub name: &'a str,
    /// Its public name, only if a call by `name` alone would be ambiguous.
    pub public: Option<&'a str>,
    /// Its definition.
    pub definition: &'a PublicDefinition,
    /// Where the words were found: `name`, `description` and so on.
    pub matched_fields: Vec<&'a str>,
}

/// The result of a search with `total` matches, of which `hits` are the best. What the `missing` connections have is not known.
pub fn render_search(
    query: &DispatchSearchQuery,
    total: u64,
    fits: bool,
    hits: &[DispatchHit<'_>],
    missing: &[MissingConnection],
) -> Bytes {
    if query.format == DispatchFormat::Text {
        let lines = hits.iter().map(|hit| hit.line.clone()).collect();
        let kind = query.kind.as_str();
        let mut lines = search_lines(&query.query, kind, total, fits, lines);
        lines.extend(missing.iter().map(MissingConnection::line));
        let mut facts = ObjectWriter::new();
        facts.text("action", DispatchAction::Search.as_str());
        facts.number("totalMatches", total);
        return text_result(&lines, facts);
    }
    let mut answer = ObjectWriter::new();
    answer.text("action", DispatchAction::Search.as_str());
    answer.text("query", &shorten(&query.query));
    answer.number("totalMatches", total);
    let returned = hits.len() as u64;
    if returned < total {
        answer.number("returned", returned);
    }
    answer.array(
        "results",
        hits.iter().map(|hit| {
            let mut shown = match query.format {
                DispatchFormat::Text | DispatchFormat::Compact => hit.compact(query),
                DispatchFormat::Detail => hit.detailed(query),
            };
            shown.texts("matchedFields", hit.matched_fields.iter().copied());
            shown.finish()
        }),
    );
    if !missing.is_empty() {
        answer.array(
            SERVERS_NOT_READY,
            missing.iter().map(MissingConnection::shown),
        );
    }
    json_result(answer)
}

impl DispatchHit<'_> {
    fn compact(&self, query: &DispatchSearchQuery) -> ObjectWriter {
        let definition = Definition::new(self.definition.to_bytes());
        let mut shown = ObjectWriter::new();
        shown.text("alias", self.alias);
        self.describe(&mut shown, &definition, query);
        shown
    }

    fn detailed(&self, query: &DispatchSearchQuery) -> ObjectWriter {
        let definition = Definition::new(self.definition.to_bytes());
        let mut connection = ObjectWriter::new();
        connection.text("alias", self.alias);
        connection.text("name", self.connection);
        let mut item = ObjectWriter::new();
        self.describe(&mut item, &definition, query);
        let mut shown = ObjectWriter::new();
        shown.object("connection", connection);
        shown.object(kind_word(self.kind), item);
        shown
    }

    fn describe(
        &self,
        shown: &mut ObjectWriter,
        definition: &Definition,
        query: &DispatchSearchQuery,
    ) {
        let is_compact = query.format != DispatchFormat::Detail;
        if is_compact && self.kind != ItemKind::Tool {
            shown.text("kind", kind_word(self.kind));
        }
        match self.kind {
            ItemKind::Tool | ItemKind::Prompt => shown.text("name", self.name),
            ItemKind::Resource => shown.text("uri", self.name),
            ItemKind::Template => shown.text("uriTemplate", self.name),
        }
        if let Some(public) = self.public {
            shown.text("public", public);
        }
        if matches!(self.kind, ItemKind::Resource | ItemKind::Template)
            && let Some(name) = definition.text("name")
        {
            shown.text("name", &name);
        }
        definition.describe(shown, query.format);
        match self.kind {
            ItemKind::Tool if is_compact => {
                shown.text(
                    "signature",
                    &tool_signature(self.name, definition.message()),
                );
            }
            ItemKind::Prompt if is_compact => {
                shown.text(
                    "signature",
                    &prompt_signature(self.name, definition.message()),
                );
            }
            ItemKind::Prompt => definition.copy(shown, "arguments"),
            ItemKind::Resource | ItemKind::Template => definition.copy(shown, "mimeType"),
            ItemKind::Tool => {}
        }
        definition.annotate(shown, query.include_annotations, self.name);
        if query.include_input_schema {
            definition.copy(shown, "inputSchema");
        }
    }
}

fn kind_word(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tool",
        ItemKind::Resource => "resource",
        ItemKind::Template => "template",
        ItemKind::Prompt => "prompt",
    }
}
