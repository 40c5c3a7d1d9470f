//! What can go wrong with a sign-in: one sentence each, with the server, what happened and what to do.
//!
//! No text repeats a token, a code, a secret or a path, or anything else that a server sent except names of hosts and short
//! error codes.

/// Why a sign-in, a token or the store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Tokens must not go there.
    #[error("{server} is not an https URL; a sign-in needs https, except on this machine")]
    NotHttps {
        /// The server's URL.
        server: String,
    },
    /// Metadata led to a URL that is not https.
    #[error("{server} leads the sign-in to {host}, which is not https; that is refused")]
    InsecureUrl {
        /// The server's host.
        server: String,
        /// Where it led to, or a scheme.
        host: String,
    },
    /// Metadata led to an address that is not public.
    #[error(
        "{server} leads the sign-in to {host}, which has a private address; if that is right, add the host to `hosts` under the server's `auth`"
    )]
    PrivateAddress {
        /// The server's host.
        server: String,
        /// Where it led to.
        host: String,
    },
    /// A redirect would have left the origin.
    #[error("{host} redirects a request of the sign-in to another place; that is refused")]
    Redirected {
        /// Who redirected.
        host: String,
    },
    /// No answer, or none that is HTTP.
    #[error("cannot reach {host} for the sign-in: {why}")]
    Unreachable {
        /// Whom.
        host: String,
        /// What the system or the library says.
        why: String,
    },
    /// The answer took too long.
    #[error("{host} did not answer a request of the sign-in within {seconds} s")]
    TooSlow {
        /// Who.
        host: String,
        /// How long that was.
        seconds: u64,
    },
    /// The answer was too long.
    #[error("{host} answered a request of the sign-in with more than {limit} bytes")]
    TooLarge {
        /// Who.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// An error status where an answer was expected.
    #[error("{host} answered a request of the sign-in with HTTP {status}")]
    Status {
        /// Who.
        host: String,
        /// The status.
        status: u16,
    },
    /// An OAuth error.
    #[error("{host} refused the sign-in: {code}")]
    Refused {
        /// The authorization server's host.
        host: String,
        /// Its error code.
        code: String,
    },
    /// The answer was not what the specification says.
    #[error("{host} sent {what} that cannot be used: {why}")]
    BadAnswer {
        /// Who.
        host: String,
        /// What it should have been.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The server answers without a sign-in, and names no authorization server.
    #[error("{server} does not ask for a sign-in")]
    NotProtected {
        /// The server's host.
        server: String,
    },
    /// The server refuses requests without a sign-in, and there is no way to find out where to sign in.
    #[error(
        "{server} does not say where to sign in; if you know, set `authorization-server` under its `auth`"
    )]
    NoAuthorizationServer {
        /// The server's host.
        server: String,
    },
    /// The secret of the config would go to another authorization server than before.
    #[error(
        "{server} leads the sign-in to {found} instead of {expected}, and {found} must not get the client's secret; if that is right, name it as `authorization-server` under the server's `auth`, or log out first"
    )]
    OtherIssuer {
        /// The server's host.
        server: String,
        /// Where the secret went before.
        expected: String,
        /// Where it would go now.
        found: String,
    },
    /// Nobody can register with it by itself.
    #[error(
        "{host} does not register clients by itself; register one there and set `client-id` under the server's `auth`"
    )]
    NoRegistration {
        /// The authorization server's host.
        host: String,
    },
    /// It cannot do what every login needs.
    #[error("{host} does not support PKCE with S256, which a sign-in needs")]
    NoPkce {
        /// The authorization server's host.
        host: String,
    },
    /// It may not be able to do what every login needs.
    #[error(
        "{host} does not say that it supports PKCE with S256, which a sign-in needs; if you trust it, name it as `authorization-server` under the server's `auth`"
    )]
    NoWordOfPkce {
        /// The authorization server's host.
        host: String,
    },
    /// The answer came from another authorization server than the one that was asked (RFC 9207, RFC 8414).
    #[error("the answer is not from {expected}, where the sign-in began; it was not used")]
    WrongIssuer {
        /// Whom we asked.
        expected: String,
    },
    /// The answer does not say where it comes from, although the metadata promises that.
    #[error("the answer does not say that it is from {expected}, as it must; it was not used")]
    NoIssuer {
        /// Whom we asked.
        expected: String,
    },
    /// The URL is not the redirect of this login.
    #[error("this is not the URL that this sign-in ends on; it begins with {redirect}?")]
    NotTheRedirect {
        /// The redirect URL.
        redirect: String,
    },
    /// The login has ended already.
    #[error("this sign-in has ended; begin another one")]
    Ended,
    /// The redirect cannot be received.
    #[error("port {port} of this machine cannot be used for the redirect: {why}")]
    Port {
        /// The port of the config; 0: any.
        port: u16,
        /// What the system says.
        why: String,
    },
    /// No browser could be started.
    #[error("no browser could be opened")]
    NoBrowser,
    /// The file of certificate authorities.
    #[error("the certificate authorities cannot be used: {why}")]
    Certificates {
        /// What is wrong.
        why: String,
    },
    /// The folder of the store is not usable.
    #[error("the folder of the sign-ins cannot be used: {why}")]
    Folder {
        /// What is wrong with it.
        why: String,
    },
    /// A file of the store cannot be read or written.
    #[error("the file {file} of the sign-ins cannot be {what}: {why}")]
    File {
        /// Its name, without the folder.
        file: &'static str,
        /// `read` or `written`.
        what: &'static str,
        /// What the system says.
        why: String,
    },
    /// A file of the store is not what we wrote.
    #[error("the file {file} of the sign-ins is damaged; remove it and sign in again")]
    Damaged {
        /// Its name, without the folder.
        file: &'static str,
    },
    /// The keychain has the tokens, and does not give them.
    #[error(
        "the keychain did not give the tokens; unlock it, or sign in again with MCP_PROXY_TOKEN_STORE=file"
    )]
    Keychain,
    /// Another process has held the sign-in for too long.
    #[error("another process has been renewing the sign-in to {server} for too long; try again")]
    Locked {
        /// The server's host.
        server: String,
    },
}

/// What metadata of authorization servers is called.
pub(crate) const METADATA: &str = "sign-in metadata";

impl AuthError {
    pub(crate) fn malformed_url(host: String) -> AuthError {
        AuthError::BadAnswer {
            host,
            what: METADATA,
            why: "a URL is malformed".to_owned(),
        }
    }
}
