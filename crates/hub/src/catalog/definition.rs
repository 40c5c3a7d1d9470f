//! One definition: what is read from it, and its public form.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, json_string};

use super::build::UnusableDefinition;
use super::{CatalogServer, Hints, ItemKind};
use crate::json::{self, Edits};
use crate::uri;

/// A definition as received, and what the catalog needs to know of it.
pub(super) struct ReadDefinition {
    value: Message,
    object: Span,
    /// Where the name, URI or URI template stands.
    key: Span,
    pub original: Box<str>,
    pub hints: Hints,
}

pub(super) fn read(kind: ItemKind, item: &Bytes) -> Result<ReadDefinition, UnusableDefinition> {
    let value = json::parse(item.clone()).ok_or(UnusableDefinition::NotAnObject)?;
    let object = json::object(&value).ok_or(UnusableDefinition::NotAnObject)?;
    let member = kind.key_member();
    let key = value
        .member(object, member)
        .ok_or(UnusableDefinition::NoName(member))?;
    let original: Box<str> = match value.text_at(key) {
        Some(text) if !text.is_empty() => text.into(),
        _ => return Err(UnusableDefinition::NoName(member)),
    };
    let hints = match kind {
        ItemKind::Tool => read_hints(&value, object),
        ItemKind::Resource | ItemKind::Template | ItemKind::Prompt => Hints::default(),
    };
    Ok(ReadDefinition {
        value,
        object,
        key,
        original,
        hints,
    })
}

impl ReadDefinition {
    /// Appends the definition that clients see.
    pub(super) fn write(
        &self,
        kind: ItemKind,
        public: &str,
        server: &CatalogServer,
        out: &mut Vec<u8>,
    ) {
        let mut edits = Edits::default();
        if *public != *self.original {
            edits.replace(self.key, json_string(public));
        }
        if kind == ItemKind::Tool {
            self.describe(server, &mut edits);
            self.hide_arguments(server, &mut edits);
            self.publish_app(server, &mut edits);
        }
        edits.write(self.value.raw(), self.object, out);
    }

    fn describe(&self, server: &CatalogServer, edits: &mut Edits) {
        let Some(description) = server.naming.descriptions.get(&*self.original) else {
            return;
        };
        let text = json_string(description);
        match self.value.member(self.object, "description") {
            Some(old) => edits.replace(old, text),
            None => {
                let behind = Span::new(self.key.end, self.key.end);
                edits.replace(behind, format!(",\"description\":{text}"));
            }
        }
    }

    fn hide_arguments(&self, server: &CatalogServer, edits: &mut Edits) {
        let hidden = server.naming.hidden_arguments.get(&*self.original);
        let fixed = server.naming.fixed_arguments.get(&*self.original);
        if hidden.is_none() && fixed.is_none() {
            return;
        }
        let Some(schema) = self.value.member(self.object, "inputSchema") else {
            return;
        };
        let gone = |name: &str| {
            hidden.is_some_and(|hidden| hidden.iter().any(|hidden| hidden == name))
                || fixed.is_some_and(|fixed| fixed.contains_key(name))
        };
        if let Some(properties) = self.value.member(schema, "properties") {
            edits.remove(json::member_cuts(&self.value, properties, gone));
        }
        if let Some(required) = self.value.member(schema, "required") {
            edits.remove(json::element_cuts(&self.value, required, gone));
        }
    }

    /// A tool may name the resource that shows its results (MCP Apps); it has to be found under its public URI.
    fn publish_app(&self, server: &CatalogServer, edits: &mut Edits) {
        if !mentions(&self.value, "resourceUri") {
            return;
        }
        let (Some(prefix), Some(meta)) = (server.prefix(), self.value.member(self.object, "_meta"))
        else {
            return;
        };
        let app = self.value.member(meta, "ui");
        let app = app.and_then(|app| self.value.member(app, "resourceUri"));
        for place in [app, self.value.member(meta, "ui/resourceUri")] {
            let public = place
                .and_then(|place| self.value.text_at(place))
                .filter(|text| !uri::is_web(text))
                .and_then(|text| uri::add_prefix(&text, prefix));
            if let (Some(place), Some(public)) = (place, public) {
                edits.replace(place, json_string(&public));
            }
        }
    }
}

fn read_hints(value: &Message, object: Span) -> Hints {
    if !mentions(value, "Hint\"") {
        return Hints::default();
    }
    let Some(annotations) = value.member(object, "annotations") else {
        return Hints::default();
    };
    let is_true = |name| {
        let hint = value.member(annotations, name);
        hint.is_some_and(|hint| value.slice(hint) == b"true")
    };
    Hints {
        read_only: is_true("readOnlyHint"),
        idempotent: is_true("idempotentHint"),
    }
}

/// A quick look, many times faster than finding a member. Most definitions lack what is looked for here.
fn mentions(value: &Message, text: &str) -> bool {
    memchr::memmem::find(value.raw(), text.as_bytes()).is_some()
}
