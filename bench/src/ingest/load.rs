//! Senders: connections with one request under way each.

use super::request::{Requests, Scratch, exchange};
use crate::{clock, turns::Turns};
use anyhow::Context as _;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

/// After a failed connection, or it would only measure failures.
const FAILURE_PAUSE: Duration = Duration::from_millis(5);
/// An ingress answers within a second; later than this is never.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Addresses of slow senders: enough that none meets the bound of connections of one.
const DRIP_ADDRESSES: u16 = 8;
/// Between two bytes of a slow sender: slower than any real one.
const DRIP: Duration = Duration::from_secs(1);

/// What became of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) number: u32,
    /// When it was due, or sent when there is no schedule.
    pub(crate) start_us: i64,
    pub(crate) at_us: i64,
    /// 0 when the connection failed.
    pub(crate) status: u16,
}

/// A load under way.
pub(crate) struct Load {
    senders: JoinSet<anyhow::Result<Vec<Answered>>>,
    pub(crate) turns: Arc<Turns>,
}

impl Load {
    /// Connects and starts sending.
    pub(crate) fn start(
        ingress: SocketAddr,
        connections: u16,
        requests: &Arc<Requests>,
        turns: Turns,
    ) -> Self {
        let turns = Arc::new(turns);
        let mut senders = JoinSet::new();
        for _ in 0..connections {
            senders.spawn(send(ingress, Arc::clone(requests), Arc::clone(&turns)));
        }
        Self { senders, turns }
    }

    /// Waits for the last answers.
    pub(crate) async fn finish(mut self) -> anyhow::Result<Vec<Answered>> {
        let mut all = Vec::new();
        while let Some(sender) = self.senders.join_next().await {
            all.extend(sender??);
        }
        Ok(all)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.turns.close();
    }
}

async fn send(
    ingress: SocketAddr,
    requests: Arc<Requests>,
    turns: Arc<Turns>,
) -> anyhow::Result<Vec<Answered>> {
    let mut connection = None;
    let (mut scratch, mut answer) = (Scratch::default(), Vec::with_capacity(1024));
    let mut answers = Vec::with_capacity(1024);
    while let Some(number) = turns.next().await {
        let start_us = turns.start_us(number, clock::now_us());
        let request = requests.write(number, &mut scratch)?;
        let status = once(&mut connection, ingress, request, &mut answer).await;
        if status.is_err() {
            connection = None;
            sleep(FAILURE_PAUSE).await;
        }
        let at_us = clock::now_us();
        answers.push(Answered { number, start_us, at_us, status: status.unwrap_or(0) });
    }
    Ok(answers)
}

async fn once(
    connection: &mut Option<TcpStream>,
    ingress: SocketAddr,
    request: &[u8],
    answer: &mut Vec<u8>,
) -> anyhow::Result<u16> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(ingress).await?;
            stream.set_nodelay(true)?;
            connection.insert(stream)
        }
    };
    timeout(ANSWER_TIMEOUT, exchange(stream, request, answer)).await.context("no answer")?
}

/// Sends numbers again; gives how many of them are not known as repeats.
pub(crate) async fn unknown(
    ingress: SocketAddr,
    requests: &Requests,
    numbers: &[u32],
) -> anyhow::Result<usize> {
    let (mut connection, mut scratch, mut answer) = (None, Scratch::default(), Vec::new());
    let mut unknown = 0;
    for number in numbers {
        let request = requests.write(*number, &mut scratch)?;
        let status = once(&mut connection, ingress, request, &mut answer).await?;
        unknown += usize::from(status != 200);
    }
    Ok(unknown)
}

/// Opens connections that never finish a request: half of them a head, half of them a body, one byte
/// a second. They are opened again when they are closed. Dropping it ends them.
pub(crate) fn drip(ingress: SocketAddr, connections: u16, path: &str) -> JoinSet<()> {
    let mut senders = JoinSet::new();
    for number in 0..connections {
        let mut head =
            format!("POST {path} HTTP/1.1\r\nhost: {ingress}\r\ncontent-length: 100000\r\n");
        if number % 2 == 0 {
            head.push_str("\r\n");
        } else {
            head.push_str("x-slow: ");
        }
        // From other addresses than the honest ones: each address has its own share.
        let from = Ipv4Addr::new(127, 0, 1, u8::try_from(number % DRIP_ADDRESSES).unwrap_or(0) + 1);
        senders.spawn(async move {
            loop {
                // Closed or refused: that is what is expected of the server.
                drop(drip_one(ingress, head.as_bytes(), from).await);
                sleep(DRIP).await;
            }
        });
    }
    senders
}

async fn drip_one(ingress: SocketAddr, head: &[u8], from: Ipv4Addr) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let mut stream = socket.connect(ingress).await?;
    stream.write_all(head).await?;
    loop {
        sleep(DRIP).await;
        stream.write_all(b"x").await?;
    }
}
