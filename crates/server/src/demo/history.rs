//! What the server says happened, read over its API.

use super::{ledger::Ledger, setup::PARENT};
use anyhow::Context as _;
use std::time::Duration;
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    Attempt, Delivery, DeliveryState, ListAttemptsRequest, ListDeliveriesRequest,
};

/// Results are written in groups shortly after the answer; this is far above that.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);
/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The demo's deliveries fit one page.
const PAGE_SIZE: i32 = 1000;

/// A delivery with its attempts.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) delivery: Delivery,
    pub(super) attempts: Vec<Attempt>,
}

impl Told {
    /// Last part of the endpoint's name.
    pub(super) fn endpoint(&self) -> &str {
        self.delivery.endpoint.rsplit('/').next().unwrap_or_default()
    }
}

/// Reads all deliveries and attempts once they are settled, or as they are after a limit.
pub(super) async fn read(client: &Client, ledger: &Ledger) -> anyhow::Result<Vec<Told>> {
    let expected = ledger.expected().count();
    let settled = async {
        loop {
            let deliveries = list(client).await?;
            let done = |delivery: &&Delivery| delivery.state() == DeliveryState::Delivered;
            if deliveries.iter().filter(done).count() >= expected {
                return anyhow::Ok(deliveries);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let deliveries = match tokio::time::timeout(SETTLE_LIMIT, settled).await {
        Ok(deliveries) => deliveries?,
        // The checks say what is missing.
        Err(_) => list(client).await?,
    };
    let mut told = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        let request = ListAttemptsRequest { parent: delivery.name.clone(), ..Default::default() };
        let listed = client.deliveries().list_attempts(request).await;
        let attempts = listed.context("list attempts")?.into_inner().attempts;
        told.push(Told { delivery, attempts });
    }
    Ok(told)
}

async fn list(client: &Client) -> anyhow::Result<Vec<Delivery>> {
    let request = ListDeliveriesRequest {
        parent: PARENT.to_owned(),
        page_size: PAGE_SIZE,
        ..Default::default()
    };
    let listed = client.deliveries().list_deliveries(request).await;
    Ok(listed.context("list deliveries")?.into_inner().deliveries)
}
