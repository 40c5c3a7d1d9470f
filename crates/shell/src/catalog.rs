//! What a server offers, as its lists have it: names, descriptions, and the definition of each item.

use std::sync::Arc;

use mcp_proxy_client::CapabilityType;
use mcp_proxy_search::{SearchDocument, SearchIndex, SearchQuery, SearchSegment};
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::schema;

/// Items that a search shows.
const MOST_FOUND: usize = 50;

/// One tool, resource, resource template or prompt.
#[derive(Clone, Debug)]
pub(crate) struct CatalogItem {
    /// What it is called by: a name, a URI or a URI template.
    pub(crate) name: String,
    /// Its definition, as the server gave it.
    pub(crate) definition: Value,
}

/// Everything of one kind.
#[derive(Clone, Debug)]
pub(crate) struct CatalogPart {
    pub(crate) kind: CapabilityType,
    pub(crate) items: Vec<CatalogItem>,
    /// A server that should have been asked is not available.
    pub(crate) lacks_a_server: bool,
}

impl CatalogItem {
    /// An item of a kind, by its definition.
    pub(crate) fn new(kind: CapabilityType, definition: Value) -> CatalogItem {
        let keys: &[&str] = match kind {
            CapabilityType::Resource => &["uri", "uriTemplate", "name"],
            CapabilityType::Tool | CapabilityType::Prompt => &["name"],
        };
        let name = keys.iter().find_map(|key| definition[*key].as_str());
        CatalogItem {
            name: name.unwrap_or_default().to_owned(),
            definition,
        }
    }

    /// A text of the definition.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.definition
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    }

    /// The name for people, if it has one that is not its name.
    pub(crate) fn title(&self) -> Option<&str> {
        let annotated = self.definition.pointer("/annotations/title");
        let title = self.text("title").or(annotated.and_then(Value::as_str));
        title.filter(|title| *title != self.name)
    }

    /// What it does: the description, otherwise the title or, for a resource, its name.
    pub(crate) fn about(&self) -> &str {
        let own_name = self.text("name").filter(|name| *name != self.name);
        self.text("description")
            .or(self.title())
            .or(own_name)
            .unwrap_or_default()
    }

    /// The schema of a tool's arguments.
    pub(crate) fn input_schema(&self) -> Value {
        let schema = self.definition.get("inputSchema");
        schema
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }

    /// Whether it is a template, which stands for many resources.
    pub(crate) fn is_template(&self) -> bool {
        self.definition.get("uriTemplate").is_some()
    }

    /// The arguments of a prompt: name, description, and whether it is required.
    pub(crate) fn prompt_arguments(&self) -> Vec<(&str, &str, bool)> {
        let listed = self.definition.get("arguments").and_then(Value::as_array);
        listed
            .into_iter()
            .flatten()
            .filter_map(|argument| {
                let about = argument["description"].as_str().unwrap_or_default();
                let required = argument["required"].as_bool().unwrap_or_default();
                Some((argument["name"].as_str()?, about, required))
            })
            .collect()
    }

    fn document(&self) -> SearchDocument<'_> {
        let schema = self.definition.get("inputSchema").unwrap_or(&Value::Null);
        let properties = schema::properties(schema, schema).into_iter();
        let properties = properties
            .map(|(name, about)| (name, about["description"].as_str().unwrap_or_default()));
        let arguments = self.prompt_arguments().into_iter();
        let arguments = arguments.map(|(name, about, _)| (name, about));
        SearchDocument {
            name: &self.name,
            title: self.title().or(self.text("name")),
            server: "",
            description: self.text("description").unwrap_or_default(),
            parameters: properties.chain(arguments).collect(),
            other: Vec::new(),
        }
    }
}

impl CatalogPart {
    /// A failure if nothing is known because a server is not available, which is not the same as that there is nothing.
    pub(crate) fn check_known(&self) -> Result<(), CommandFailure> {
        match self.items.is_empty() && self.lacks_a_server {
            true => {
                let text = format!(
                    "no {}s are known, because a server is not available",
                    self.kind
                );
                Err(CommandFailure::Server(text))
            }
            false => Ok(()),
        }
    }

    /// The item that is called so.
    pub(crate) fn find(&self, name: &str) -> Option<&CatalogItem> {
        self.items.iter().find(|item| item.name == name)
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.name.as_str())
    }

    /// The items whose name contains `text`.
    pub(crate) fn containing(&self, text: &str) -> Vec<&CatalogItem> {
        let text = text.to_lowercase();
        let contains = |item: &&CatalogItem| item.name.to_lowercase().contains(&text);
        self.items.iter().filter(contains).collect()
    }

    /// The items that fit words, the best first.
    pub(crate) fn search(&self, words: &str) -> Vec<&CatalogItem> {
        let segment = SearchSegment::new(self.items.iter().map(CatalogItem::document));
        let index = SearchIndex::new(vec![Arc::new(segment)]);
        let query = SearchQuery {
            text: words,
            limit: MOST_FOUND,
        };
        let found = index.search(&query, &|_, _| true);
        let hits = found.hits.iter();
        hits.filter_map(|hit| self.items.get(hit.document))
            .collect()
    }
}
