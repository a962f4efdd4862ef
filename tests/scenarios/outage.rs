//! The database goes away and comes back.

use anyhow::Context as _;
use std::{sync::Arc, time::Duration};
use tonic::Code;
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::Endpoint;
use turnbuckle_testkit::{
    ledger::Ledger,
    proxy::Proxy,
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{
    Home, Load, PATIENCE, Scene, Server, StoreKind, eventually, http, http_endpoint,
};

/// Deliveries of the endpoint in flight at once.
const SLOTS: i32 = 4;
/// Most deliveries of one endpoint in doubt at once: in flight, or answered and not yet written.
const IN_DOUBT: u64 = 64;

struct Outage {
    proxy: Proxy,
    server: Server,
    receiver: Receiver,
    scene: Scene,
    ledger: Arc<Ledger>,
}

impl Outage {
    async fn start() -> anyhow::Result<Option<Self>> {
        let Some(home) = Home::new(StoreKind::Postgres).await? else { return Ok(None) };
        let proxy = Proxy::start(home.database_address()?).await?;
        home.reach_database_by(proxy.address())?;
        let server = Server::start_in(&home, &["--lease", "3s"]).await?;
        let work = Answer::status(200).after(Duration::from_millis(10));
        let receiver = Receiver::start(Script::always(work)).await?;
        let scene = Scene::set(&server).await?;
        let endpoint = Endpoint { max_in_flight: SLOTS, ..http_endpoint(&receiver.url("/")) };
        scene.raw("shop", endpoint).await?;
        Ok(Some(Self { proxy, server, receiver, scene, ledger: Arc::default() }))
    }

    async fn ready(&self, status: u16) -> anyhow::Result<()> {
        eventually(&format!("readiness becomes {status}"), async || {
            let answer = http::get(self.server.admin, "/readyz").await?;
            Ok((answer.status == status).then_some(()))
        })
        .await
    }

    /// What a publisher is told meanwhile.
    async fn refusal(&self) -> anyhow::Result<ApiError> {
        let refused = self.scene.publish("meanwhile", "{}").await;
        Ok(ApiError::new(&refused.err().context("it was acknowledged without a store")?))
    }

    /// After the outage: everything acknowledged before, and new events, arrive, and nothing had to
    /// be restarted.
    async fn heals(&self) -> anyhow::Result<()> {
        self.proxy.heal();
        self.ready(200).await?;
        eventually("publishing works again", async || {
            Ok(self.scene.publish("healed", "{}").await.ok())
        })
        .await?;
        let mut after = Load::start(&self.scene, &self.ledger, "after", 2, 10);
        after.finish().await;
        let complete = |received: &[_]| self.ledger.audit(received).lost.is_empty();
        self.receiver.wait_until(PATIENCE, complete).await?;
        self.scene.drained().await?;
        let audit = self.ledger.audit(&self.receiver.received());
        assert!(audit.lost.is_empty() && audit.changed.is_empty(), "{audit:?}");
        // One more send for what was in flight, or answered with the result not yet written.
        assert!(audit.repeats.values().all(|extra| *extra <= 1), "{audit:?}");
        assert!(audit.repeated() <= IN_DOUBT, "{audit:?}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_database_is_survived_without_a_restart() -> anyhow::Result<()> {
    let outage = or_skip!(Outage::start().await?);
    let mut load = Load::start(&outage.scene, &outage.ledger, "before", 8, usize::MAX);
    load.acknowledged(60).await?;
    outage.proxy.cut();
    outage.ready(503).await?;
    let error = outage.refusal().await?;
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::Unavailable, Some("STORE_UNAVAILABLE")),
        "{error}"
    );
    assert!(error.retry_delay.is_some());
    load.finish().await;
    outage.heals().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_hangs_is_survived_without_a_restart() -> anyhow::Result<()> {
    let outage = or_skip!(Outage::start().await?);
    let mut load = Load::start(&outage.scene, &outage.ledger, "before", 8, usize::MAX);
    load.acknowledged(60).await?;
    outage.proxy.freeze();
    outage.ready(503).await?;
    let error = outage.refusal().await?;
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.retry_delay.is_some(), "{error}");
    load.finish().await;
    outage.heals().await
}
