//! Replays: what failed, or was wanted by nobody, is sent again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tonic::Code;
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::{
    CancelReplayRequest, CreateReplayRequest, DeliveryState, Endpoint, GetReplayRequest,
    ListReplaysRequest, PauseReplayRequest, PreviewReplayRequest, Replay, ReplayMode, ReplayState,
    ResumeReplayRequest,
};
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{Home, PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint};

on_both_stores!(
    each_of_350_failed_deliveries_is_sent_exactly_once,
    a_killed_process_goes_on_where_it_was_and_sends_nothing_twice,
    a_cancelled_replay_sends_nothing_more_and_says_what_it_sent,
    a_paused_replay_stands_still_and_goes_on,
    events_that_nobody_wanted_are_replayed_to_who_wants_them_today,
    what_goes_to_a_disabled_endpoint_is_left_alone,
    what_arrived_is_sent_again_only_when_asked_for,
    bad_wishes_are_refused_with_everything_that_is_wrong,
);

const LEASE: [&str; 2] = ["--lease", "2s"];

/// A scene with so many dead deliveries of one endpoint, and a receiver that takes everything now.
struct Failed {
    scene: Scene,
    receiver: Receiver,
    endpoint: Endpoint,
}

impl Failed {
    async fn make(server: &Server, count: usize) -> anyhow::Result<Self> {
        let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
        let scene = Scene::set(server).await?;
        let retry_policy = scene.delays("once", &[Duration::from_secs(1)], 1).await?;
        let endpoint = Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) };
        let endpoint = scene.raw("shop", endpoint).await?;
        for number in 0..count {
            scene.publish(&format!("e{number}"), "{}").await?;
        }
        eventually("all are dead", async || {
            Ok((scene.count(DeliveryState::Dead).await? == count).then_some(()))
        })
        .await?;
        receiver.change_script(Script::default());
        Ok(Self { scene, receiver, endpoint })
    }

    /// How often each event came after its first attempt.
    fn again(&self) -> BTreeMap<String, u32> {
        let mut again = BTreeMap::new();
        for request in self.receiver.received() {
            if request.header("turnbuckle-attempt") != Some("1") {
                let id = request.header("webhook-id").unwrap_or_default().to_owned();
                *again.entry(id).or_default() += 1;
            }
        }
        again
    }

    async fn wait_for(&self, count: usize) -> anyhow::Result<()> {
        let seen = self.receiver.wait_until(PATIENCE, |received| {
            let later = received.iter().filter(|r| r.header("turnbuckle-attempt") != Some("1"));
            later.count() >= count
        });
        seen.await.map(drop)
    }
}

fn wish(mode: ReplayMode, rate: i32) -> Replay {
    Replay {
        mode: mode.into(),
        rate_per_second: rate,
        reason: "the receiver is well again".into(),
        ..Replay::default()
    }
}

async fn create(scene: &Scene, replay: Replay, id: &str) -> Result<Replay, tonic::Status> {
    let request = CreateReplayRequest {
        parent: scene.tenant.clone(),
        replay: Some(replay),
        request_id: id.into(),
    };
    Ok(scene.client.replays().create_replay(request).await?.into_inner())
}

async fn get(scene: &Scene, name: &str) -> anyhow::Result<Replay> {
    let request = GetReplayRequest { name: name.into() };
    Ok(scene.client.replays().get_replay(request).await?.into_inner())
}

async fn ended(scene: &Scene, name: &str) -> anyhow::Result<Replay> {
    eventually("the replay ends", async || {
        let replay = get(scene, name).await?;
        anyhow::ensure!(replay.state() != ReplayState::Failed, "it failed: {replay:?}");
        Ok(replay.finish_time.is_some().then_some(replay))
    })
    .await
}

async fn opened(scene: &Scene, name: &str, least: i64) -> anyhow::Result<Replay> {
    eventually("the replay has begun", async || {
        let replay = get(scene, name).await?;
        Ok((replay.progress.unwrap_or_default().reopened >= least).then_some(replay))
    })
    .await
}

/// Every event once and none twice.
fn assert_each_once(again: &BTreeMap<String, u32>, count: usize) {
    assert_eq!(again.len(), count);
    assert!(again.values().all(|times| *times == 1), "sent twice: {again:?}");
}

