//! A TCP link between a program and what it needs, with a switch.

use std::{io, net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Bytes passed on at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// What the link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    /// Connections stay, no byte passes: a hung peer.
    Frozen,
    /// Connections break, new ones are closed at once: a peer that is gone.
    Cut,
}

/// A running link; dropping it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    target: Arc<watch::Sender<SocketAddr>>,
    mode: Arc<watch::Sender<Mode>>,
    _stop: DropGuard,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes everything on to `target`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let mode = Arc::new(watch::Sender::new(Mode::Open));
        let stop = CancellationToken::new();
        let target = Arc::new(watch::Sender::new(target));
        tokio::spawn(accept(listener, Arc::clone(&target), Arc::clone(&mode), stop.clone()));
        Ok(Self { address, target, mode, _stop: stop.drop_guard() })
    }

    /// Leads new connections elsewhere: what was there has been started again.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets no byte pass; connections stay open.
    pub fn freeze(&self) {
        self.mode.send_replace(Mode::Frozen);
    }

    /// Breaks every connection and accepts no new one.
    pub fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }

    /// Lets everything pass again.
    pub fn heal(&self) {
        self.mode.send_replace(Mode::Open);
    }
}

async fn accept(
    listener: TcpListener,
    target: Arc<watch::Sender<SocketAddr>>,
    mode: Arc<watch::Sender<Mode>>,
    stop: CancellationToken,
) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        // A peer that left before it was accepted is no reason to stop.
        let Ok((near, _)) = accepted else { continue };
        let (target, mode, stop) = (*target.borrow(), mode.subscribe(), stop.clone());
        tokio::spawn(async move {
            // Broken connections are what this is for.
            drop(stop.run_until_cancelled(link(near, target, mode)).await);
        });
    }
}

async fn link(
    near: TcpStream,
    target: SocketAddr,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    if *mode.borrow() == Mode::Cut {
        return Ok(());
    }
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let (there, back) = (mode.clone(), mode.clone());
    tokio::select! {
        ended = pump(near_read, far_write, there) => ended,
        ended = pump(far_read, near_write, back) => ended,
        _ = mode.wait_for(|mode| *mode == Mode::Cut) => Ok(()),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = from.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        if mode.wait_for(|mode| *mode != Mode::Frozen).await.is_err() {
            return Ok(());
        }
        to.write_all(&chunk[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn says(stream: &mut TcpStream, byte: u8) -> io::Result<u8> {
        stream.write_all(&[byte]).await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn a_link_freezes_breaks_and_heals() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(says(&mut stream, 1).await.unwrap(), 1);
        proxy.freeze();
        let stalled = tokio::time::timeout(Duration::from_millis(50), says(&mut stream, 2)).await;
        assert!(stalled.is_err());
        proxy.heal();
        assert_eq!(stream.read_u8().await.unwrap(), 2);
        proxy.cut();
        assert!(says(&mut stream, 3).await.is_err());
        let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(says(&mut refused, 4).await.is_err());
        proxy.heal();
        let mut fresh = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(says(&mut fresh, 5).await.unwrap(), 5);
    }
}
