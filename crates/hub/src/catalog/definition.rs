//! One definition: what is read from it, and its public form.
//!
//! The public form is not stored. It is the server's bytes with a few spans replaced, nearly always just the name, so what
//! is kept of it is those replacements.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, json_string};

use super::build::UnusableDefinition;
use super::{CatalogServer, Hints, ItemKind};
use crate::json::{self, Edits};
use crate::uri;

/// How deeply a definition may be nested. Many clients read 128 levels, and the list around a definition has some of them.
pub(super) const MAX_DEFINITION_DEPTH: usize = 120;

/// A definition as clients see it: the server's bytes with the public name, URI or template in them.
#[derive(Clone, Debug)]
pub struct PublicDefinition {
    /// As received, without white space around it.
    received: Bytes,
    /// What stands there instead, in order and without overlaps.
    edits: Box<[(Span, Box<[u8]>)]>,
}

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
    if value.depth() > MAX_DEFINITION_DEPTH {
        return Err(UnusableDefinition::TooDeep);
    }
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

impl PublicDefinition {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        let removed: usize = self.edits.iter().map(|(span, _)| span.range().len()).sum();
        let added: usize = self.edits.iter().map(|(_, new)| new.len()).sum();
        self.received.len() - removed + added
    }

    /// Whether it has no bytes. None of a catalog is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut done = 0;
        for (span, new) in &self.edits {
            out.extend_from_slice(&self.received[done..span.start]);
            out.extend_from_slice(new);
            done = span.end;
        }
        out.extend_from_slice(&self.received[done..]);
    }

    /// Its bytes, which are shared if they are those of the server.
    pub fn to_bytes(&self) -> Bytes {
        if self.edits.is_empty() {
            return self.received.clone();
        }
        let mut out = Vec::with_capacity(self.len());
        self.write(&mut out);
        out.into()
    }
}

impl From<Bytes> for PublicDefinition {
    /// A definition that is the same for everybody.
    fn from(received: Bytes) -> PublicDefinition {
        PublicDefinition {
            received,
            edits: Box::default(),
        }
    }
}

impl PartialEq for PublicDefinition {
    fn eq(&self, other: &PublicDefinition) -> bool {
        (self.edits == other.edits && self.received == other.received)
            || (self.len() == other.len() && self.to_bytes() == other.to_bytes())
    }
}

impl Eq for PublicDefinition {}

impl ReadDefinition {
    /// The definition that clients see.
    pub(super) fn publish(
        &self,
        kind: ItemKind,
        public: &str,
        server: &CatalogServer,
    ) -> PublicDefinition {
        let mut edits = Edits::default();
        if *public != *self.original {
            edits.replace(self.key, json_string(public));
        }
        if kind == ItemKind::Tool {
            self.describe(server, &mut edits);
            self.hide_arguments(server, &mut edits);
            self.publish_app(server, &mut edits);
        }
        let start = self.object.start;
        let moved = |(span, new): (Span, Vec<u8>)| {
            let span = Span::new(span.start - start, span.end - start);
            (span, new.into_boxed_slice())
        };
        PublicDefinition {
            received: self.value.raw().slice(self.object.range()),
            edits: edits.within(self.object).map(moved).collect(),
        }
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