async fn each_of_350_failed_deliveries_is_sent_exactly_once(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let failed = Failed::make(&server, 350).await?;
    let scene = &failed.scene;
    let request = PreviewReplayRequest {
        parent: scene.tenant.clone(),
        replay: Some(Replay { reason: String::new(), ..wish(ReplayMode::Failed, 0) }),
    };
    let counted = scene.client.replays().preview_replay(request).await?.into_inner();
    assert_eq!((counted.matched, counted.complete), (350, true));
    assert!(failed.again().is_empty(), "a count has sent something");

    let id = "0190e5d8-7a44-7c1f-9d0e-5b1c2f6a7e10";
    let wish = Replay { endpoint: failed.endpoint.name.clone(), ..wish(ReplayMode::Failed, 200) };
    let began = Instant::now();
    let replay = create(scene, wish.clone(), id).await?;
    // A repeat of the request makes no second one.
    assert_eq!(create(scene, wish.clone(), id).await?.name, replay.name);
    let other = create(scene, Replay { rate_per_second: 3, ..wish }, id).await;
    assert!(other.is_err(), "the same id for another replay");
    let done = ended(scene, &replay.name).await?;
    let progress = done.progress.unwrap_or_default();
    assert_eq!((done.state(), progress.matched, progress.reopened), (ReplayState::Done, 350, 350));
    // 350 at 200 a second, of which a step's worth goes at once.
    assert!(began.elapsed() >= Duration::from_millis(1_400), "the rate was not kept");
    failed.wait_for(350).await?;
    scene.drained().await?;
    assert_each_once(&failed.again(), 350);
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 350);

    let list = ListReplaysRequest { parent: scene.tenant.clone(), ..Default::default() };
    let listed = scene.client.replays().list_replays(list).await?.into_inner().replays;
    assert_eq!(listed.iter().map(|r| &r.name).collect::<Vec<_>>(), [&replay.name]);
    Ok(())
}

async fn a_killed_process_goes_on_where_it_was_and_sends_nothing_twice(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &LEASE).await?);
    let failed = Failed::make(&server, 60).await?;
    let replay = create(&failed.scene, wish(ReplayMode::Failed, 12), "").await?;
    opened(&failed.scene, &replay.name, 12).await?;
    server.kill().await?;
    let server = Server::start_in(server.home(), &LEASE).await?;
    let scene = Scene::of(&server).await?;
    let done = ended(&scene, &replay.name).await?;
    // Each was opened once; the kill itself may repeat what was in flight or not yet written.
    let progress = done.progress.unwrap_or_default();
    assert_eq!((progress.matched, progress.reopened), (60, 60));
    failed.wait_for(60).await?;
    scene.drained().await?;
    let again = failed.again();
    assert_eq!(again.len(), 60);
    let repeated = again.values().filter(|times| **times > 1).count();
    assert!(again.values().all(|times| *times <= 2) && repeated <= 12, "{again:?}");
    Ok(())
}

async fn a_cancelled_replay_sends_nothing_more_and_says_what_it_sent(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let failed = Failed::make(&server, 60).await?;
    let scene = &failed.scene;
    let replay = create(scene, wish(ReplayMode::Failed, 8), "").await?;
    opened(scene, &replay.name, 4).await?;
    let request = CancelReplayRequest { name: replay.name.clone() };
    let cancelled = scene.client.replays().cancel_replay(request.clone()).await?.into_inner();
    assert_eq!(cancelled.state(), ReplayState::Cancelled);
    let sent = usize::try_from(cancelled.progress.unwrap_or_default().reopened)?;
    assert!((4..60).contains(&sent), "{sent}");
    scene.drained().await?;
    failed.wait_for(sent).await?;
    // Another replay finds exactly what the first one has left.
    let rest = create(scene, wish(ReplayMode::Failed, 1_000), "").await?;
    let rest = ended(scene, &rest.name).await?;
    assert_eq!(usize::try_from(rest.progress.unwrap_or_default().reopened)?, 60 - sent);
    scene.drained().await?;
    assert_each_once(&failed.again(), 60);
    // Cancelled again, it is what it was; it cannot be resumed.
    scene.client.replays().cancel_replay(request).await?;
    let request = ResumeReplayRequest { name: replay.name };
    let refused = scene.client.replays().resume_replay(request).await;
    let error = ApiError::new(&refused.err().ok_or_else(|| anyhow::anyhow!("resumed"))?);
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::FailedPrecondition, Some("REPLAY_FINISHED"))
    );
    Ok(())
}

async fn a_paused_replay_stands_still_and_goes_on(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let failed = Failed::make(&server, 40).await?;
    let scene = &failed.scene;
    let replay = create(scene, wish(ReplayMode::Failed, 8), "").await?;
    opened(scene, &replay.name, 4).await?;
    let request = PauseReplayRequest { name: replay.name.clone() };
    let paused = scene.client.replays().pause_replay(request).await?.into_inner();
    // Another one passes it by, so time goes on; the paused one does not move.
    let other = Replay { event_types: vec!["none.*".into()], ..wish(ReplayMode::Failed, 1) };
    let other = create(scene, other, "").await?;
    let other = ended(scene, &other.name).await?;
    assert_eq!(other.progress.unwrap_or_default().matched, 0);
    let still = get(scene, &replay.name).await?;
    assert_eq!((still.state(), still.progress), (ReplayState::Paused, paused.progress));
    let request = ResumeReplayRequest { name: replay.name.clone() };
    scene.client.replays().resume_replay(request).await?;
    let done = ended(scene, &replay.name).await?;
    assert_eq!(done.progress.unwrap_or_default().reopened, 40);
    scene.drained().await?;
    assert_each_once(&failed.again(), 40);
    Ok(())
}

