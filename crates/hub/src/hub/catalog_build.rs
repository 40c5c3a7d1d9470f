//! Making a new catalog when what the servers offer has changed.
//!
//! With thousands of tools that takes tens of milliseconds, so it is done apart from the hub, which continues with the old
//! catalog. Listings that come meanwhile are taken up together by the next build.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashSet;

use super::servers::Server;
use super::{Hub, HubAction, NewServer};
use crate::catalog::{
    Catalog, CatalogView, CatalogWarning, ChangedKinds, ServerListing, ViewFilter, changed_kinds,
};
use crate::names::ServerNaming;
use crate::read_tool::READ_TOOL_NAME;
use crate::settings::HubSettings;
use crate::wording::counted;

/// A server's names and what it offers.
type MountedServer = (Arc<ServerNaming>, Option<Arc<ServerListing>>);

/// Everything that a new catalog is made of.
#[derive(Debug)]
pub struct CatalogBuild {
    generation: u64,
    mounted: Vec<MountedServer>,
    is_disabled: Vec<bool>,
    reserved: [String; 3],
    filters: Vec<ViewFilter>,
    old_catalog: Arc<Catalog>,
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

/// A new configuration, and what the catalog for it is made of.
#[derive(Debug)]
pub struct NewConfiguration {
    settings: HubSettings,
    servers: Vec<NewServer>,
    build: CatalogBuild,
}

/// A new configuration with its catalog.
#[derive(Debug)]
pub struct BuiltConfiguration {
    pub(super) settings: HubSettings,
    pub(super) servers: Vec<NewServer>,
    pub(super) catalog: ConfiguredCatalog,
}

/// The catalog of a new configuration, and what it was made of.
#[derive(Debug)]
pub(super) struct ConfiguredCatalog {
    built: BuiltCatalog,
    mounted: Vec<MountedServer>,
    old_views: Vec<Arc<CatalogView>>,
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
        let reserved = self.reserved.each_ref().map(String::as_str);
        let mut catalog = Catalog::build_reserving(&self.mounted, &reserved);
        catalog.disable(&self.is_disabled);
        catalog.search_like(&self.old_catalog);
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

impl NewConfiguration {
    /// Makes the catalog.
    pub fn run(self) -> BuiltConfiguration {
        let mounted = self.build.mounted.clone();
        let old_views = self.build.old_views.clone();
        BuiltConfiguration {
            settings: self.settings,
            servers: self.servers,
            catalog: ConfiguredCatalog {
                built: self.build.run(),
                mounted,
                old_views,
            },
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

    /// Begins to take on a new configuration. Its servers have other places, which the old catalog does not know, so nothing
    /// changes until the new catalog is there too: see [`Hub::reconfigure`].
    pub fn prepare(&self, settings: HubSettings, servers: Vec<NewServer>) -> NewConfiguration {
        let servers_of_build = servers.iter().filter_map(|server| match server {
            NewServer::Changed(settings) => {
                let mounted = (Arc::clone(&settings.naming), settings.last_listing.clone());
                Some((mounted, settings.disabled.is_some()))
            }
            NewServer::Unchanged(name) => {
                let mut known = self.servers.iter();
                let known = known.find(|known| known.name() == name)?;
                Some((mounted(known), known.disabled_reason().is_some()))
            }
        });
        let (mounted, is_disabled) = servers_of_build.unzip();
        let profiles = settings.profiles.iter();
        let build = CatalogBuild {
            // Set when it is installed: until then, builds for the servers of now go on.
            generation: 0,
            mounted,
            is_disabled,
            reserved: reserved(&settings),
            filters: profiles.map(|profile| profile.filter.clone()).collect(),
            old_catalog: Arc::clone(&self.catalog),
            old_views: self.views_for(&settings),
        };
        NewConfiguration {
            settings,
            servers,
            build,
        }
    }

    /// Installs the catalog of a new configuration, after its servers and profiles. Listings that came while it was made are
    /// taken up by the next one.
    pub(super) fn install_configured(&mut self, mut catalog: ConfiguredCatalog) {
        let is_same = |(naming, _): &MountedServer, server: &Server| {
            Arc::ptr_eq(naming, &server.settings.naming)
        };
        let servers = self.servers.iter();
        if catalog.mounted.len() != servers.len()
            || !catalog
                .mounted
                .iter()
                .zip(servers)
                .all(|(a, b)| is_same(a, b))
        {
            // Another configuration came in between.
            return self.rebuild_catalog_now();
        }
        let is_current = |(_, listing): &MountedServer, server: &Server| {
            listing.as_ref().map(Arc::as_ptr) == server.listing.as_ref().map(Arc::as_ptr)
        };
        let mut all = catalog.mounted.iter().zip(&self.servers);
        let is_current = all.all(|(a, b)| is_current(a, b));
        let seen = catalog.old_views.iter().zip(&self.views);
        if !seen.into_iter().all(|(old, now)| Arc::ptr_eq(old, now)) {
            let changes = self.views.iter().zip(&catalog.built.views);
            catalog.built.changes = changes.map(|(old, new)| changed_kinds(old, new)).collect();
        }
        // What is being made for the servers of before is of no use.
        self.build.generation += 1;
        self.install_catalog(catalog.built);
        if !is_current {
            self.rebuild_catalog();
        }
    }

    /// Makes a new catalog at once, for servers that no catalog knows yet.
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
        self.run_refreshed(now);
        self.send_listed_calls(now);
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
            mounted: servers.clone().map(mounted).collect(),
            is_disabled: servers
                .map(|server| server.disabled_reason().is_some())
                .collect(),
            reserved: reserved(&self.settings),
            filters: profiles.map(|profile| profile.filter.clone()).collect(),
            old_catalog: Arc::clone(&self.catalog),
            old_views: self.views.clone(),
        }
    }

    fn install_catalog(&mut self, built: BuiltCatalog) {
        self.build.is_building = false;
        let is_outdated = std::mem::take(&mut self.build.is_outdated);
        let old = std::mem::replace(&mut self.catalog, built.catalog);
        self.views = built.views;
        self.report_warnings(&old);
        if !is_outdated {
            self.announce_ready();
        }
        self.tell_profiles(&built.changes);
    }
}

/// Warnings that are printed for one catalog, and that `status` has for one server. A server can cause any number of them.
pub(super) const WARNINGS_SHOWN: usize = 20;

impl Hub {
    /// Tells the operator what is new among the things that could not be taken as they are.
    fn report_warnings(&mut self, old: &Catalog) {
        let known: FxHashSet<&CatalogWarning> = old.warnings().iter().collect();
        let warnings = self.catalog.warnings().iter();
        let new: Vec<&CatalogWarning> = warnings
            .filter(|warning| !known.contains(warning))
            .collect();
        let shown = new.iter().take(WARNINGS_SHOWN);
        let mut lines: Vec<String> = shown.map(|warning| warning.to_string()).collect();
        if let Some(more @ 1..) = new.len().checked_sub(WARNINGS_SHOWN) {
            lines.push(format!(
                "{} about what servers list",
                counted(more, "more warning")
            ));
        }
        let lines = lines.into_iter().map(HubAction::Log);
        self.actions.extend(lines);
    }
}

fn mounted(server: &Server) -> MountedServer {
    (Arc::clone(&server.settings.naming), server.listing.clone())
}

/// The names of our own tools, which no server's tool may have.
fn reserved(settings: &HubSettings) -> [String; 3] {
    [
        settings.proxy_tool.name.clone(),
        settings.dispatch_tool.name.clone(),
        READ_TOOL_NAME.to_owned(),
    ]
}
