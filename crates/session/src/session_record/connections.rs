//! The connections of a session: who they are between, and what their servers are called.

use super::{RecordedLine, SessionRecord};
use crate::index::{ConnectionPlace, Row};
use crate::{ConnectionInfo, UNNAMED_SERVER};
use std::borrow::Cow;
use std::num::NonZeroU64;

impl SessionRecord {
    /// The connections of the session, by number. A record without `open` lines has none.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionInfo> + '_ {
        self.index
            .connections
            .iter()
            .map(|known| self.read_connection(known))
    }

    /// One connection.
    pub fn connection(&self, number: u32) -> Option<ConnectionInfo> {
        let known = self.index.connection(number)?;
        Some(self.read_connection(known))
    }

    /// What the server of a connection is called: its name, or [`UNNAMED_SERVER`]. `None` if the record does not have the
    /// connection. No line is read for it.
    pub fn server_name(&self, connection: u32) -> Option<Cow<'_, str>> {
        let known = self.index.connection(connection)?;
        let name = self.index.strings.get(known.server);
        let name = name.unwrap_or(UNNAMED_SERVER);
        let hide = self.hide.as_ref();
        Some(match hide.and_then(|hide| hide.masked(name.as_bytes())) {
            Some(masked) => String::from_utf8_lossy(&masked).into_owned().into(),
            None => name.into(),
        })
    }

    /// The same for exports: only a name that somebody gave the server.
    pub(crate) fn given_server_name(&self, connection: u32) -> Option<Cow<'_, str>> {
        let known = self.index.connection(connection)?;
        self.index.strings.get(known.server)?;
        self.server_name(connection)
    }

    /// Whether the messages are of servers with different names.
    pub fn has_several_servers(&self) -> bool {
        let server = |row: &Row| {
            let known = self.index.connection(row.connection());
            known.map(|known| known.server)
        };
        let mut servers = self.index.rows.iter().filter_map(server);
        let first = servers.next();
        servers.any(|server| Some(server) != first)
    }

    fn read_connection(&self, known: &ConnectionPlace) -> ConnectionInfo {
        let line = self.line(known.line).unwrap_or_default();
        let record = RecordedLine { offset: 0, line };
        ConnectionInfo {
            number: known.number,
            client: record.member("client"),
            server: record.member("server"),
            parent: known.parent.map(NonZeroU64::get),
            closed: known.closed,
        }
    }
}
