//! Messages of the proxy's own between two HTTP sides: each is a POST like those of the client in whose place it is sent.

use std::sync::Arc;

use mcp_proxy_core::Connection;
use mcp_proxy_core::replay::{MessageInjector, PendingInjection, ReplayError, SendFuture};
use mcp_proxy_wire::{ExchangeId, Message};

use super::HttpPassThrough;
use crate::http::injected_post::InjectedPost;

impl HttpPassThrough {
    /// How messages of ours get to the server, in the place of the client that sent what came by an exchange.
    fn injected_post(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
    ) -> Result<InjectedPost, ReplayError> {
        let head = self.sessions.head(connection.id, like)?;
        Ok(InjectedPost {
            remote: Arc::clone(&self.remote),
            url: self.remote.url_with_query(head.query()),
            connection: Arc::clone(connection),
            head,
            exchange: self.next_exchange(),
            max: self.max,
        })
    }
}

impl MessageInjector for HttpPassThrough {
    fn connection(&self, id: u32) -> Option<Arc<Connection>> {
        self.sessions.find(id)
    }

    fn inject(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
        message: Message,
    ) -> Result<PendingInjection, ReplayError> {
        let params = self.remote.tools().of(&message);
        let posting = self.injected_post(connection, like)?;
        posting.post(message, &params).map_err(ReplayError::Gone)
    }

    fn deliver_answer(
        &self,
        connection: &Arc<Connection>,
        like: ExchangeId,
        answer: Message,
    ) -> Result<SendFuture, ReplayError> {
        let posting = self.injected_post(connection, Some(like))?;
        Ok(Box::pin(posting.deliver(answer)))
    }
}
