//! A socket until its user is known.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::{Caller, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{Body, ErrorCode, Frame, Message, Origin, StreamId};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::shared_user::SharedUser;
use super::{CheckedToken, RelayDriver, RelaySocket, RelaySocketHandle, lock};
use crate::audit::AuditedAction;
use crate::client_side::NewClient;
use crate::extension_side::NewExtension;
use crate::ids::{IdSource, SocketId};
use crate::opening::{
    AuthenticationStep, Credentials, SocketAuthentication, SocketRole, TokenRefusal,
};
use crate::outbox::{RelayClose, SocketOutput};
use crate::settings::RelayAccess;
use crate::user::UserRelay;

/// A message that is too large is refused in words if it is at most this many times as large as allowed. A larger one closes the
/// socket.
const REFUSED_FACTOR: usize = 2;
/// How long a peer may take to agree to a close.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// How long a socket may be silent in direct mode before it is taken for what its path says.
const DIRECT_PATIENCE: Duration = Duration::from_secs(1);

/// A socket whose user is known.
pub(super) struct AuthenticatedSocket {
    pub(super) user: Arc<SharedUser>,
    pub(super) role: SocketRole,
    pub(super) link: Link,
    pub(super) handle: Arc<dyn RelaySocketHandle>,
    pub(super) caller: Option<Arc<Caller>>,
    /// Frames that came right behind the credentials.
    pub(super) early: Vec<Frame>,
    /// Notified when there is something to write.
    pub(super) output_ready: Arc<Notify>,
    /// What the client or browser is called, for the record.
    pub(super) name: String,
    /// The token that it has shown.
    pub(super) token: String,
}

/// Speaks with a socket until it has shown a good token, or is closed.
pub(super) async fn open(
    driver: &Arc<RelayDriver>,
    id: SocketId,
    mut socket: RelaySocket,
) -> Option<AuthenticatedSocket> {
    let deadline = driver.options.authentication_deadline;
    let access = driver.options.settings.access;
    let shown = timeout(deadline, credentials(&mut socket, access)).await;
    let (credentials, early) = match shown {
        Ok(Ok(shown)) => shown,
        Ok(Err(output)) => {
            refuse(driver, &mut socket, None, output).await;
            return None;
        }
        Err(_) => {
            let close = RelayClose::Unauthorized("no credentials in time");
            let output = SocketOutput {
                close: Some(close),
                ..SocketOutput::default()
            };
            refuse(driver, &mut socket, None, output).await;
            return None;
        }
    };
    let checked = match driver.admission.turn().await {
        Ok(()) => {
            let checked = check(driver, &credentials.token).await;
            checked.map_err(|why| credentials.refusal(why))
        }
        Err(()) => Err(credentials.overload()),
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(output) => {
            refuse(driver, &mut socket, Some(credentials.role), output).await;
            return None;
        }
    };
    driver.audit(Some(&checked.user), || AuditedAction::Authenticated {
        role: credentials.role,
        address: address(&socket),
    });
    let settings = &driver.options.settings;
    let longest = settings.max_message.saturating_mul(REFUSED_FACTOR);
    socket.handle.set_max_message(longest);
    let (user, output_ready) = join(driver, id, &credentials, &checked);
    let name = credentials.name.or(credentials.client_id);
    Some(AuthenticatedSocket {
        user,
        role: credentials.role,
        link: socket.link,
        handle: socket.handle,
        caller: socket.caller,
        early,
        output_ready,
        name: name.unwrap_or_else(|| "MCP client".to_owned()),
        token: credentials.token,
    })
}

/// Closes a socket without another word.
pub(super) async fn turn_away(socket: &mut RelaySocket, close: RelayClose) {
    let output = SocketOutput {
        close: Some(close),
        ..SocketOutput::default()
    };
    finish(socket, output).await;
}