async fn events_that_nobody_wanted_are_replayed_to_who_wants_them_today(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    for number in 0..5 {
        scene.publish(&format!("unwanted{number}"), "{}").await?;
    }
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    scene.publish("wanted", "{}").await?;
    scene.disable(&endpoint).await?;
    for number in 0..3 {
        scene.publish(&format!("disabled{number}"), "{}").await?;
    }
    scene.enable(&endpoint).await?;
    for round in [8, 0] {
        let replay = create(&scene, wish(ReplayMode::Missing, 0), "").await?;
        let progress = ended(&scene, &replay.name).await?.progress.unwrap_or_default();
        // The second time there is nothing missing any more.
        assert_eq!((progress.matched, progress.made), (9, round));
        assert_eq!(progress.skipped_finished + progress.skipped_pending, 9 - round);
    }
    scene.drained().await?;
    assert_eq!(receiver.count(), 9);
    Ok(())
}

async fn what_goes_to_a_disabled_endpoint_is_left_alone(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let failed = Failed::make(&server, 5).await?;
    let scene = &failed.scene;
    scene.disable(&failed.endpoint).await?;
    let replay = create(scene, wish(ReplayMode::Failed, 0), "").await?;
    let progress = ended(scene, &replay.name).await?.progress.unwrap_or_default();
    assert_eq!((progress.matched, progress.reopened, progress.skipped_inactive), (5, 0, 5));
    assert!(failed.again().is_empty());
    assert_eq!(scene.count(DeliveryState::Dead).await?, 5);
    Ok(())
}

async fn what_arrived_is_sent_again_only_when_asked_for(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let first = scene.publish("first", "{}").await?.name;
    scene.publish("second", "{}").await?;
    scene.drained().await?;
    let replay = create(&scene, wish(ReplayMode::Failed, 0), "").await?;
    let progress = ended(&scene, &replay.name).await?.progress.unwrap_or_default();
    assert_eq!(progress.matched, 0);
    let only = Replay { events: vec![first.clone()], ..wish(ReplayMode::All, 0) };
    let replay = create(&scene, only, "").await?;
    let progress = ended(&scene, &replay.name).await?.progress.unwrap_or_default();
    assert_eq!((progress.matched, progress.reopened), (1, 1));
    assert_eq!(scene.tried(&first, 2).await?.attempts, 2);
    scene.drained().await?;
    assert_eq!(receiver.count(), 3);
    Ok(())
}

async fn bad_wishes_are_refused_with_everything_that_is_wrong(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let bad = Replay {
        event_types: vec!["?".into()],
        events: vec!["tenants/other/events/evt_1".into()],
        rate_per_second: 5_001,
        reasons: vec!["NO_SUCH".into()],
        states: vec![DeliveryState::Delivered.into()],
        ..Replay::default()
    };
    let refused = create(&scene, bad, "").await;
    let error = ApiError::new(&refused.err().ok_or_else(|| anyhow::anyhow!("taken"))?);
    let fields: Vec<&str> = error.violations.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "replay.mode",
            "replay.states",
            "replay.event_types[0]",
            "replay.events[0]",
            "replay.reasons[0]",
            "replay.rate_per_second",
            "replay.reason"
        ]
    );
    let unknown =
        Replay { endpoint: "tenants/acme/endpoints/none".into(), ..wish(ReplayMode::Failed, 0) };
    let refused = create(&scene, unknown, "").await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::NotFound));
    Ok(())
}

/// Two processes: one dies in the middle, the other goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_takes_a_replay_over() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let first = Server::start_in(&home, &LEASE).await?;
    let failed = Failed::make(&first, 60).await?;
    let second = Server::start_in(&home, &LEASE).await?;
    let replay = create(&failed.scene, wish(ReplayMode::Failed, 12), "").await?;
    opened(&failed.scene, &replay.name, 12).await?;
    first.kill().await?;
    let scene = Scene::of(&second).await?;
    let done = ended(&scene, &replay.name).await?;
    let progress = done.progress.unwrap_or_default();
    assert_eq!((progress.matched, progress.reopened), (60, 60));
    failed.wait_for(60).await?;
    scene.drained().await?;
    let again = failed.again();
    assert_eq!(again.len(), 60);
    assert!(again.values().all(|times| *times <= 2), "{again:?}");
    Ok(())
}
