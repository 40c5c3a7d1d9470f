//! Carries the UI's questions over a control socket, and the proxy's news back.
//!
//! One connection for notices and quick questions; replays, exports and copies take their time on connections of their own, so
//! that a hold is never told late.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{self, SyncSender};

use mcp_proxy_control::{Fault, HelloRequest};
use mcp_proxy_transport::control::ControlNotification;
use mcp_proxy_transport::control::{ControlClient, ControlClientError};
use mcp_proxy_tui::{ProxyEvent, ProxyPortPeer, ProxyRequest};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{LocalSet, spawn_local};

use crate::run::runtime;
use crate::run::sessions::export::file::{RENAME, RENAME_OR_FORCE};

/// Questions on their way.
const WAITING: usize = 256;

/// Tells whether the proxy lets the UI in; if not, why.
pub type AttachReply = mpsc::Receiver<Result<(), String>>;

/// Serves the UI until one of the two ends.
pub fn serve(far: ProxyPortPeer, socket: PathBuf) -> io::Result<AttachReply> {
    let (tell, entry) = mpsc::sync_channel(1);
    let (forward, asks) = channel(WAITING);
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
    };
    let ProxyPortPeer { asks: asked, news } = far;
    spawn(
        "tui-asks",
        Box::new(move || {
            while let Ok(ask) = asked.recv() {
                if forward.blocking_send(ask).is_err() {
                    return;
                }
            }
        }),
    )?;
    spawn(
        "tui-link",
        Box::new(move || {
            let gone = match runtime() {
                Ok(runtime) => {
                    LocalSet::new().block_on(&runtime, enter(asks, &news, &socket, &tell))
                }
                Err(error) => format!("{error}"),
            };
            // The UI may have ended first.
            drop(news.send(ProxyEvent::Gone { why: gone }));
        }),
    )?;
    Ok(entry)
}

/// Why it ended.
async fn enter(
    asks: Receiver<ProxyRequest>,
    news: &SyncSender<ProxyEvent>,
    socket: &Path,
    tell: &SyncSender<Result<(), String>>,
) -> String {
    let entered = greet(socket).await.map_err(|error| error.to_string());
    // Nobody may want to know.
    let _ = tell.try_send(entered.as_ref().map(|_| ()).map_err(String::clone));
    match entered {
        Ok(client) => carry(client, asks, news, socket).await,
        Err(why) => why,
    }
}

/// A proxy that lets nobody in says so to the first question only, so that is not one of the UI's.
async fn greet(socket: &Path) -> Result<ControlClient, ControlClientError> {
    let mut client = ControlClient::connect(socket).await?;
    let hello = HelloRequest {
        name: Some("tui".to_owned()),
    };
    client.call(&hello).await?;
    Ok(client)
}

async fn carry(
    mut client: ControlClient,
    mut asks: Receiver<ProxyRequest>,
    news: &SyncSender<ProxyEvent>,
    socket: &Path,
) -> String {
    let socket: Rc<Path> = Rc::from(socket);
    loop {
        let told = tokio::select! {
            ask = asks.recv() => match ask {
                None => return "the UI has ended".to_owned(),
                Some(ask) if ask.method.is_slow() => {
                    let (news, socket) = (news.clone(), Rc::clone(&socket));
                    spawn_local(async move { drop(news.send(ask_on_own_connection(&ask, &socket).await)) });
                    continue;
                }
                Some(ask) => match client.ask(ask.method, &ask.params).await {
                    Err(error @ (ControlClientError::Gone | ControlClientError::Failed(_))) => return error.to_string(),
                    answered => answer(ask.id, answered),
                },
            },
            notice = client.notice() => match notice {
                Ok(ControlNotification { notice: Some(notice), .. }) => ProxyEvent::Notice(notice),
                // One of a newer proxy, which this UI does not know.
                Ok(ControlNotification { notice: None, .. }) => continue,
                Err(error) => return error.to_string(),
            },
        };
        if news.send(told).is_err() {
            return "the UI has ended".to_owned();
        }
    }
}

/// Asks on a connection of its own.
async fn ask_on_own_connection(ask: &ProxyRequest, socket: &Path) -> ProxyEvent {
    let answered = async {
        let mut client = greet(socket).await?;
        client.ask(ask.method, &ask.params).await
    };
    answer(ask.id, answered.await)
}

fn answer(id: u64, answered: Result<bytes::Bytes, ControlClientError>) -> ProxyEvent {
    ProxyEvent::Answer {
        id,
        result: answered.map_err(|error| match error {
            ControlClientError::Refused { code, text, data } => Fault {
                code,
                text: without_force(&text),
                data,
            },
            error => Fault::new(Fault::FAILED, error.to_string()),
        }),
    }
}

/// The UI has no `force`, which the proxy offers to all who ask.
fn without_force(text: &str) -> String {
    text.replace(RENAME_OR_FORCE, RENAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_offered_that_the_ui_does_not_have() {
        let text = format!("s.har exists; {RENAME_OR_FORCE}");
        let shown = without_force(&text);
        assert_eq!(shown, format!("s.har exists; {RENAME}"));
        assert!(!shown.contains("force"), "{shown}");
    }
}
