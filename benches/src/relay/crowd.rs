//! Thousands of idle peers. They come in by and by, and come back all at once when the relay restarts, as extensions do.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::peers::{self, BenchUser};
use super::socket::{PeerSocket, SocketTarget};

/// Published extensions give an upgrade this long, and try again after this long.
const UPGRADE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_secs(1);
/// How many come in at once the first time.
const AT_ONCE: usize = 128;
/// When a crowd is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Who each user of a crowd is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CrowdMember {
    Extension,
    /// An extension and a client that is connected to it.
    Pair,
}

/// How many sockets were let in and are open.
pub struct Crowd {
    open: Cell<usize>,
    changed: Notify,
    places: Semaphore,
}

impl Crowd {
    /// Sends all users to the relay.
    pub fn gather(target: &SocketTarget, users: Vec<BenchUser>, member: CrowdMember) -> Rc<Crowd> {
        let crowd = Rc::new(Crowd {
            open: Cell::default(),
            changed: Notify::new(),
            places: Semaphore::new(AT_ONCE),
        });
        for user in users {
            let (crowd, target) = (Rc::clone(&crowd), target.clone());
            spawn_local(async move {
                loop {
                    // Why it failed shows in how many are open.
                    let _ = crowd.visit(&target, &user, member).await;
                    sleep(RETRY).await;
                }
            });
        }
        crowd
    }

    async fn visit(
        self: &Rc<Self>,
        target: &SocketTarget,
        user: &BenchUser,
        member: CrowdMember,
    ) -> Result<()> {
        let place = self.places.acquire().await?;
        let socket = timeout(UPGRADE, PeerSocket::open(target, "/extension")).await??;
        let mut extension = peers::join_extension(socket, user).await?;
        drop(place);
        let _counted = self.count();
        if member == CrowdMember::Extension {
            return extension.serve(|_, _| {}).await;
        }
        let mut client = peers::join_client(target, user).await?;
        let _counted_too = self.count();
        tokio::try_join!(extension.serve(|_, _| {}), client.serve(|_, _| {}))?;
        Ok(())
    }

    /// Lets all come at once from now on.
    pub fn stop_queueing(&self) {
        self.places.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    fn count(self: &Rc<Self>) -> CountedSocket {
        self.open.set(self.open.get() + 1);
        self.changed.notify_one();
        CountedSocket(Rc::clone(self))
    }

    /// Waits until this many sockets are open.
    pub async fn until(&self, count: usize) -> Result<()> {
        let all = async {
            while self.open.get() != count {
                self.changed.notified().await;
            }
        };
        if timeout(PATIENCE, all).await.is_err() {
            bail!("only {} of {count} sockets are open", self.open.get());
        }
        Ok(())
    }
}

/// Counts a socket while it is open.
struct CountedSocket(Rc<Crowd>);

impl Drop for CountedSocket {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.changed.notify_one();
    }
}
