//! Tokens of a sign-in: added to requests without credentials, renewed when the server refuses one, and never put in place of
//! what a client sends itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_proxy_core::{BoxFuture, HoldOptions, OutgoingFrame, ProxyRun, RunOptions};
use mcp_proxy_transport::http::{
    AfterRefusal, HttpLink, RefusedRequest, RemoteServer, RemoteServerOptions, SignInNeeded,
    TokenSource,
};
use mcp_proxy_transport::sse::sse_link;
use mcp_proxy_transport::{RemoteLinkOptions, SessionLoss};
use mcp_proxy_wire::{Body, Frame, Message, Origin, StreamId, Transport};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::server::soon;
use crate::test_proxy::{ANSWER, TestProxy};

const CHALLENGE: &str = r#"Bearer resource_metadata="http://localhost/prm""#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A server that answers those who come with the token `good`, and remembers what came.
#[derive(Clone, Default)]
struct Protected {
    seen: Arc<Mutex<Vec<Option<String>>>>,
}

impl Protected {
    async fn start(&self) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let std = listener.into_std().unwrap();
        let copy = TcpListener::from_std(std.try_clone().unwrap()).unwrap();
        let server = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = copy.accept().await {
                let server = server.clone();
                let answer = service_fn(move |request| server.clone().answer(request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer);
                tokio::spawn(connection);
            }
        });
        TcpListener::from_std(std).unwrap()
    }

    async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let token = request.headers().get(AUTHORIZATION);
        let token = token.map(|token| token.to_str().unwrap().to_owned());
        let is_good = token.as_deref() == Some("Bearer good");
        self.seen.lock().unwrap().push(token);
        let _ = request.into_body().collect().await?;
        let response = match is_good {
            true => Response::builder()
                .header("content-type", "application/json")
                .body(Full::from(ANSWER)),
            false => Response::builder()
                .status(401)
                .header(WWW_AUTHENTICATE, CHALLENGE)
                .body(Full::from("who are you?")),
        };
        Ok(response.unwrap())
    }

    fn seen(&self) -> Vec<Option<String>> {
        self.seen.lock().unwrap().clone()
    }
}

/// The token, status and challenges of a refused request.
type RefusalFacts = (Option<String>, u16, Vec<String>);

/// Tokens of a test: the first, and the one after a refusal.
#[derive(Default)]
struct Tokens {
    first: Option<&'static str>,
    better: Option<&'static str>,
    refusals: Mutex<Vec<RefusalFacts>>,
}

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>> {
        Box::pin(std::future::ready(Ok(self
            .first
            .map(HeaderValue::from_static))))
    }

    fn refused<'a>(
        &'a self,
        refused: RefusedRequest<'a>,
    ) -> BoxFuture<'a, Result<AfterRefusal, String>> {
        let token = refused
            .token
            .map(|token| token.to_str().unwrap().to_owned());
        let facts = (token, refused.status.as_u16(), refused.challenges);
        self.refusals.lock().unwrap().push(facts);
        let after = match self.better {
            Some(better) => AfterRefusal::SendAgain(HeaderValue::from_static(better)),
            None => AfterRefusal::SignInNeeded(SignInNeeded {
                text: "needs sign-in: run `mcp-proxy login`".to_owned(),
                data: r#"{"signIn":{"server":"http://localhost/mcp"}}"#.to_owned(),
            }),
        };
        Box::pin(std::future::ready(Ok(after)))
    }
}

/// Sends one request over a link that ends HTTP here. Returns the answer.
async fn ask_over_link(server: &TcpListener, kind: Transport, tokens: Arc<Tokens>) -> Value {
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| panic!("{text}")),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let remote = RemoteServer::new(RemoteServerOptions {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        ca_file: None,
        stall: Duration::from_secs(60),
        tools: Arc::default(),
        tokens: Some(tokens),
        proxy: None,
    })
    .unwrap();
    let connection = run.connect(Transport::Stdio, kind);
    let options = RemoteLinkOptions {
        max: 1 << 20,
        on_loss: SessionLoss::EndLink,
    };
    let mut link = match kind {
        Transport::Sse => {
            let end = sse_link(remote, connection, options).await.err().unwrap();
            return end_as_json(&end);
        }
        _ => HttpLink::link(remote, connection, options),
    };
    let ask = Frame::message(StreamId::Only, Origin::Client, Message::parse(ASK));
    let mut frames = vec![OutgoingFrame::Frame(ask)];
    link.writer.write(&mut frames).await.unwrap();
    let mut read = Vec::new();
    soon(link.reader.read(&mut read)).await.unwrap();
    let Body::Message(answer) = &read[0].body else {
        panic!("no whole message");
    };
    serde_json::from_slice(answer.raw()).unwrap()
}

