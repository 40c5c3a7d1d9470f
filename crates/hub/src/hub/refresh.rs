//! `refresh` of the `proxy-dispatch` tool: servers are asked for their lists again before a request is answered.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Hub;
use super::requests::ClientRequest;
use super::work::WorkId;
use crate::catalog::ServerIndex;
use crate::dispatch_tool::DispatchOperation;
use crate::server_link::ClientId;

/// A request waits this long for servers to answer. It is then answered with what is known.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request that waits for servers to list what they offer.
#[derive(Debug)]
pub(super) struct RefreshWait {
    work: WorkId,
    operation: DispatchOperation,
    servers: BTreeSet<ServerIndex>,
    deadline: Instant,
}

impl RefreshWait {
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Hub {
    /// Asks the selected server, or all that the client sees, for their lists. The operation runs when they have answered.
    pub(super) fn refresh_first(
        &mut self,
        request: ClientRequest<'_>,
        operation: DispatchOperation,
    ) {
        let view = self.view(request.client);
        let only = operation.connection().map(|name| view.find_server(name));
        let servers: BTreeSet<ServerIndex> = view
            .servers()
            .map(|(index, _)| index)
            .filter(|index| only.is_none_or(|only| only == Some(*index)))
            .filter(|index| self.server(*index).disabled_reason().is_none())
            .collect();
        let Some(work) = self.keep_open(request) else {
            return;
        };
        for index in &servers {
            self.list_again(*index, request.now);
        }
        self.wait_for(work, operation, servers, request.now);
    }

    /// Lazy servers that have never been listed are started by the first operation that needs their lists, which runs when
    /// they have answered. The operation is returned if there is nothing to wait for.
    pub(super) fn wait_for_lists(
        &mut self,
        request: ClientRequest<'_>,
        operation: DispatchOperation,
    ) -> Option<DispatchOperation> {
        let servers = self.awaited_servers(request.client, &operation);
        // The tool may be in a list that has come, but is not in the catalog yet.
        let may_appear = self.build.is_building()
            && matches!(&operation, DispatchOperation::Call(call) if self.is_unknown(request.client, call));
        if servers.is_empty() && !may_appear {
            return Some(operation);
        }
        let work = self.keep_open(request)?;
        for index in &servers {
            self.start_main(*index, request.now);
        }
        self.wait_for(work, operation, servers, request.now);
        None
    }

    fn awaited_servers(
        &self,
        client: ClientId,
        operation: &DispatchOperation,
    ) -> BTreeSet<ServerIndex> {
        let waits_for_starting = match operation {
            DispatchOperation::List(_) | DispatchOperation::Search(_) => false,
            // It may be a tool of a server that is still starting.
            DispatchOperation::Call(call) if self.is_unknown(client, call) => true,
            DispatchOperation::Call(_)
            | DispatchOperation::Status { .. }
            | DispatchOperation::ReadResult { .. } => return BTreeSet::new(),
        };
        let view = self.view(client);
        let only = operation.connection().map(|name| view.find_server(name));
        view.servers()
            .map(|(index, _)| index)
            .filter(|index| only.is_none_or(|only| only == Some(*index)))
            .filter(|index| {
                let server = self.server(*index);
                server.is_never_listed() || waits_for_starting && !server.settled
            })
            .collect()
    }

    fn wait_for(
        &mut self,
        work: WorkId,
        operation: DispatchOperation,
        servers: BTreeSet<ServerIndex>,
        now: Instant,
    ) {
        let deadline = now + PATIENCE;
        self.refreshes.push(RefreshWait {
            work,
            operation,
            servers,
            deadline,
        });
        self.schedule(deadline);
        self.run_refreshed(now);
    }

    pub(super) fn list_again(&mut self, index: ServerIndex, now: Instant) {
        let server = self.server(index);
        let link = server.shared_link(server.main_era());
        let Some(link) = link else {
            // It lists what it offers when it has started.
            return self.start_main(index, now);
        };
        let open = self
            .links
            .get_mut(&link)
            .filter(|open| open.state.is_ready());
        let news = open.and_then(|open| open.state.list_all(now));
        self.flush_link(link, None);
        if let Some(news) = news {
            self.handle_news(link, news, now);
        }
    }

    /// A server has listed what it offers, or cannot.
    pub(super) fn refreshed(&mut self, index: ServerIndex, now: Instant) {
        for wait in &mut self.refreshes {
            wait.servers.remove(&index);
        }
        self.run_refreshed(now);
    }

    /// The servers have other places now, so nobody waits for the old ones.
    pub(super) fn stop_waiting_for_lists(&mut self, now: Instant) {
        for wait in &mut self.refreshes {
            wait.servers.clear();
        }
        self.run_refreshed(now);
    }

    /// Runs what has waited long enough, or for servers that have all answered.
    pub(super) fn run_refreshed(&mut self, now: Instant) {
        let is_building = self.build.is_building();
        let is_due = |wait: &mut RefreshWait| {
            wait.deadline <= now || wait.servers.is_empty() && !is_building
        };
        let due: Vec<RefreshWait> = self.refreshes.extract_if(.., is_due).collect();
        for wait in due {
            self.resume(wait.work, wait.operation, now);
        }
    }
}
