//! The session itself, without its messages: what the first line of a record says, and the seed's `ProxySession`.
//!
//! The header is written once and never changed; what is only known later (when the session ended) is the `end` record, and
//! [`ProxySession`] is the two put together.

use crate::credential_redaction::CredentialRedaction;
use crate::{Error, FORMAT, OLDEST_FORMAT, PeerInfo, Redaction, RedactionFacts, timestamp};
use mcp_proxy_wire::Transport;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::SystemTime;

/// What is known about a session when it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHeader {
    /// Session UUID, see [`crate::new_session_id`].
    pub id: String,
    /// When the session started.
    pub started_at: SystemTime,
    /// Who is at the clients' end.
    pub client: PeerInfo,
    /// Who is at the server's end.
    pub server: PeerInfo,
    /// For stdio: the command that launched the server.
    pub server_command: Option<String>,
    /// For HTTP and SSE: the server's URL.
    pub server_url: Option<String>,
    /// How the proxy itself was started. Secrets in it are masked when the header is written.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The proxy's version.
    pub version: String,
    /// Anything else: target name, notes.
    pub metadata: Map<String, Value>,
}

/// The seed's `ProxySession` without its messages, which [`crate::SessionRecord`] reads one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxySession {
    /// Session UUID.
    pub id: String,
    /// When it started.
    pub started_at: SystemTime,
    /// When it ended; `None` while it runs or if it was killed.
    pub ended_at: Option<SystemTime>,
    /// The transport of the server side.
    pub transport: Transport,
    /// For stdio: the command that launched the server.
    pub server_command: Option<String>,
    /// For HTTP and SSE: the server's URL.
    pub server_url: Option<String>,
    /// Arbitrary session metadata.
    pub metadata: Map<String, Value>,
}

/// A record may come from somebody else: what it names must be next to it.
pub(crate) fn is_file_name(name: &str) -> bool {
    !(name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']))
}

impl SessionHeader {
    /// The member of `metadata` that names the session whose clients a replay plays.
    pub const REPLAY_OF: &str = "replay_of";

    /// The first line of a record. `continues` is the name of the file before it, in the same folder.
    pub(crate) fn line(
        &self,
        masks: &CredentialRedaction,
        redaction: Option<&Redaction>,
        continues: Option<&str>,
    ) -> Vec<u8> {
        let mut line = Map::new();
        line.insert("t".into(), "session".into());
        line.insert("format".into(), FORMAT.into());
        line.insert("id".into(), self.id.clone().into());
        line.insert(
            "started_at".into(),
            timestamp::to_text(self.started_at).into(),
        );
        for (key, peer) in [("client", &self.client), ("server", &self.server)] {
            let masked = peer
                .clone()
                .map_texts(|text| masks.string(&text).into_owned());
            // Strings only: this cannot fail, and a header without it can still be read.
            let peer = serde_json::to_value(masked).unwrap_or_default();
            line.insert(key.into(), peer);
        }
        let (command, url) = self.masked_server(masks);
        line.insert("server_command".into(), command.into());
        line.insert("server_url".into(), url.into());
        line.insert("argv".into(), masks.argv(&self.argv).into());
        line.insert("cwd".into(), self.cwd.clone().into());
        line.insert("version".into(), self.version.clone().into());
        line.insert("metadata".into(), Value::Object(self.metadata.clone()));
        if let Some(name) = continues {
            line.insert("continues".into(), name.into());
        }
        if let Some(redaction) = redaction {
            redaction.header(&mut line);
        }
        let mut bytes = Value::Object(line).to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }

    /// The server as it stands in the first line of a record, its command or its URL. Every other place shows the same text.
    pub fn shown_server(
        &self,
        masks: &CredentialRedaction,
        redaction: Option<&Redaction>,
    ) -> String {
        let (command, url) = self.masked_server(masks);
        let server = command.or(url).unwrap_or_default();
        match redaction.and_then(|redaction| redaction.masked(server.as_bytes())) {
            Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
            None => server,
        }
    }

    /// Command and URL without credentials.
    fn masked_server(&self, masks: &CredentialRedaction) -> (Option<String>, Option<String>) {
        let command = self.server_command.as_deref();
        let url = self.server_url.as_deref();
        (
            command.map(|command| masks.command(command)),
            url.map(|url| masks.url(url).into_owned()),
        )
    }

    /// The name of the file that the first line of a record says it continues.
    pub(crate) fn continues(line: &[u8]) -> Option<String> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let name = line.get("continues")?.as_str()?;
        is_file_name(name).then(|| name.to_owned())
    }

    /// What the first line of a record says about redaction. That of an import has it in its metadata.
    pub(crate) fn redaction(line: &[u8]) -> Option<RedactionFacts> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let told = line
            .get("redaction")
            .or_else(|| line.get("metadata")?.get("redaction"))?;
        RedactionFacts::deserialize(told).ok()
    }

    /// The same header without what `redaction` hides.
    pub(crate) fn redacted(self, redaction: &Redaction) -> SessionHeader {
        let masked = |text: String| match redaction.masked(text.as_bytes()) {
            Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
            None => text,
        };
        SessionHeader {
            client: self.client.map_texts(masked),
            server: self.server.map_texts(masked),
            server_command: self.server_command.map(masked),
            server_url: self.server_url.map(masked),
            argv: self.argv.into_iter().map(masked).collect(),
            ..self
        }
    }

    /// Reads the first line of a record. Members that a later version added are ignored; missing ones are empty.
    pub(crate) fn read(line: &[u8], path: &Path) -> Result<SessionHeader, Error> {
        let not_a_record = |why: &str| Error::NotARecord {
            path: path.to_path_buf(),
            why: why.to_owned(),
        };
        let Ok(Value::Object(mut line)) = serde_json::from_slice(line) else {
            return Err(not_a_record("its first line is not a JSON object"));
        };
        if line.get("t").and_then(Value::as_str) != Some("session") {
            return Err(not_a_record("its first line is not a session header"));
        }
        let format = line.get("format").and_then(Value::as_u64).unwrap_or(0);
        if !(u64::from(OLDEST_FORMAT)..=u64::from(FORMAT)).contains(&format) {
            return Err(Error::Format {
                path: path.to_path_buf(),
                format,
                supported: FORMAT,
            });
        }
        let mut peer = |key: &str| {
            let peer = line.remove(key).unwrap_or_default();
            // Redaction leaves the transport alone, so what cannot be read was never there.
            PeerInfo::deserialize(peer).unwrap_or_else(|_| PeerInfo::new(Transport::Stdio))
        };
        let (client, server) = (peer("client"), peer("server"));
        let mut text = |key: &str| match line.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(SessionHeader {
            id: text("id").ok_or_else(|| not_a_record("its header has no id"))?,
            started_at: text("started_at")
                .and_then(|time| timestamp::parse(&time))
                .ok_or_else(|| not_a_record("its header has no started_at"))?,
            client,
            server,
            server_command: text("server_command"),
            server_url: text("server_url"),
            cwd: text("cwd"),
            version: text("version").unwrap_or_default(),
            argv: match line.remove("argv") {
                Some(Value::Array(words)) => words
                    .into_iter()
                    .filter_map(|word| word.as_str().map(str::to_owned))
                    .collect(),
                _ => Vec::new(),
            },
            metadata: match line.remove("metadata") {
                Some(Value::Object(metadata)) => metadata,
                _ => Map::new(),
            },
        })
    }
}
