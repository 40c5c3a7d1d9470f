//! The channels to a proxy: requests go out, notices come in. The caller of the UI connects both to a control socket.
//!
//! Channels, because the UI waits for keys and never for a proxy.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use mcp_proxy_control::{ControlRequest, Fault, Method, Notice};
use serde::Serialize;

/// Questions and news that may wait.
const WAITING: usize = 256;

/// The UI's end.
pub struct ProxyPort {
    asks: SyncSender<ProxyRequest>,
    news: Receiver<ProxyEvent>,
    asked: u64,
}

/// The other end.
pub struct ProxyPortPeer {
    /// What the UI asks.
    pub asks: Receiver<ProxyRequest>,
    /// Where news go. An error means that the UI has ended.
    pub news: SyncSender<ProxyEvent>,
}

/// A question to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRequest {
    /// Its number; the answer has the same.
    pub id: u64,
    /// A method of the control protocol.
    pub method: Method,
    /// Its parameters, a JSON object.
    pub params: String,
}

/// A request about a record that no proxy writes. The program that opened the UI carries it out, and needs to know which
/// record is meant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordRequest<R> {
    /// The request.
    #[serde(flatten)]
    pub request: R,
    /// The record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

impl<R: ControlRequest> ControlRequest for RecordRequest<R> {
    const METHOD: Method = R::METHOD;
    type Result = R::Result;
}

/// Something from the proxy.
#[derive(Clone, Debug)]
pub enum ProxyEvent {
    /// A notice.
    Notice(Notice),
    /// An answer: the result as it was written, or why there is none.
    Answer {
        /// The question's number.
        id: u64,
        /// The result.
        result: Result<Bytes, Fault>,
    },
    /// There will be no more.
    Gone {
        /// Why.
        why: String,
    },
}

impl ProxyPort {
    /// Both ends.
    pub fn pair() -> (ProxyPort, ProxyPortPeer) {
        let (asks, far_asks) = sync_channel(WAITING);
        let (far_news, news) = sync_channel(WAITING);
        let port = ProxyPort {
            asks,
            news,
            asked: 0,
        };
        let far = ProxyPortPeer {
            asks: far_asks,
            news: far_news,
        };
        (port, far)
    }

    /// Asks. `None`: the proxy takes no more requests now.
    pub fn ask<R: ControlRequest>(&mut self, request: &R) -> Option<u64> {
        self.asked += 1;
        let id = self.asked;
        let ask = ProxyRequest {
            id,
            method: R::METHOD,
            params: request.params(),
        };
        self.asks.try_send(ask).ok().map(|()| id)
    }

    /// What has come, without waiting.
    pub fn news(&self) -> Option<ProxyEvent> {
        self.news.try_recv().ok()
    }
}
