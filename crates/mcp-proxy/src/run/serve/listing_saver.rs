//! Keeps what servers offer for the next start, without hurry: a server may change its lists all the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;

use crate::printer;

/// Writes one file at a time for each server, with the newest lists.
pub struct ListingSaver<L> {
    /// The lists of one server are written at most this often.
    pause: Duration,
    save: Arc<dyn Fn(L) -> Result<()> + Send + Sync>,
    /// The servers whose lists are being written, each with what is to be written next.
    servers: Mutex<HashMap<String, Option<L>>>,
}

impl<L: Send + 'static> ListingSaver<L> {
    /// `save` may block.
    pub fn new(
        pause: Duration,
        save: impl Fn(L) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<ListingSaver<L>> {
        Arc::new(ListingSaver {
            pause,
            save: Arc::new(save),
            servers: Mutex::default(),
        })
    }

    /// Writes the lists of this server soon. Older ones that still wait are not written.
    pub fn keep(self: &Arc<Self>, server: &str, listing: L) {
        let mut servers = self.lock();
        if let Some(next) = servers.get_mut(server) {
            *next = Some(listing);
            return;
        }
        servers.insert(server.to_owned(), None);
        drop(servers);
        let (saver, server) = (Arc::clone(self), server.to_owned());
        tokio::spawn(async move { saver.write(&server, listing).await });
    }

    async fn write(&self, server: &str, first: L) {
        let mut unsaved = Some(first);
        while let Some(listing) = unsaved {
            let save = Arc::clone(&self.save);
            let saved = tokio::task::spawn_blocking(move || save(listing)).await;
            if let Ok(Err(error)) = saved {
                printer::say(&format!("mcp-proxy: {error:#}"));
            }
            tokio::time::sleep(self.pause).await;
            let mut servers = self.lock();
            unsaved = servers.get_mut(server).and_then(Option::take);
            if unsaved.is_none() {
                servers.remove(server);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<L>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a11_lists_that_change_all_the_time_are_saved_one_after_another() {
        let (sender, mut saved) = mpsc::unbounded_channel();
        let saver = ListingSaver::new(
            Duration::ZERO,
            move |listing: u32| Ok(sender.send(listing)?),
        );
        for listing in 0..1_000 {
            saver.keep("busy", listing);
        }
        saver.keep("calm", 2_000);
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(saved.recv().await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, [0, 999, 2_000]);
        // Nothing is left of them, and later lists are saved at once.
        while !saver.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        saver.keep("busy", 3_000);
        assert_eq!(saved.recv().await, Some(3_000));
    }
}