/// The first credentials, with the frames behind them, or what to say instead.
async fn credentials(
    socket: &mut RelaySocket,
    access: RelayAccess,
) -> Result<(Credentials, Vec<Frame>), SocketOutput> {
    let mut opening = SocketAuthentication::new(socket.path, access);
    if let Some(first) = opening.first_message() {
        write(socket.link.writer.as_mut(), vec![first])
            .await
            .map_err(|_| SocketOutput::default())?;
    }
    let mut silence = std::pin::pin!(tokio::time::sleep(DIRECT_PATIENCE));
    let mut is_patient = access == RelayAccess::Direct;
    let mut frames = Vec::new();
    loop {
        let read = tokio::select! {
            read = socket.link.reader.read(&mut frames) => read,
            () = &mut silence, if is_patient => {
                is_patient = false;
                match opening.silent_peer() {
                    Some(peer) => return Ok((peer, Vec::new())),
                    None => continue,
                }
            }
        };
        read.map_err(|_| SocketOutput::default())?;
        let mut rest = std::mem::take(&mut frames).into_iter();
        while let Some(frame) = rest.next() {
            let Body::Message(message) = &frame.body else {
                continue;
            };
            match opening.message(message) {
                AuthenticationStep::Wait(output) if output.close.is_some() => return Err(output),
                AuthenticationStep::Wait(output) => {
                    write(socket.link.writer.as_mut(), output.messages)
                        .await
                        .map_err(|_| SocketOutput::default())?;
                }
                AuthenticationStep::Check(credentials) => {
                    return Ok((credentials, rest.collect()));
                }
                AuthenticationStep::Begin(credentials) => {
                    let early = std::iter::once(frame).chain(rest);
                    return Ok((credentials, early.collect()));
                }
            }
        }
    }
}

fn join(
    driver: &RelayDriver,
    id: SocketId,
    credentials: &Credentials,
    checked: &CheckedToken,
) -> (Arc<SharedUser>, Arc<Notify>) {
    let mut users = lock(&driver.users);
    let user = match users.get(&*checked.user) {
        Some(user) => Arc::clone(user),
        None => {
            let name: Arc<str> = checked.user.as_str().into();
            let settings = driver.options.settings.clone();
            let relay = UserRelay::new(&name, settings, IdSource::Random);
            let audit = driver.options.audit.clone();
            let due_users = Arc::clone(&driver.due_users);
            let user = SharedUser::new(Arc::clone(&name), relay, audit, due_users);
            let user = Arc::new(user);
            users.insert(name, Arc::clone(&user));
            user
        }
    };
    let output_ready = user.remember(id, checked.clone());
    // A user with a socket is not forgotten, and others need not wait.
    drop(users);
    user.change(driver.now(), |relay, now| match credentials.role {
        SocketRole::Client => {
            let new = NewClient::new(credentials, checked.expires_at);
            relay.client_joined(id, &new, now);
        }
        SocketRole::Extension => {
            let new = NewExtension::new(credentials, checked.expires_at);
            relay.extension_joined(id, &new, now);
        }
    });
    (user, output_ready)
}

/// Checks the credentials that an open socket shows again. Whether they are good, and the same user's.
pub(super) async fn renew(
    driver: &RelayDriver,
    user: &SharedUser,
    id: SocketId,
    credentials: &Credentials,
) -> bool {
    if let Err(fault) = user.change(driver.now(), |relay, now| relay.count_renewal(now)) {
        let request = credentials.request.as_ref();
        user.change(driver.now(), |relay, now| {
            relay.refuse_request(id, request, &fault, now)
        });
        return false;
    }
    let checked = check(driver, &credentials.token).await;
    let checked = checked.and_then(|checked| match checked.user == user.name() {
        true => Ok(checked),
        false => Err(TokenRefusal::Invalid("Invalid token")),
    });
    let role = credentials.role;
    driver.audit(Some(user.name()), || match checked {
        Ok(_) => AuditedAction::Authenticated {
            role,
            address: None,
        },
        Err(why) => AuditedAction::Refused {
            role: Some(role),
            address: None,
            reason: why.reason(),
        },
    });
    user.change(driver.now(), |relay, now| match &checked {
        Ok(checked) => relay.renewed(id, credentials, checked.expires_at, now),
        Err(why) => {
            let mut refusal = credentials.refusal(*why);
            if *why == TokenRefusal::KeysUnavailable {
                // The token that it has shown before is still good.
                refusal.close = None;
            }
            relay.refused(id, &refusal, now);
        }
    });
    let is_good = checked.is_ok();
    if !is_good {
        driver.count(|counters| counters.refused_tokens += 1);
    }
    if let Ok(checked) = checked {
        user.set_token(id, checked);
    }
    is_good
}