fn end_as_json(end: &mcp_proxy_core::LinkEnd) -> Value {
    let mcp_proxy_core::LinkEnd::Failed(failure) = end else {
        panic!("closed");
    };
    let data: Value = serde_json::from_str(failure.data.as_deref().unwrap()).unwrap();
    serde_json::json!({"error": {"code": failure.code.get(), "data": data}})
}

fn token(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn requests_without_credentials_get_the_token() {
    let (server, folder) = (Protected::default(), tempfile::tempdir().unwrap());
    let listener = server.start().await;
    let tokens = Arc::new(Tokens {
        first: Some("Bearer good"),
        ..Tokens::default()
    });
    let proxy = TestProxy::signed_in(folder.path(), &listener, Some(tokens));
    assert_eq!(proxy.ask(Method::POST).await.status(), 200);
    assert_eq!(server.seen(), [token("Bearer good")]);
}

#[tokio::test]
async fn a_clients_own_credentials_pass_unchanged() {
    let (server, folder) = (Protected::default(), tempfile::tempdir().unwrap());
    let listener = server.start().await;
    let tokens = Arc::new(Tokens {
        first: Some("Bearer good"),
        better: Some("Bearer good"),
        ..Tokens::default()
    });
    let proxy = TestProxy::signed_in(folder.path(), &listener, Some(Arc::clone(&tokens) as _));
    let answer = proxy.ask_as(Method::POST, Some("Bearer own")).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()[WWW_AUTHENTICATE], CHALLENGE);
    assert_eq!(server.seen(), [token("Bearer own")]);
    assert!(tokens.refusals.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_request_is_sent_once_more_with_a_better_token() {
    let server = Protected::default();
    let listener = server.start().await;
    let tokens = Arc::new(Tokens {
        first: Some("Bearer old"),
        better: Some("Bearer good"),
        ..Tokens::default()
    });
    let answer = ask_over_link(&listener, Transport::StreamableHttp, Arc::clone(&tokens)).await;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.seen(), [token("Bearer old"), token("Bearer good")]);
    let refused = tokens.refusals.lock().unwrap();
    assert_eq!(
        *refused,
        [(token("Bearer old"), 401, vec![CHALLENGE.to_owned()])]
    );
}

#[tokio::test]
async fn a_token_that_is_refused_again_is_not_tried_for_ever() {
    let server = Protected::default();
    let listener = server.start().await;
    let tokens = Arc::new(Tokens {
        first: Some("Bearer old"),
        better: Some("Bearer older"),
        ..Tokens::default()
    });
    let answer = ask_over_link(&listener, Transport::StreamableHttp, tokens).await;
    assert_eq!(answer["error"]["code"], -31003);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn without_a_sign_in_the_answer_says_what_to_do() {
    for kind in [Transport::StreamableHttp, Transport::Sse] {
        let server = Protected::default();
        let listener = server.start().await;
        let answer = ask_over_link(&listener, kind, Arc::default()).await;
        assert_eq!(answer["error"]["code"], -31016, "{kind:?}: {answer}");
        let server = &answer["error"]["data"]["signIn"]["server"];
        assert_eq!(server, "http://localhost/mcp");
    }
}

#[tokio::test]
async fn a_client_that_can_sign_in_itself_gets_the_servers_own_refusal() {
    let (server, folder) = (Protected::default(), tempfile::tempdir().unwrap());
    let listener = server.start().await;
    let proxy = TestProxy::signed_in(folder.path(), &listener, Some(Arc::<Tokens>::default()));
    let answer = proxy.ask(Method::POST).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()[WWW_AUTHENTICATE], CHALLENGE);
}
