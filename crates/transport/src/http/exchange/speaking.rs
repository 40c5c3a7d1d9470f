//! Messages of the proxy's own between two HTTP sides: each is a POST like those of the client in whose place it is sent.

use std::sync::Arc;

use mcp_proxy_core::Connection;
use mcp_proxy_core::replay::{Posted, Poster, ReplayError, Sending};
use mcp_proxy_wire::{ExchangeId, Message};

use super::Exchange;
use crate::http::posting::Posting;

impl Exchange {
    /// How messages of ours get to the server, in the place of the client that sent what came by an exchange.
    fn posting(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
    ) -> Result<Posting, ReplayError> {
        let head = self.known.head(connection.id, like)?;
        Ok(Posting {
            remote: Arc::clone(&self.remote),
            url: self.remote.url_with_query(head.query()),
            connection: Arc::clone(connection),
            head,
            exchange: self.next_exchange(),
            max: self.limits.max,
        })
    }
}

impl Poster for Exchange {
    fn connection(&self, id: u32) -> Option<Arc<Connection>> {
        self.known.find(id)
    }

    fn post(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
        message: Message,
    ) -> Result<Posted, ReplayError> {
        let params = self.remote.tools().of(&message);
        let posting = self.posting(connection, like)?;
        posting.post(message, &params).map_err(ReplayError::Gone)
    }

    fn deliver(
        &self,
        connection: &Arc<Connection>,
        like: ExchangeId,
        answer: Message,
    ) -> Result<Sending, ReplayError> {
        let posting = self.posting(connection, Some(like))?;
        Ok(Box::pin(posting.deliver(answer)))
    }
}