/// Checks a token with the newest keys.
async fn check(driver: &RelayDriver, token: &str) -> Result<CheckedToken, TokenRefusal> {
    if let Some(refresh) = &driver.options.refresh_keys {
        refresh(token).await;
    }
    (driver.options.check)(token)
}

/// Closes a socket that has not shown a good token.
async fn refuse(
    driver: &RelayDriver,
    socket: &mut RelaySocket,
    role: Option<SocketRole>,
    output: SocketOutput,
) {
    // Without a close the peer has left by itself.
    if let Some(close) = output.close {
        driver.count(|counters| match close == RelayClose::OVERLOAD {
            true => counters.admission_limit += 1,
            false => counters.refused_tokens += 1,
        });
        driver.audit(None, || AuditedAction::Refused {
            role,
            address: address(socket),
            reason: close.reason(),
        });
    }
    finish(socket, output).await;
}

fn address(socket: &RelaySocket) -> Option<SocketAddr> {
    socket.caller.as_ref()?.address
}

/// Writes what is left to say to a socket and closes it.
async fn finish(socket: &mut RelaySocket, output: SocketOutput) {
    if let Some(close) = output.close {
        socket.handle.set_close(close.code(), close.reason());
    }
    let _ = write(socket.link.writer.as_mut(), output.messages).await;
    close(socket.link.writer.as_mut(), socket.link.reader.as_mut()).await;
}

/// Closes a socket and waits until its peer has agreed, as long as that is worth it.
pub(super) async fn close(writer: &mut dyn FrameWriter, reader: &mut dyn FrameReader) {
    let _ = timeout(CLOSE_DEADLINE, writer.close()).await;
    drain(reader).await;
}

/// Reads what a closed socket still says, until it has agreed to the end. A socket that is dropped with something unread in it
/// loses what was written last, the reason of the close among it.
pub(super) async fn drain(reader: &mut dyn FrameReader) {
    let reading = async {
        let mut frames = Vec::new();
        while reader.read(&mut frames).await.is_ok() {
            frames.clear();
        }
        reader.wind_up().await;
    };
    let _ = timeout(CLOSE_DEADLINE, reading).await;
}

/// Writes messages of the relay's own.
pub(super) async fn write(
    writer: &mut dyn FrameWriter,
    messages: Vec<Message>,
) -> Result<(), LinkEnd> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut frames: Vec<OutgoingFrame> = messages
        .into_iter()
        .map(|message| server_frame(message).into())
        .collect();
    writer.write(&mut frames).await
}

/// A message from the relay's side.
pub(super) fn server_frame(message: Message) -> Frame {
    Frame::message(StreamId::Only, Origin::Server, message)
}

/// Tells the relay if a socket has ended because its peer did not read.
pub(super) fn note_stall(driver: &RelayDriver, user: &SharedUser, id: SocketId, end: &LinkEnd) {
    if let LinkEnd::Failed(failure) = end
        && failure.code == ErrorCode::PEER_STALLED
    {
        user.change(driver.now(), |relay, now| relay.stalled(id, now));
    }
}
