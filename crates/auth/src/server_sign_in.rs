//! Everything about signing in to one server.

mod machine;
mod refusals;
mod renewal;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;
use url::Url;

use crate::discovery::Discovery;
use crate::http::{AddressPolicy, SafeClient};
use crate::server_key::ServerKey;
use crate::store::{SignIn, SignInSecrets, StoredSignIn};
use crate::token_endpoint::{TokenAnswer, TokenEndpoint};
use crate::{
    AuthError, AuthSettings, BearerToken, Generation, Grant, PendingLogin, SignInFacts,
    SignInState, SignIns,
};

/// A token is renewed this long before it expires, or after three quarters of a shorter life.
const RENEW_BEFORE: u64 = 30;
/// All requests before the browser opens. Each has a deadline of its own.
const BEGIN_DEADLINE: Duration = Duration::from_secs(60);
/// A person who signs in waits no longer for a renewal, which finds the new sign-in then.
const LOGIN_PATIENCE: Duration = Duration::from_secs(30);
/// Nobody waits longer for the end of tokens that are forgotten anyway.
const REVOCATION_DEADLINE: Duration = Duration::from_secs(10);

/// The sign-in to one server. Clones share everything.
#[derive(Debug, Clone)]
pub struct ServerSignIn {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sign_ins: Arc<SignIns>,
    /// As the person wrote it, for the request that finds out where to sign in.
    server: Url,
    key: ServerKey,
    settings: AuthSettings,
    client: SafeClient,
    /// Held by the one that renews the tokens, with the failure of the last one who did.
    renewing: tokio::sync::Mutex<Option<renewal::Failure>>,
    /// Held by the one that reads the store, which may ask a person for the keychain.
    loading: tokio::sync::Mutex<()>,
    /// The sign-in as it was when it was last read.
    loaded: Mutex<(Generation, Arc<StoredSignIn>)>,
}

/// How a sign-out went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOut {
    /// Whether there was a sign-in.
    pub was_signed_in: bool,
    /// What the authorization server was told.
    pub revocation: Revocation,
}

/// Whether the authorization server revoked the tokens. They are forgotten in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// It did.
    Revoked,
    /// It has no revocation endpoint, or there was nothing to revoke. The tokens stay valid until they expire.
    NotOffered,
    /// It did not answer, or refused.
    Failed(AuthError),
}

impl ServerSignIn {
    /// For `server`, which must be https or on this machine.
    pub fn new(
        sign_ins: Arc<SignIns>,
        server: Url,
        settings: AuthSettings,
    ) -> Result<ServerSignIn, AuthError> {
        let key = ServerKey::checked(&server)?;
        let issuer = settings.authorization_server.as_ref();
        let issuer = issuer.and_then(|url| url.host_str()).map(str::to_owned);
        let hosts = settings.hosts.iter().cloned().chain(issuer);
        let policy = AddressPolicy::new(key.url(), hosts);
        let client = SafeClient::new(policy, &settings);
        Ok(ServerSignIn {
            shared: Arc::new(Shared {
                sign_ins,
                server,
                key,
                settings,
                client,
                renewing: tokio::sync::Mutex::default(),
                loading: tokio::sync::Mutex::default(),
                loaded: Mutex::default(),
            }),
        })
    }

    /// What the sign-in belongs to: the server's URL without its query.
    pub fn server(&self) -> &str {
        self.shared.key.as_str()
    }

    /// Whether the client's id and secret are enough.
    pub fn needs_no_person(&self) -> bool {
        self.shared.settings.grant == Grant::ClientCredentials
    }

    /// Whether there is a sign-in. Reads no secrets and asks nobody.
    pub fn state(&self) -> SignInState {
        self.shared.sign_ins.state(self.shared.key.url())
    }

    /// A token that is valid now: from memory, from the store, or renewed. `None`: nobody is signed in.
    pub async fn token(&self) -> Result<Option<BearerToken>, AuthError> {
        let stored = self.load().await?;
        match stored.token() {
            Some(token) if !stored.is_due() => Ok(Some(token)),
            None if !self.needs_no_person() => Ok(None),
            _ => self.renewed(None, &[]).await,
        }
    }

