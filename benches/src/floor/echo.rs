//! The bare echo of WebSocket messages, on tokio-tungstenite: what one process can at most do with messages that come in and go
//! out again. It writes what it has when nothing more is ready to be read.

use anyhow::Result;
use futures_util::StreamExt;
use tokio::task::spawn_local;
use tokio_tungstenite::accept_async;

pub async fn serve() -> Result<()> {
    let listener = super::listen().await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn_local(async move {
            let (sink, stream) = accept_async(stream).await?.split();
            stream.forward(sink).await
        });
    }
}
