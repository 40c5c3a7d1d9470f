//! Listens on loopback for the browser that comes back from the authorization server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use url::Url;

use crate::AuthError;

const PATH: &str = "/callback";
/// Browsers open connections that they never use.
const CONNECTIONS_MAX: usize = 16;
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
const HEAD_DEADLINE: Duration = Duration::from_secs(10);
/// Codes and states are short.
const HEAD_MAX: usize = 32 * 1024;

/// A redirect that arrived, and the browser that waits for a page.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) url: Url,
    /// Takes the page. Whoever sends it learns from the page's receiver when the browser has it.
    pub(super) page: oneshot::Sender<Page>,
}

/// What the browser shows.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) text: String,
    /// Dropped when the page has been written.
    pub(super) written: Option<oneshot::Sender<()>>,
}

/// The listener. It ends with this value.
#[derive(Debug)]
pub(super) struct RedirectListener {
    redirects: mpsc::Receiver<Redirect>,
    task: AbortHandle,
    port: u16,
}

impl RedirectListener {
    /// Binds `port`, or any port.
    pub(super) async fn bind(port: Option<u16>) -> Result<RedirectListener, AuthError> {
        let port = port.unwrap_or(0);
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) = bound.map_err(|error| AuthError::Port {
            port,
            why: error.to_string(),
        })?;
        let (sender, redirects) = mpsc::channel(1);
        let task = tokio::spawn(accept(listener, port, sender)).abort_handle();
        Ok(RedirectListener {
            redirects,
            task,
            port,
        })
    }

    /// What the authorization server sends the browser to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The next redirect, which any program on this machine may have sent.
    pub(super) async fn next(&mut self) -> Option<Redirect> {
        self.redirects.recv().await
    }
}

impl Drop for RedirectListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, port: u16, redirects: mpsc::Sender<Redirect>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The connections end with the listener.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or the browser has gone: the next one may work.
            sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let redirects = redirects.clone();
        connections.spawn(async move {
            serve(stream, port, redirects).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, port: u16, redirects: mpsc::Sender<Redirect>) {
    let (done, mut written) = mpsc::channel::<oneshot::Sender<()>>(1);
    let service = service_fn(|request: Request<Incoming>| {
        let (redirects, done) = (redirects.clone(), done.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(&request, port, &redirects, &done).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A browser that went away needs no page.
    let _ = connection.await;
    drop(written.try_recv());
}

async fn answer(
    request: &Request<Incoming>,
    port: u16,
    redirects: &mpsc::Sender<Redirect>,
    done: &mpsc::Sender<oneshot::Sender<()>>,
) -> Response<Full<Bytes>> {
    let url = Url::parse(&format!("http://127.0.0.1:{port}")).and_then(|base| {
        base.join(
            request
                .uri()
                .path_and_query()
                .map_or("/", |path| path.as_str()),
        )
    });
    let url = match url {
        Ok(url) if url.path() == PATH && *request.method() == Method::GET => url,
        _ => return page(StatusCode::NOT_FOUND, "There is nothing here."),
    };
    let (sender, receiver) = oneshot::channel();
    let redirect = Redirect { url, page: sender };
    let sent = redirects.send(redirect).await.is_ok();
    match receiver.await {
        Ok(shown) if sent => {
            if let Some(written) = shown.written {
                // The only page of its connection.
                let _ = done.try_send(written);
            }
            page(shown.status, &shown.text)
        }
        _ => page(
            StatusCode::GONE,
            "This sign-in has ended. Begin another one.",
        ),
    }
}

fn page(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let text = escaped(text);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>mcp-proxy</title>\
         <body style=\"font:1.1em sans-serif;margin:4em\"><h1>mcp-proxy</h1><p>{text}</p></body></html>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        (http::header::REFERRER_POLICY, "no-referrer"),
        (CONNECTION, "close"),
    ] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    response
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}
