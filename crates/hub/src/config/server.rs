//! A server that the hub can offer: what it is, how to reach it, and what to do with it.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue};

use super::env_file::EnvFile;
use super::inherited::InheritedEnv;
use super::roots::RootFolder;
use super::secret::{SecretCollector, SecretText, ServerUrl};
use super::server_options::ServerOptions;

/// A server that the hub can offer. `Debug` shows no values that may be credentials.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// How to reach it.
    pub target: ServerTarget,
    /// What to do with it.
    pub options: ServerOptions,
    /// Values of variables that sound like credentials, wherever the entry uses them.
    pub(super) credentials: Vec<SecretText>,
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// A process that speaks stdio.
    Command {
        /// The program.
        program: String,
        /// Its arguments, among which keys are often passed.
        args: Vec<SecretText>,
        /// What is added to its environment.
        env: Vec<(String, SecretText)>,
        /// A file with more of them.
        env_file: Option<EnvFile>,
        /// Where it is started.
        cwd: Option<PathBuf>,
        /// What it gets of our own environment, if the entry says so.
        inherit_env: Option<InheritedEnv>,
    },
    /// A URL.
    Url {
        /// The URL.
        url: ServerUrl,
        /// Headers of every request; their values are marked sensitive.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// What it speaks; `None`: the first message finds out.
        kind: Option<UrlKind>,
    },
    /// A server in this process.
    Builtin(BuiltinTarget),
}

/// What a URL speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlKind {
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE.
    Sse,
}

/// A server in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltinTarget {
    /// Tells the time.
    Time,
    /// Reads files, and writes them if it may.
    Files {
        /// The folders that it can see, at least one.
        roots: Vec<RootFolder>,
        /// What it may do there.
        access: FileAccess,
    },
    /// The demo server.
    Demo,
}

/// What a server may do with files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// Look at them.
    #[default]
    ReadOnly,
    /// Change them as well.
    ReadWrite,
}

impl ServerSpec {
    /// A server without options.
    pub fn new(target: ServerTarget) -> ServerSpec {
        ServerSpec {
            target,
            options: ServerOptions::default(),
            credentials: Vec::new(),
        }
    }

    /// Every configured value that has to be masked wherever it appears, the longest first. Short and common values
    /// are left out.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = SecretCollector::default();
        self.collect_secrets(&mut secrets);
        secrets.into_secrets()
    }

    pub(super) fn collect_secrets(&self, secrets: &mut SecretCollector) {
        for credential in &self.credentials {
            secrets.add(credential.reveal());
        }
        let auth = self.options.auth.as_ref();
        if let Some(secret) = auth.and_then(|auth| auth.client_secret.as_ref()) {
            secrets.add(secret.reveal());
        }
        match &self.target {
            ServerTarget::Command { env, .. } => {
                for (_, value) in env {
                    secrets.add(value.reveal());
                }
            }
            ServerTarget::Url { url, headers, .. } => {
                secrets.add_url(url);
                for (_, value) in headers {
                    secrets.add_header(&String::from_utf8_lossy(value.as_bytes()));
                }
            }
            ServerTarget::Builtin(_) => {}
        }
    }
}