    /// Begins a login: finds the authorization server, registers with it if need be, and listens for the redirect.
    pub async fn begin(&self, extra_scopes: &[String]) -> Result<PendingLogin, AuthError> {
        let begun = timeout(BEGIN_DEADLINE, PendingLogin::begin(self, extra_scopes)).await;
        begun.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// Revokes the tokens where the authorization server can, and forgets them. Can be repeated after an error.
    pub async fn sign_out(&self) -> Result<SignOut, AuthError> {
        // Not in the middle of a renewal, which would store new tokens.
        let _lock = self.lock().await?;
        let loaded = self.load().await;
        let (was_signed_in, revocation) = match &loaded {
            Ok(stored) => (stored.token().is_some(), self.revoke(stored).await),
            Err(error) => (true, Revocation::Failed(error.clone())),
        };
        self.with_store(|sign_ins, key| sign_ins.forget(key))
            .await?;
        Ok(SignOut {
            was_signed_in,
            revocation,
        })
    }

    async fn revoke(&self, stored: &StoredSignIn) -> Revocation {
        let server = stored.sign_in.authorization_server.as_ref();
        let offered =
            server.and_then(|server| Some((server, server.revocation_endpoint.as_ref()?)));
        let Some((server, url)) = offered else {
            return Revocation::NotOffered;
        };
        let client = self.client().with_deadline(REVOCATION_DEADLINE);
        let endpoint = self.endpoint(&client, server, stored);
        let secrets = &stored.secrets;
        // The refresh token first: with some authorization servers the others end with it.
        let tokens = [
            (&secrets.refresh_token, "refresh_token"),
            (&secrets.access_token, "access_token"),
        ];
        let mut revocation = Revocation::NotOffered;
        for (token, kind) in tokens {
            let Some(token) = token else { continue };
            match endpoint.revoke(url, token, kind).await {
                Ok(()) if revocation == Revocation::NotOffered => revocation = Revocation::Revoked,
                Ok(()) => {}
                Err(error) => return Revocation::Failed(error),
            }
        }
        revocation
    }

    pub(crate) fn settings(&self) -> &AuthSettings {
        &self.shared.settings
    }

    pub(crate) fn client(&self) -> &SafeClient {
        &self.shared.client
    }

    pub(crate) async fn discover(&self) -> Result<Discovery, AuthError> {
        let shared = &self.shared;
        let resource = shared.key.url();
        let found = Discovery::of(&shared.server, resource, &shared.settings, &shared.client);
        let found = timeout(BEGIN_DEADLINE, found).await;
        found.unwrap_or_else(|_| Err(self.too_slow()))
    }

    fn too_slow(&self) -> AuthError {
        AuthError::TooSlow {
            host: self.shared.key.host(),
            seconds: BEGIN_DEADLINE.as_secs(),
        }
    }

    /// What the server names, what the config and the person name, what was granted before, and what was missing since.
    pub(crate) async fn scopes_to_ask(
        &self,
        discovery: &Discovery,
        extra: &[String],
    ) -> Result<Vec<String>, AuthError> {
        let named = discovery.manager.select_initial_scopes(&[]).await;
        // A machine begins anew: it asks for more when the server does.
        let (granted, missing) = match self.needs_no_person() {
            true => Default::default(),
            false => {
                let stored = &self.load().await?.sign_in;
                (stored.scopes.clone(), stored.missing_scopes.clone())
            }
        };
        let mut scopes: Vec<String> = Vec::new();
        let all = named
            .iter()
            .chain(&self.settings().scopes)
            .chain(&granted)
            .chain(&missing)
            .chain(extra);
        for scope in all {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let offline = "offline_access".to_owned();
        let mut supported = discovery.metadata.scopes_supported.iter().flatten();
        let is_offered = supported.any(|scope| *scope == offline);
        if self.needs_no_person() {
            // rmcp adds it. Machines need no refresh token.
            let configured = &self.settings().scopes;
            scopes.retain(|scope| *scope != offline || configured.contains(scope));
        } else if is_offered && !scopes.is_empty() && !scopes.contains(&offline) {
            // Without any scope, the authorization server chooses.
            scopes.push(offline);
        }
        Ok(scopes)
    }

    /// A new sign-in with what a token answer says.
    pub(crate) fn entry(&self, answer: &TokenAnswer, scopes: Vec<String>) -> SignIn {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let life = answer.expires_in;
        SignIn {
            expires_at: life.map(|life| now.saturating_add(life)),
            renew_at: life
                .map(|life| now.saturating_add(life - RENEW_BEFORE.min(life.div_ceil(4)))),
            scopes,
            ..SignIn::default()
        }
    }

    /// Keeps a new sign-in. A renewal of the old tokens that is under way must not take its place, but after some time the
    /// person's sign-in comes first.
    pub(crate) async fn store_login(
        &self,
        mut sign_in: SignIn,
        secrets: SignInSecrets,
    ) -> Result<SignInFacts, AuthError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        // It fits for centuries.
        sign_in.login = u64::try_from(now).unwrap_or_default();
        let _lock = timeout(LOGIN_PATIENCE, self.lock()).await;
        let facts = sign_in.facts();
        self.with_store(move |sign_ins, key| sign_ins.store(key, sign_in, secrets))
            .await?;
        Ok(facts)
    }

    fn endpoint<'a>(
        &'a self,
        client: &'a SafeClient,
        server: &'a crate::store::AuthorizationServer,
        stored: &'a StoredSignIn,
    ) -> TokenEndpoint<'a> {
        let settings = self.settings();
        let id = stored.sign_in.client_id.as_deref();
        // A config that names another client by now says nothing about this one's secret.
        let configured = match id == settings.client_id.as_deref() {
            true => settings.client_secret.as_ref(),
            false => None,
        };
        TokenEndpoint {
            client,
            server,
            client_id: id.unwrap_or_default(),
            client_secret: configured.or(stored.secrets.client_secret.as_ref()),
        }
    }

    /// The sign-in as it is stored now. Costs one system call if it has not changed.
    async fn load(&self) -> Result<Arc<StoredSignIn>, AuthError> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        // The others take what the first one has read.
        let _turn = self.shared.loading.lock().await;
        match self.known() {
            Some(known) => Ok(known),
            None => self.read().await,
        }
    }

    /// The same without what is known already. A process that was killed between its two writes has left newer tokens than
    /// the generation says.
    async fn load_anew(&self) -> Result<Arc<StoredSignIn>, AuthError> {
        let _turn = self.shared.loading.lock().await;
        self.read().await
    }

    fn known(&self) -> Option<Arc<StoredSignIn>> {
        let loaded = self.loaded();
        let is_current = loaded.0 == self.shared.sign_ins.generation();
        is_current.then(|| Arc::clone(&loaded.1))
    }

    async fn read(&self) -> Result<Arc<StoredSignIn>, AuthError> {
        // Before the files are read: if they change in between, they are read once more, not once too few.
        let generation = self.shared.sign_ins.generation();
        let stored = self.with_store(|sign_ins, key| sign_ins.load(key)).await?;
        let stored = Arc::new(stored);
        *self.loaded() = (generation, Arc::clone(&stored));
        Ok(stored)
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, (Generation, Arc<StoredSignIn>)> {
        let loaded = self.shared.loaded.lock();
        loaded.unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the store on a thread that may wait for the disk.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SignIns, &ServerKey) -> Result<T, AuthError> + Send + 'static,
    ) -> Result<T, AuthError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared.sign_ins, &shared.key));
        done.await.unwrap_or_else(|error| {
            Err(AuthError::Folder {
                why: error.to_string(),
            })
        })
    }
}
