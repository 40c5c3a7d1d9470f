//! A browser that follows redirects.

use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use mcp_proxy_auth::{AuthError, PendingLogin, ServerSignIn, SignInFacts};
use tokio::net::TcpStream;
use url::Url;

pub async fn get(url: &Url) -> Response<Bytes> {
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let path = &url[url::Position::BeforePath..];
    let request = Request::get(path)
        .header("host", "127.0.0.1")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(head, body)
}

/// Where a page sends the browser.
pub async fn redirect_of(url: &Url) -> Url {
    let response = get(url).await;
    let location = response.headers().get("location").expect("a redirect");
    Url::parse(location.to_str().unwrap()).unwrap()
}

/// Signs in as a person would. Returns the last page too.
pub async fn visit(login: &mut PendingLogin) -> (Result<SignInFacts, AuthError>, Response<Bytes>) {
    let back = redirect_of(login.url()).await;
    tokio::join!(login.redirected(), get(&back))
}

pub async fn sign_in(sign_in: &ServerSignIn) -> SignInFacts {
    let mut login = sign_in.begin(&[]).await.unwrap();
    visit(&mut login).await.0.unwrap()
}
