//! The way to a proxy: questions go out, news come in. Whoever starts the UI connects the two ends to a control socket.
//!
//! Channels, because the UI waits for keys and never for a proxy.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use serde_json::Value;

/// Questions and news that may wait.
const WAITING: usize = 256;

/// The UI's end.
pub struct Port {
    asks: SyncSender<Ask>,
    news: Receiver<News>,
    asked: u64,
}

/// The other end.
pub struct FarEnd {
    /// What the UI asks.
    pub asks: Receiver<Ask>,
    /// Where news go. An error means that the UI has ended.
    pub news: SyncSender<News>,
}

/// A question to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its number; the answer has the same.
    pub id: u64,
    /// A method of the control protocol.
    pub method: &'static str,
    /// Its parameters, a JSON object.
    pub params: String,
}

/// Something from the proxy.
#[derive(Clone, Debug)]
pub enum News {
    /// A notice.
    Notice {
        /// `rows`, `holds` or `lagged`.
        method: String,
        /// What it says.
        params: Value,
    },
    /// An answer: the result as it was written, or why there is none.
    Answer {
        /// The question's number.
        id: u64,
        /// The result.
        result: Result<Bytes, String>,
    },
    /// There will be no more.
    Gone {
        /// Why.
        why: String,
    },
}

impl Port {
    /// Both ends.
    pub fn pair() -> (Port, FarEnd) {
        let (asks, far_asks) = sync_channel(WAITING);
        let (far_news, news) = sync_channel(WAITING);
        let port = Port {
            asks,
            news,
            asked: 0,
        };
        let far = FarEnd {
            asks: far_asks,
            news: far_news,
        };
        (port, far)
    }

    /// Asks. `None`: the proxy takes no more questions now.
    pub fn ask(&mut self, method: &'static str, params: String) -> Option<u64> {
        self.asked += 1;
        let id = self.asked;
        let ask = Ask { id, method, params };
        self.asks.try_send(ask).ok().map(|()| id)
    }

    /// What has come, without waiting.
    pub fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }
}
