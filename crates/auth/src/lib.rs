//! Signs in to MCP servers with OAuth, and keeps the tokens.
//!
//! [`SignIns`] is the user's store, which all processes of the user share. A [`ServerSignIn`] is everything about one server:
//! it gives [tokens](ServerSignIn::token), decides what a [refused](ServerSignIn::refused) request needs, and
//! [begins](ServerSignIn::begin) logins. A sign-in belongs to the server's URL.

mod account;
mod browser;
mod discovery;
mod error;
mod http;
mod login;
mod oauth_error;
mod refusal;
mod secret;
mod server_key;
mod server_sign_in;
mod settings;
mod state;
mod store;
mod token_endpoint;

pub use browser::open_browser;
pub use error::AuthError;
pub use http::{HttpProxy, ProxyFinder};
pub use login::PendingLogin;
pub use refusal::Refusal;
pub use secret::{BearerToken, Secret};
pub use server_sign_in::{Revocation, ServerSignIn, SignOut};
pub use settings::{AuthSettings, Grant};
pub use state::{SignInFacts, SignInState};
pub use store::{Generation, SignIns, TokenStoreChoice};
