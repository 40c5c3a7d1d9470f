//! Log levels: what each client wants to hear, and what each server was told to say.

use mcp_proxy_wire::{Era, ErrorCode, Field, Id, Message, error_response};

use super::{Hub, OpenLink};
use crate::server_link::{ClientId, HubRequest, LinkId};

/// Severity of a log message, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [(&'static str, LogLevel); 8] = [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("notice", LogLevel::Notice),
        ("warning", LogLevel::Warning),
        ("error", LogLevel::Error),
        ("critical", LogLevel::Critical),
        ("alert", LogLevel::Alert),
        ("emergency", LogLevel::Emergency),
    ];

    pub(super) fn parse(word: &str) -> Option<LogLevel> {
        let mut levels = LogLevel::ALL.iter();
        levels
            .find(|(known, _)| *known == word)
            .map(|(_, level)| *level)
    }

    pub(super) fn word(self) -> &'static str {
        LogLevel::ALL[self as usize].0
    }
}

impl Hub {
    /// `logging/setLevel` of a client.
    pub(super) fn set_level(&mut self, client: ClientId, id: &Id, message: &Message) {
        let level = message.text(Field::Param("level"));
        let Some(level) = level.as_deref().and_then(LogLevel::parse) else {
            let words: Vec<_> = LogLevel::ALL.iter().map(|(word, _)| *word).collect();
            let text = format!("params.level must be one of {}", words.join(", "));
            let answer = error_response(Some(id), ErrorCode::INVALID_PARAMS, &text, None);
            return self.send_to_client(client, answer);
        };
        if let Some(client) = self.clients.get_mut(&client) {
            client.level = Some(level);
        }
        self.apply_log_levels();
        self.result(client, id, "{}");
    }

    /// Tells every server the most verbose level that one of its clients wants.
    pub(super) fn apply_log_levels(&mut self) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for id in links {
            self.apply_log_level(id);
        }
    }

    /// A server hears only of a change. When no client wants a level any more it keeps the last one: there is no request
    /// that takes a level back.
    pub(super) fn apply_log_level(&mut self, id: LinkId) {
        let wanted = self.wanted_level(id);
        let Some(link) = self.links.get_mut(&id).filter(|link| takes_level(link)) else {
            return;
        };
        if let Some(level) = wanted.filter(|level| link.level != Some(*level)) {
            link.level = Some(level);
            let message = Message::parse(format!(
                r#"{{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
                level.word()
            ));
            link.state.request(HubRequest::SetLevel, &message);
            self.flush_link(id, None);
        }
    }

    fn wanted_level(&self, id: LinkId) -> Option<LogLevel> {
        let clients = self.clients_of(id).into_iter();
        clients
            .filter_map(|client| self.clients.get(&client)?.level)
            .min()
    }
}

fn takes_level(link: &OpenLink) -> bool {
    link.state.is_ready() && link.state.era == Era::Legacy && link.state.description.offers.logging
}
