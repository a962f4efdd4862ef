//! The process dies without a word, under load, and comes back.

use std::{sync::Arc, time::Duration};
use turnbuckle_proto::v1::{DeliveryState, Endpoint};
use turnbuckle_testkit::{
    ledger::Ledger,
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{Load, PATIENCE, Scene, Server, StoreKind, http_endpoint};

on_both_stores!(nothing_acknowledged_is_lost_when_the_process_is_killed_under_load);

/// Deliveries of one endpoint in flight at once.
const SLOTS: i32 = 8;
/// Most deliveries of one endpoint that a kill can leave in doubt: in flight, or answered with the
/// result not yet written. A slot is free as soon as the answer is there, so a slow commit lets
/// several turns of the slots pile up.
const IN_DOUBT: u64 = 64;
/// How long the receiver takes, so that attempts are in flight at any time.
const WORK: Duration = Duration::from_millis(10);
const ENDPOINTS: [&str; 3] = ["/a", "/b", "/c"];

async fn nothing_acknowledged_is_lost_when_the_process_is_killed_under_load(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let lease = ["--lease", "2s"];
    let server = or_skip!(Server::start(kind, &lease).await?);
    let receiver = Receiver::start(Script::always(Answer::status(200).after(WORK))).await?;
    let scene = Scene::set(&server).await?;
    for path in ENDPOINTS {
        let endpoint = Endpoint { max_in_flight: SLOTS, ..http_endpoint(&receiver.url(path)) };
        scene.raw(&path[1..], endpoint).await?;
    }
    let ledger = Arc::new(Ledger::default());
    let mut load = Load::start(&scene, &ledger, "before", 16, usize::MAX);
    load.acknowledged(300).await?;
    server.kill().await?;
    load.finish().await;

    let server = Server::start_in(server.home(), &lease).await?;
    let scene = Scene::of(&server).await?;
    let mut more = Load::start(&scene, &ledger, "after", 4, 50);
    more.finish().await;
    for path in ENDPOINTS {
        let complete = receiver.wait_until(PATIENCE, |received| {
            let own = received.iter().filter(|request| request.path == path);
            ledger.audit(own).lost.is_empty()
        });
        complete.await?;
    }
    scene.drained().await?;
    let received = receiver.received();
    for path in ENDPOINTS {
        let audit = ledger.audit(received.iter().filter(|request| request.path == path));
        assert!(audit.is_complete(), "{path}: {audit:?}");
        assert!(audit.repeated() <= IN_DOUBT, "{path}: {audit:?}");
        assert!(audit.repeats.values().all(|extra| *extra == 1), "{path}: {audit:?}");
    }
    assert_eq!(scene.count(DeliveryState::Dead).await?, 0);
    Ok(())
}
