//! The hub's own tools, as `tools/list` shows them.

use bytes::Bytes;

use crate::catalog::{CatalogServer, CatalogView, ListingState};
use crate::dispatch_tool::{self, DispatchToolOptions};
use crate::proxy_tool::{self, ProxyToolOptions};
use crate::read_tool::{self, ReadToolOptions};
use crate::wording::{counted, cut, first_sentence};

/// The most characters of the text about one server, and of the text about all of them.
const SERVER_TEXT: usize = 60;
const SERVERS_TEXT: usize = 800;

/// One of the hub's own tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnTool {
    /// `proxy`: finds and uses everything.
    Proxy(ProxyToolOptions),
    /// `proxy-dispatch`: the same for tools, with large results in files.
    Dispatch(DispatchToolOptions),
    /// `proxy-read`: only what changes nothing.
    Read(ReadToolOptions),
}

impl OwnTool {
    /// The name that clients call.
    pub fn name(&self) -> &str {
        match self {
            OwnTool::Proxy(options) => &options.name,
            OwnTool::Dispatch(options) => &options.name,
            OwnTool::Read(options) => &options.name,
        }
    }

    /// Its definition in front of these servers, which `servers_text` describes.
    pub fn definition(&self, servers: &str) -> Bytes {
        match self {
            OwnTool::Proxy(options) => proxy_tool::definition(options, servers),
            OwnTool::Dispatch(options) => dispatch_tool::definition(options, servers),
            OwnTool::Read(options) => read_tool::definition(options, servers),
        }
    }
}

/// A line that names the servers, each with what it says about itself first. If that is too long, only with their names.
pub(crate) fn servers_text<'a>(
    servers: impl Iterator<Item = (&'a CatalogServer, Option<&'a str>)>,
) -> String {
    let servers: Vec<_> = servers
        .map(|(server, about)| (server.naming().name.as_str(), about))
        .collect();
    if servers.is_empty() {
        return String::new();
    }
    let described = servers.iter().map(|(name, about)| match about {
        Some(about) => {
            let about = first_sentence(about);
            let about = cut(about.trim_end_matches('.').to_owned(), SERVER_TEXT);
            format!("{name} ({about})")
        }
        None => (*name).to_owned(),
    });
    let described: Vec<String> = described.collect();
    let text = format!("Servers: {}.", described.join(", "));
    if text.chars().count() <= SERVERS_TEXT {
        return text;
    }
    let names = servers.iter().map(|(name, _)| *name);
    format!("Servers: {}.", name_list(names, SERVERS_TEXT))
}

/// Names with commas, as many as there is room for.
pub(crate) fn name_list<'a>(names: impl Iterator<Item = &'a str>, room: usize) -> String {
    let names: Vec<&str> = names.collect();
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let comma = if text.is_empty() { "" } else { ", " };
        if text.len() + comma.len() + name.len() > room {
            let left = names.len() - at;
            text.push_str(&format!("{comma}and {}", counted(left, "more server")));
            break;
        }
        text.push_str(comma);
        text.push_str(name);
    }
    text
}

impl CatalogView {
    /// The names of the servers that are seen and not disabled, as many as there is room for.
    pub(crate) fn server_names(&self, room: usize) -> String {
        let servers = self.servers().map(|(_, server)| server);
        let enabled = servers.filter(|server| server.state() != ListingState::Disabled);
        name_list(enabled.map(|server| server.naming().name.as_str()), room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_counted() {
        assert_eq!(name_list(["a", "b"].into_iter(), 10), "a, b");
        let names = ["first", "second", "third"].into_iter();
        assert_eq!(name_list(names, 8), "first, and 2 more servers");
    }
}
