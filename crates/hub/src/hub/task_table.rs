//! Which tasks there are, whose they are, and what their owners call them.
//!
//! Each server chooses the ids of its own tasks, so two of them may choose the same one. Their owner then knows the second
//! task by another id.

use std::collections::BTreeMap;

use mcp_proxy_wire::Era;
use rustc_hash::FxHashMap;

use super::servers::LinkOwner;
use crate::catalog::ServerIndex;
use crate::server_link::ClientId;

/// Tasks that are remembered. The oldest are forgotten first.
const TASKS_MAX: usize = 10_000;

/// Who may ask for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TaskOwner {
    /// The session whose call created it.
    Session(ClientId),
    /// Modern clients have no sessions: each HTTP request is a client of its own. Knowing the id is all that they can show.
    Modern,
}

/// A task as its server knows it, in one of the conversations that the server may have at once. Each can be a process of its
/// own, with ids of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServerTask {
    pub(super) server: ServerIndex,
    pub(super) owner: LinkOwner,
    pub(super) era: Era,
    pub(super) id: Box<str>,
}

/// A task as its owner knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PublicTask {
    pub(super) owner: TaskOwner,
    pub(super) id: Box<str>,
}

/// The tasks that calls have created.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    public: FxHashMap<ServerTask, (PublicTask, u64)>,
    original: FxHashMap<PublicTask, ServerTask>,
    oldest_first: BTreeMap<u64, ServerTask>,
    created: u64,
}

impl TaskTable {
    /// A call has created a task. Returns it as its owner will know it.
    pub(super) fn add(
        &mut self,
        task: ServerTask,
        owner: TaskOwner,
        server_name: &str,
    ) -> PublicTask {
        if let Some(known) = self.find_public(&task).filter(|known| known.owner == owner) {
            return known.clone();
        }
        // A server that was restarted may give out its ids again. They mean the new task.
        self.remove(&task);
        let public = self.unused_id(&task, owner, server_name);
        self.created += 1;
        self.insert(task, public.clone(), self.created);
        if self.oldest_first.len() > TASKS_MAX
            && let Some((_, oldest)) = self.oldest_first.pop_first()
        {
            self.remove(&oldest);
        }
        public
    }

    pub(super) fn find_public(&self, task: &ServerTask) -> Option<&PublicTask> {
        self.public.get(task).map(|(public, _)| public)
    }

    pub(super) fn find_original(&self, task: &PublicTask) -> Option<&ServerTask> {
        self.original.get(task)
    }

    /// The server's own id, unless the owner has a task of that name from elsewhere.
    fn unused_id(&self, task: &ServerTask, owner: TaskOwner, server_name: &str) -> PublicTask {
        let id = &task.id;
        let numbered = (2..).map(|number| format!("{id}@{server_name}-{number}"));
        let candidates = [id.to_string(), format!("{id}@{server_name}")];
        let mut candidates = candidates.into_iter().chain(numbered).map(|id| PublicTask {
            owner,
            id: id.into(),
        });
        let unused = candidates.find(|public| !self.original.contains_key(public));
        unused.unwrap_or(PublicTask {
            owner,
            id: id.clone(),
        })
    }

    fn insert(&mut self, task: ServerTask, public: PublicTask, number: u64) {
        self.oldest_first.insert(number, task.clone());
        self.original.insert(public.clone(), task.clone());
        self.public.insert(task, (public, number));
    }

    fn remove(&mut self, task: &ServerTask) {
        if let Some((public, number)) = self.public.remove(task) {
            self.original.remove(&public);
            self.oldest_first.remove(&number);
        }
    }

    /// A client has gone, and nobody else may ask for its tasks.
    pub(super) fn forget_client(&mut self, client: ClientId) {
        let owner = TaskOwner::Session(client);
        self.rebuild(|_, public| public.owner != owner);
    }

    /// A conversation that all clients shared has become this client's own, and its tasks go with it.
    pub(super) fn claim(&mut self, server: ServerIndex, client: ClientId) {
        let claimant = TaskOwner::Session(client);
        self.rebuild(|task, public| {
            if task.server == server && public.owner == claimant {
                task.owner = LinkOwner::Client(client);
            }
            true
        });
    }

    /// Servers have other places in a new configuration, and some are gone.
    pub(super) fn move_servers(&mut self, moved: &FxHashMap<ServerIndex, ServerIndex>) {
        self.rebuild(|task, _| match moved.get(&task.server) {
            Some(place) => {
                task.server = *place;
                true
            }
            None => false,
        });
    }

    /// Keeps the tasks that `keep` returns true for, as it has changed them.
    fn rebuild(&mut self, mut keep: impl FnMut(&mut ServerTask, &PublicTask) -> bool) {
        if self.public.is_empty() {
            return;
        }
        let old = std::mem::take(&mut self.public);
        self.original.clear();
        self.oldest_first.clear();
        for (mut task, (public, number)) in old {
            if keep(&mut task, &public) {
                self.insert(task, public, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(server: u16, id: &str) -> ServerTask {
        ServerTask {
            server: ServerIndex(server),
            owner: LinkOwner::Everyone,
            era: Era::Legacy,
            id: id.into(),
        }
    }

    const OWNER: TaskOwner = TaskOwner::Session(ClientId(1));

    #[test]
    fn an_id_is_changed_only_if_its_owner_has_it_already() {
        let mut table = TaskTable::default();
        let mut add = |server, id, owner| table.add(task(server, id), owner, "b").id;
        assert_eq!(&*add(0, "t", OWNER), "t");
        assert_eq!(&*add(0, "t@b", OWNER), "t@b");
        assert_eq!(&*add(1, "t", OWNER), "t@b-2");
        assert_eq!(&*add(1, "t", OWNER), "t@b-2");
        assert_eq!(&*add(2, "t", TaskOwner::Modern), "t");
        let public = PublicTask {
            owner: OWNER,
            id: "t@b-2".into(),
        };
        assert_eq!(table.find_original(&public), Some(&task(1, "t")));
    }

    #[test]
    fn the_oldest_tasks_are_forgotten_and_those_of_clients_that_leave() {
        let mut table = TaskTable::default();
        for number in 0..=TASKS_MAX {
            table.add(task(0, &number.to_string()), OWNER, "a");
        }
        assert!(table.find_public(&task(0, "0")).is_none());
        assert!(table.find_public(&task(0, "1")).is_some());
        assert_eq!(table.original.len(), TASKS_MAX);
        table.forget_client(ClientId(1));
        assert_eq!((table.original.len(), table.oldest_first.len()), (0, 0));
    }
}
