//! Listings for the tests of the catalog.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proxy_hub::{
    Catalog, CatalogView, ItemKind, ServerIndex, ServerListing, ServerNaming, ViewFilter,
};

pub(crate) type Mounted = (Arc<ServerNaming>, Option<Arc<ServerListing>>);

/// A server with the default prefix.
pub(crate) fn server(name: &str, listing: ServerListing) -> Mounted {
    server_as(ServerNaming::new(name, ""), listing)
}

pub(crate) fn server_as(naming: ServerNaming, listing: ServerListing) -> Mounted {
    (Arc::new(naming), Some(Arc::new(listing)))
}

/// A server that has not listed anything.
pub(crate) fn unlisted(name: &str) -> Mounted {
    (Arc::new(ServerNaming::new(name, "")), None)
}

/// Names and URIs as they are.
pub(crate) fn bare(name: &str) -> ServerNaming {
    ServerNaming {
        prefix: None,
        ..ServerNaming::new(name, "")
    }
}

pub(crate) fn tools(names: &[&str]) -> ServerListing {
    ServerListing {
        tools: items(names, "name"),
        ..ServerListing::default()
    }
}

pub(crate) fn prompts(names: &[&str]) -> ServerListing {
    ServerListing {
        prompts: items(names, "name"),
        ..ServerListing::default()
    }
}

pub(crate) fn resources(uris: &[&str], templates: &[&str]) -> ServerListing {
    ServerListing {
        resources: items(uris, "uri"),
        templates: items(templates, "uriTemplate"),
        ..ServerListing::default()
    }
}

/// The servers with aliases `c1`, `c2` and so on.
pub(crate) fn catalog(servers: Vec<Mounted>) -> Arc<Catalog> {
    let servers: Vec<Mounted> = servers
        .into_iter()
        .enumerate()
        .map(|(at, (naming, listing))| {
            let alias = format!("c{}", at + 1);
            let naming = ServerNaming {
                alias,
                ..ServerNaming::clone(&naming)
            };
            (Arc::new(naming), listing)
        })
        .collect();
    Arc::new(Catalog::build(&servers))
}

pub(crate) fn view(servers: Vec<Mounted>) -> CatalogView {
    catalog(servers).view(&ViewFilter::default())
}

pub(crate) fn public(catalog: &Catalog, kind: ItemKind) -> Vec<&str> {
    let entries = catalog.entries(kind).iter();
    entries.map(|entry| &*entry.public).collect()
}

pub(crate) fn index_of(catalog: &Catalog, name: &str) -> ServerIndex {
    let mut servers = catalog.servers();
    servers
        .find(|(_, server)| server.naming().name == name)
        .unwrap()
        .0
}

pub(crate) fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn items(names: &[&str], member: &str) -> Vec<Bytes> {
    let item = |name: &&str| {
        let value = serde_json::json!({ member: name, "description": "d" });
        Bytes::from(value.to_string())
    };
    names.iter().map(item).collect()
}
