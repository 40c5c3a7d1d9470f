//! Sessions of an earlier run of the program: opened again under their ids when their clients come back.

use std::sync::Arc;

use mcp_proxy_core::Caller;
use mcp_proxy_wire::ErrorCode;
use tokio::sync::OnceCell;

use super::McpEndpoint;
use super::stateless::initialize_with;
use super::table::SessionTable;
use crate::http::legacy::session_not_found;
use crate::http::listener::HttpResponse;
use crate::http::session::{HttpSession, RestoredOpening, SessionKind};
use crate::http::session_memory::{SavedOpening, SessionKey};

impl McpEndpoint {
    /// Opens a session again that an earlier run of the program had.
    pub(super) fn restore(
        &self,
        table: &mut SessionTable,
        caller: Arc<Caller>,
        id: &str,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        let key = || SessionKey::new(id, &caller);
        let remembered = self.options.memory.as_ref();
        let Some(opening) = remembered.and_then(|memory| memory.find(&key())) else {
            return Err(Box::new(session_not_found(None)));
        };
        let session = self.open(table, SessionKind::Legacy(id.to_owned()), caller, None)?;
        let told = OnceCell::new();
        let _ = session.restored.set(RestoredOpening { opening, told });
        table.legacy.insert(id.to_owned(), Arc::clone(&session));
        // A client that only listens sends no message that the opening would have to come before.
        if let Some(own) = self.own.upgrade() {
            let session = Arc::clone(&session);
            tokio::spawn(async move { own.tell_restored(&session).await });
        }
        Ok(session)
    }

    /// Tells the server of a restored session what its client said in `initialize`, before anything else.
    pub(super) async fn tell_restored(
        &self,
        session: &HttpSession,
    ) -> Result<(), (ErrorCode, String)> {
        let Some(restored) = session.restored.get() else {
            return Ok(());
        };
        let tell = || async {
            let params = restored.opening.params();
            initialize_with(session, self.next_exchange(), &params).await
        };
        restored.told.get_or_try_init(tell).await?;
        Ok(())
    }

    /// The next run of the program should know this session.
    pub(super) fn remember(&self, session: &HttpSession, opening: SavedOpening) {
        if let (Some(memory), Some(key)) = (&self.options.memory, key(session))
            && !session.is_over()
        {
            memory.remember(key, opening);
        }
    }

    /// A session has ended for good.
    pub(super) fn forget(&self, session: &HttpSession) {
        if let (Some(memory), Some(key)) = (&self.options.memory, key(session)) {
            memory.forget(&key);
        }
    }

    /// How long the sessions have not been used.
    pub(super) fn note_idle(&self, table: &SessionTable) {
        let Some(memory) = &self.options.memory else {
            return;
        };
        for session in table.legacy.values() {
            if let Some(key) = key(session) {
                memory.note_idle(&key, session.idle());
            }
        }
    }
}

fn key(session: &HttpSession) -> Option<SessionKey> {
    let caller = session.connection.client.caller.as_deref()?;
    Some(SessionKey::new(session.legacy_id()?, caller))
}
