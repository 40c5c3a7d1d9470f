//! Sign-ins that clients were asked for: begun, waited for, given up.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mcp_proxy_core::BoxFuture;
use tokio::time::timeout;

use super::{DriverState, HubDriver};
use crate::catalog::ServerIndex;
use crate::hub::{SignInChange, SignInId};

/// How long it may take to find out where people sign in.
const BEGIN_DEADLINE: Duration = Duration::from_secs(60);

/// How long a browser may take to fetch the page that says that the person is signed in.
const LAST_PAGE: Duration = Duration::from_secs(2);

/// A sign-in that waits for its person. Dropping it ends it.
pub struct SignInPage {
    /// What the person opens.
    pub url: String,
    /// Resolves when the person has signed in. A failure is a sentence for the operator.
    pub signed_in: BoxFuture<'static, Result<(), String>>,
}

/// Begins a sign-in to one server.
pub type BeginSignIn =
    Arc<dyn Fn() -> BoxFuture<'static, Result<SignInPage, String>> + Send + Sync>;

impl HubDriver {
    /// The user's sign-in to this server has changed.
    pub fn sign_in_changed(&self, name: &str, change: SignInChange) {
        self.with_hub(|hub| hub.sign_in_changed(name, change, Instant::now()));
    }

    pub(super) fn begin_sign_in(&self, state: &mut DriverState, id: SignInId, server: ServerIndex) {
        let route = state.routes.get(usize::from(server.0));
        let begin = route.and_then(|route| route.sign_in.clone());
        let task = tokio::spawn(sign_in(self.own.clone(), id, begin));
        state.sign_ins.insert(id, task.abort_handle());
    }
}

impl DriverState {
    /// Ends a sign-in that nobody waits for any more. If it is just done, its person still gets the last page.
    pub(super) fn end_sign_in(&mut self, id: SignInId) {
        let Some(task) = self.sign_ins.remove(&id) else {
            return;
        };
        tokio::spawn(async move {
            tokio::time::sleep(LAST_PAGE).await;
            task.abort();
        });
    }
}

/// Carries out a sign-in and tells the hub of its page and its end.
async fn sign_in(driver: Weak<HubDriver>, id: SignInId, begin: Option<BeginSignIn>) {
    let outcome = match begin {
        Some(begin) => carry_out(&driver, id, begin).await,
        None => Err("nobody can sign in to it in the middle of a call".to_owned()),
    };
    if let Some(driver) = driver.upgrade() {
        driver.with_state(|state| {
            state.sign_ins.remove(&id);
            state.hub.sign_in_ended(id, outcome, Instant::now());
        });
    }
}

async fn carry_out(
    driver: &Weak<HubDriver>,
    id: SignInId,
    begin: BeginSignIn,
) -> Result<(), String> {
    let too_late = |_| "the authorization server takes too long to answer".to_owned();
    let page = timeout(BEGIN_DEADLINE, begin()).await;
    let page = page.map_err(too_late)??;
    if let Some(driver) = driver.upgrade() {
        driver.with_hub(|hub| hub.sign_in_begun(id, &page.url, Instant::now()));
    }
    // The hub ends it if nobody comes in time.
    page.signed_in.await
}
