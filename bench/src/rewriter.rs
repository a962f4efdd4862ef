//! Configuration that changes while events flow.

use crate::clock;
use anyhow::Context as _;
use std::time::Duration;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};
use turnbuckle_client::{Client, ClientOptions};
use turnbuckle_proto::v1;

/// Changes an endpoint that no event goes to, again and again; each change is a revision that every
/// plane applies. Dropping it ends it.
pub(crate) struct Rewriter(JoinHandle<anyhow::Result<Vec<Change>>>);

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) begun_us: i64,
    pub(crate) took_us: i64,
}

impl Rewriter {
    /// Starts changing, this many times a second, until this time.
    pub(crate) async fn start(
        url: &str,
        parent: &str,
        per_second: u32,
        until_us: i64,
    ) -> anyhow::Result<Self> {
        let client = Client::connect(ClientOptions::new(url)).await?;
        let target = v1::HttpTarget { url: "http://127.0.0.1:9/".to_owned(), ..Default::default() };
        let endpoint =
            v1::Endpoint { target: Some(v1::endpoint::Target::Http(target)), ..Default::default() };
        let request = v1::CreateEndpointRequest {
            parent: parent.to_owned(),
            endpoint_id: "rewritten".to_owned(),
            endpoint: Some(endpoint),
            ..Default::default()
        };
        let made = client.endpoints().create_endpoint(request).await.context("an endpoint more")?;
        let name = made.into_inner().name;
        let pause = Duration::from_secs(1) / per_second;
        Ok(Self(tokio::spawn(rewrite(client, name, pause, until_us))))
    }

    /// Waits for the last change.
    pub(crate) async fn finish(mut self) -> anyhow::Result<Vec<Change>> {
        (&mut self.0).await?
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn rewrite(
    client: Client,
    name: String,
    pause: Duration,
    until_us: i64,
) -> anyhow::Result<Vec<Change>> {
    let mut ticks = interval(pause);
    // A slow server is asked less often, not in bursts.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = Vec::new();
    loop {
        ticks.tick().await;
        let begun_us = clock::now_us();
        if begun_us >= until_us {
            return Ok(changes);
        }
        let display_name = format!("change {}", changes.len());
        let endpoint = v1::Endpoint { name: name.clone(), display_name, ..Default::default() };
        let request = v1::UpdateEndpointRequest { endpoint: Some(endpoint), ..Default::default() };
        client.endpoints().update_endpoint(request).await.context("change an endpoint")?;
        changes.push(Change { begun_us, took_us: clock::now_us() - begun_us });
    }
}
