//! What a server offers, when it has been asked for its lists.

use std::sync::Arc;
use std::time::Instant;

use mcp_proxy_wire::Message;

use super::{Hub, HubAction};
use crate::catalog::{ChangedKinds, ItemKind, ServerIndex, ServerListing};
use crate::server_link::{FailedList, LinkId};
use crate::wording::{counted, first_sentence};

impl Hub {
    /// Whether the lists of this conversation are those that clients see. They are also if one client has it for itself by
    /// now, as long as there is no other.
    pub(super) fn reads_lists_from(&self, id: LinkId) -> bool {
        self.links.get(&id).is_some_and(|link| {
            let shared = self.server(link.server).shared_link(link.state.era);
            self.is_main(link) && shared.is_none_or(|shared| shared == id)
        })
    }

    /// A server has listed what it offers. A list that could not be read stays as it was, and what is kept for the next
    /// start is not touched then.
    pub(super) fn listed(
        &mut self,
        index: ServerIndex,
        mut listing: Arc<ServerListing>,
        failed: Vec<FailedList>,
        now: Instant,
    ) {
        let server = self.server_mut(index);
        let old = server.listing.clone();
        let instructions = server.description.instructions.as_deref();
        let about = instructions
            .map(first_sentence)
            .filter(|about| !about.is_empty());
        for list in &failed {
            let kind = list.kind.items();
            let known = old.as_ref().map(|old| old.items(kind).to_vec());
            *Arc::make_mut(&mut listing).items_mut(kind) = known.unwrap_or_default();
        }
        let is_known = failed.is_empty() || old.is_some() || *listing != ServerListing::default();
        if let Some(about) = &about {
            Arc::make_mut(&mut listing).about = Some(about.clone());
        }
        let listing = is_known.then_some(listing);
        let same = server.listing == listing;
        let was_away = !server.settled || server.stale || server.listing.is_none();
        server.settled = true;
        server.listed_at = Some(now);
        server.stale = is_known && !failed.is_empty();
        server.lists_failed = !failed.is_empty();
        server.is_unannounced |= was_away && failed.is_empty();
        if !same {
            server.listing.clone_from(&listing);
        }
        let name = server.name().to_owned();
        let needs = failed.iter().filter_map(|list| list.sign_in.as_ref());
        let need = needs.into_iter().find(|need| !need.lacks_scopes_only());
        match need {
            Some(need) => self.note_sign_in_need(index, need),
            None => self.report_failed_lists(index, &failed),
        }
        if let Some(listing) = listing.filter(|_| !same && failed.is_empty()) {
            let save = HubAction::SaveListing {
                server: name,
                listing,
            };
            self.actions.push(save);
        }
        let announced = std::mem::take(&mut self.server_mut(index).announced);
        match same {
            true => {
                self.announce_ready();
                self.pass_on_announced(index, announced);
            }
            false => {
                self.forget_results(index);
                self.rebuild_catalog();
            }
        }
        self.answer_parked(now);
        self.refreshed(index, now);
        self.send_listed_calls(now);
    }

    /// A server may say that its lists have changed.
    pub(super) fn note_announced(&mut self, index: ServerIndex, message: &Message) {
        let method = message.method();
        let list = method.as_deref().and_then(|method| {
            let list = method.strip_prefix("notifications/")?;
            list.strip_suffix("/list_changed")
        });
        if list == Some("tools") {
            self.forget_results(index);
        }
        let announced = &mut self.server_mut(index).announced;
        match list {
            Some("tools") => announced.tools = true,
            Some("resources") => announced.resources = true,
            Some("prompts") => announced.prompts = true,
            _ => {}
        }
    }

    /// A conversation whose lists clients do not see has read them again.
    pub(super) fn listed_elsewhere(&mut self, index: ServerIndex) {
        let announced = std::mem::take(&mut self.server_mut(index).announced);
        self.pass_on_announced(index, announced);
    }

    /// Tells clients what a server has told, although its lists are as they were. What they mean may be different, and without
    /// the hub the clients would be told too.
    fn pass_on_announced(&mut self, index: ServerIndex, announced: ChangedKinds) {
        let views = self.views.iter();
        let told: Vec<ChangedKinds> = views
            .map(|view| ChangedKinds {
                tools: announced.tools && view.lists_server(ItemKind::Tool, index),
                resources: announced.resources
                    && (view.lists_server(ItemKind::Resource, index)
                        || view.lists_server(ItemKind::Template, index)),
                prompts: announced.prompts && view.lists_server(ItemKind::Prompt, index),
            })
            .collect();
        self.tell_profiles(&told);
    }

    /// Tells the operator which lists could not be read, once for each reason.
    fn report_failed_lists(&mut self, index: ServerIndex, failed: &[FailedList]) {
        let reasons: Vec<String> = failed
            .iter()
            .map(|list| format!("{} failed: {}", list.kind.method(), list.reason))
            .collect();
        let server = self.server_mut(index);
        let reason = reasons.join("; ");
        if reasons.is_empty() || server.last_error.as_ref() == Some(&reason) {
            return;
        }
        server.last_error = Some(reason.clone());
        self.report_failure(index, &reason);
    }

    /// Tells the operator what the servers offer that have come up, once the catalog has it.
    pub(super) fn announce_ready(&mut self) {
        for index in self.server_indices() {
            if std::mem::take(&mut self.server_mut(index).is_unannounced) {
                let [tools, ..] = self.catalog.counts(index);
                let name = self.server(index).name();
                let text = format!("server {name}: ready, {}", counted(tools, "tool"));
                self.actions.push(HubAction::Log(text));
            }
        }
    }
}
