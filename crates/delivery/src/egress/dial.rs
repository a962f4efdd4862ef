//! Opening a connection: resolve, judge, dial, compare, shake hands.

use super::{ConnectError, EgressGuard, Refusal, Stream, Target, target::Destination};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use turnbuckle_domain::{Phase, Unreachable};

/// A healthy name server answers in milliseconds; one lost packet and its repeat fit in here.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(5);
/// Room for two lost SYNs (1 s and 3 s).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Two round trips and slow certificates.
pub const TLS_TIMEOUT: Duration = Duration::from_secs(5);

/// More addresses than this do not make a receiver more reachable, only a dead one slower.
const MAX_DIALLED: usize = 4;

impl EgressGuard {
    /// Opens a connection to the target before `deadline`.
    ///
    /// # Errors
    /// When the target's addresses are refused, or a phase fails or takes too long.
    pub async fn connect(
        &self,
        target: &Target,
        deadline: Instant,
    ) -> Result<Stream, ConnectError> {
        let addresses = self.addresses_of(target, deadline).await?;
        let tcp = dial_any(&addresses, target.port(), deadline).await?;
        let Some(server_name) = &target.server_name else {
            return Ok(Stream::Plain(tcp));
        };
        let handshake = self.tls.connect(server_name.clone(), tcp);
        match timeout_at(phase_end(TLS_TIMEOUT, deadline), handshake).await {
            Err(_) => Err(ConnectError::TimedOut(Phase::Tls)),
            Ok(Err(_)) => Err(ConnectError::Failed(Unreachable::Tls)),
            Ok(Ok(stream)) => Ok(Stream::Tls(Box::new(stream))),
        }
    }

    /// Judged addresses of the target; never empty.
    async fn addresses_of(
        &self,
        target: &Target,
        deadline: Instant,
    ) -> Result<Vec<IpAddr>, ConnectError> {
        let answers = match &target.destination {
            Destination::Address(address) => vec![*address],
            Destination::Loopback => self.loopback_addresses().collect(),
            Destination::Name(name) => {
                let lookup = self.resolver.resolve(name);
                timeout_at(phase_end(DNS_TIMEOUT, deadline), lookup)
                    .await
                    .map_err(|_| ConnectError::TimedOut(Phase::Dns))?
                    .map_err(|_| ConnectError::Failed(Unreachable::Dns))?
            }
        };
        if answers.is_empty() {
            return Err(ConnectError::Failed(Unreachable::Dns));
        }
        // Literal addresses too: the target may be older than the rules.
        self.judge_answers(&answers).map_err(ConnectError::Blocked)
    }
}

/// Tries addresses in order. Each gets an equal part of the time left, so that one that swallows
/// packets does not take it all.
async fn dial_any(
    addresses: &[IpAddr],
    port: u16,
    deadline: Instant,
) -> Result<TcpStream, ConnectError> {
    let end = phase_end(CONNECT_TIMEOUT, deadline);
    let mut failure = ConnectError::Failed(Unreachable::Connect);
    let mut left = u32::try_from(addresses.len().min(MAX_DIALLED)).unwrap_or(1);
    for address in addresses.iter().take(MAX_DIALLED) {
        let now = Instant::now();
        let turn = now + end.saturating_duration_since(now) / left;
        left = left.saturating_sub(1).max(1);
        match timeout_at(turn, dial(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error @ ConnectError::Blocked(_))) => return Err(error),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = ConnectError::TimedOut(Phase::Connect),
        }
    }
    Err(failure)
}

async fn dial(address: SocketAddr) -> Result<TcpStream, ConnectError> {
    let failed = |_: io::Error| ConnectError::Failed(Unreachable::Connect);
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    // Whatever stands between us and the network, the peer is the one that was judged.
    let peer = stream.peer_addr().map_err(failed)?;
    if peer.ip().to_canonical() != address.ip() || peer.port() != address.port() {
        return Err(ConnectError::Blocked(Refusal::Address));
    }
    // A request is written at once; waiting to fill a segment only adds delay.
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

fn phase_end(limit: Duration, deadline: Instant) -> Instant {
    (Instant::now() + limit).min(deadline)
}
