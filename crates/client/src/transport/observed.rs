//! Wraps any transport and notes what passes through it.
//!
//! rmcp hands each notification to a task of its own, so their order is lost, and a progress report can overtake the
//! registration of its listener. Here messages are seen in order, and a request brings its listener along.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, GetMeta, ProgressToken, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

use crate::call_options::{Progress, ProgressHandler};

/// Called for each notification of the server, in the order of arrival.
pub(crate) type NotificationHandler = Arc<dyn Fn(ServerNotification) + Send + Sync>;

/// What a request wants to know while it is open. It travels in the request's extensions, which are not sent.
#[derive(Clone)]
pub(crate) struct ProgressWatch {
    pub(crate) handler: Option<ProgressHandler>,
    /// Notified of each report. Gone when nobody waits for the answer any more.
    pub(crate) arrived: Weak<Notify>,
}

/// A transport that tells requests of their progress.
pub(crate) struct ObservedTransport<T> {
    inner: T,
    on_notification: Option<NotificationHandler>,
    /// Set when the server says that its tools have changed.
    tools_changed: Arc<AtomicBool>,
    open: Mutex<HashMap<RequestId, (ProgressToken, ProgressWatch)>>,
}

impl<T> ObservedTransport<T> {
    pub(crate) fn new(
        inner: T,
        on_notification: Option<NotificationHandler>,
        tools_changed: Arc<AtomicBool>,
    ) -> ObservedTransport<T> {
        ObservedTransport {
            inner,
            on_notification,
            tools_changed,
            open: Mutex::default(),
        }
    }

    fn see_outgoing(&self, message: &ClientJsonRpcMessage) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let watch = request.request.extensions().get::<ProgressWatch>();
                let token = request.request.get_meta().get_progress_token();
                if let (Some(watch), Some(token)) = (watch, token) {
                    // A request that could not be sent has no answer that would remove it.
                    open.retain(|_, (_, watch)| watch.arrived.strong_count() > 0);
                    open.insert(request.id.clone(), (token, watch.clone()));
                }
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    open.remove(id);
                }
            }
            _ => {}
        }
    }

    fn see_incoming(&self, message: &ServerJsonRpcMessage) {
        let lock = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            ServerJsonRpcMessage::Response(response) => {
                lock().remove(&response.id);
            }
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    lock().remove(id);
                }
            }
            ServerJsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(progress) =
                    &notification.notification
                {
                    let token = &progress.params.progress_token;
                    let watch = lock()
                        .values()
                        .find_map(|(open, watch)| (open == token).then(|| watch.clone()));
                    if let Some(watch) = watch {
                        if let Some(arrived) = watch.arrived.upgrade() {
                            arrived.notify_one();
                        }
                        if let Some(handler) = watch.handler {
                            handler(Progress {
                                progress: progress.params.progress,
                                total: progress.params.total,
                                message: progress.params.message.clone(),
                            });
                        }
                    }
                }
                if let ServerNotification::ToolListChangedNotification(_) =
                    &notification.notification
                {
                    self.tools_changed.store(true, Ordering::Relaxed);
                }
                if let Some(handler) = &self.on_notification {
                    handler(notification.notification.clone());
                }
            }
            ServerJsonRpcMessage::Request(_) => {}
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ObservedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.see_outgoing(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        self.see_incoming(&message);
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}
