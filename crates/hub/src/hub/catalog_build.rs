//! Making a new catalog when what the servers offer has changed.
//!
//! With thousands of tools that takes tens of milliseconds, so it is done apart from the hub, which goes on with the old
//! catalog. Listings that come meanwhile are taken up together by the next build.

use std::sync::Arc;
use std::time::Instant;

use super::Hub;
use super::HubAction;
use crate::catalog::{
    Catalog, CatalogView, ChangedKinds, ServerListing, ViewFilter, changed_kinds,
};
use crate::names::ServerNaming;
use crate::server_link::ClientId;

/// Everything that a new catalog is made of.
#[derive(Debug)]
pub struct CatalogBuild {
    generation: u64,
    mounted: Vec<(Arc<ServerNaming>, Option<Arc<ServerListing>>)>,
    reserved: String,
    filters: Vec<ViewFilter>,
    old_views: Vec<Arc<CatalogView>>,
}

/// A catalog, and what is different in it for each profile.
#[derive(Debug)]
pub struct BuiltCatalog {
    generation: u64,
    catalog: Arc<Catalog>,
    views: Vec<Arc<CatalogView>>,
    changes: Vec<ChangedKinds>,
}

/// Whether a catalog is being made.
#[derive(Debug, Default)]
pub(super) struct BuildState {
    /// The build whose catalog is awaited; results of earlier ones are of no use.
    generation: u64,
    is_building: bool,
    /// A listing has changed since the build was begun.
    is_outdated: bool,
}

impl CatalogBuild {
    /// Makes the catalog.
    pub fn run(self) -> BuiltCatalog {
        let catalog = Catalog::build_reserving(&self.mounted, &[&self.reserved]);
        let catalog = Arc::new(catalog);
        let filters = self.filters.iter();
        let views: Vec<Arc<CatalogView>> = filters
            .map(|filter| Arc::new(catalog.view(filter)))
            .collect();
        let changes = self.old_views.iter().zip(&views);
        BuiltCatalog {
            generation: self.generation,
            changes: changes.map(|(old, new)| changed_kinds(old, new)).collect(),
            catalog,
            views,
        }
    }
}

impl BuildState {
    pub(super) fn is_building(&self) -> bool {
        self.is_building
    }
}

impl Hub {
    /// Has a new catalog made.
    pub(super) fn rebuild_catalog(&mut self) {
        if self.build.is_building {
            self.build.is_outdated = true;
            return;
        }
        let build = self.begin_build();
        self.build.is_building = true;
        self.actions.push(HubAction::BuildCatalog(build));
    }

    /// Makes a new catalog at once: the servers have other places, which the old one does not know.
    pub(super) fn rebuild_catalog_now(&mut self) {
        let built = self.begin_build().run();
        self.install_catalog(built);
    }

    /// A new catalog has been made. Clients whose lists have changed are told.
    pub fn catalog_built(&mut self, built: BuiltCatalog, now: Instant) {
        if built.generation != self.build.generation {
            return;
        }
        let is_outdated = self.build.is_outdated;
        self.install_catalog(built);
        if is_outdated {
            self.rebuild_catalog();
        }
        self.answer_parked(now);
    }

    fn begin_build(&mut self) -> CatalogBuild {
        self.build = BuildState {
            generation: self.build.generation + 1,
            ..BuildState::default()
        };
        let servers = self.servers.iter();
        let profiles = self.settings.profiles.iter();
        CatalogBuild {
            generation: self.build.generation,
            mounted: servers
                .map(|server| (Arc::clone(&server.settings.naming), server.listing.clone()))
                .collect(),
            reserved: self.proxy_tool.name.clone(),
            filters: profiles.map(|profile| profile.filter.clone()).collect(),
            old_views: self.views.clone(),
        }
    }

    fn install_catalog(&mut self, built: BuiltCatalog) {
        self.build.is_building = false;
        self.build.is_outdated = false;
        self.catalog = built.catalog;
        self.views = built.views;
        let clients: Vec<(ClientId, usize)> = self
            .clients
            .iter()
            .map(|(id, client)| (*id, client.profile))
            .collect();
        for (client, profile) in clients {
            if let Some(changed) = built.changes.get(profile) {
                self.tell_changes(client, *changed);
            }
        }
    }
}
