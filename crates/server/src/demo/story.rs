//! What happens on the stage, shown while it happens.

use super::{
    ledger::{HEALTHY, Ledger, Published, Seen},
    payloads::{self, Planned},
    printer::{Line, Printer},
    setup::{NEW_KEY, PARENT, Stage},
};
use anyhow::{Context as _, bail};
use std::time::Duration;
use tokio::time::Instant;
use turnbuckle_client::{Client, proto::Event};
use turnbuckle_proto::v1;

/// How long both keys sign.
const OVERLAP_SECONDS: i64 = 3600;
/// Silence after which the story gives up waiting: above the longest retry delay.
const PATIENCE: Duration = Duration::from_secs(6);
/// Quiet time at the end, in which a forbidden extra attempt would show.
const AFTERMATH: Duration = Duration::from_millis(400);

/// Plays both acts with the rotation between them, and waits until everything is delivered.
pub(super) async fn play(stage: &mut Stage, printer: &mut Printer) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::default();
    let [first, second] = payloads::acts();
    let repeated = first.first().cloned().context("the first act has events")?;
    let healthy_first = first.len();
    publish_all(first, stage, printer, &mut ledger).await?;
    repeat(repeated, &stage.client, printer, &mut ledger).await?;
    // So that the first act is signed by the old key alone.
    wait(stage, printer, &mut ledger, |ledger| ledger.taken(HEALTHY) >= healthy_first).await;
    rotate(stage, printer).await?;
    publish_all(second, stage, printer, &mut ledger).await?;
    let expected = ledger.expected().count();
    wait(stage, printer, &mut ledger, |ledger| taken(ledger) >= expected).await;
    let end = Instant::now() + AFTERMATH;
    while let Ok(Some(seen)) = tokio::time::timeout_at(end, stage.reports.recv()).await {
        note(seen, printer, &mut ledger);
    }
    printer.progress("");
    Ok(ledger)
}

async fn publish_all(
    events: Vec<Planned>,
    stage: &mut Stage,
    printer: &mut Printer,
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    for planned in events {
        let published = publish(planned, &stage.client).await?;
        printer.line(&Line::of_published(&published));
        ledger.published.push(published);
        while let Ok(seen) = stage.reports.try_recv() {
            note(seen, printer, ledger);
        }
    }
    Ok(())
}

async fn publish(planned: Planned, client: &Client) -> anyhow::Result<Published> {
    let event = Event {
        event_id: planned.event_id.clone(),
        event_type: planned.event_type.to_owned(),
        source: "shop".to_owned(),
        subject: planned.subject.clone(),
        sequence: planned.sequence,
        data: planned.data.clone(),
        ..Default::default()
    };
    let began = Instant::now();
    let answer = client.publish(PARENT, event).await.context("publish an event")?;
    Ok(Published { planned, began, ack: began.elapsed(), answer })
}

async fn repeat(
    planned: Planned,
    client: &Client,
    printer: &mut Printer,
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    let again = publish(planned, client).await?;
    printer.line(&Line::Repeated {
        event: &again.planned.event_id,
        duplicate: again.answer.duplicate,
        deliveries: again.answer.deliveries,
    });
    ledger.repeated = Some((again.planned.event_id, again.answer));
    Ok(())
}

async fn rotate(stage: &Stage, printer: &mut Printer) -> anyhow::Result<()> {
    let mut keys = stage.client.keys();
    let parent = stage.healthy.name.clone();
    let request = v1::GetKeyRingRequest { name: format!("{parent}/keyRing") };
    let ring = keys.get_key_ring(request).await.context("read the key ring")?.into_inner();
    let request = v1::RotateKeyRequest {
        parent,
        etag: ring.etag,
        overlap: Some(prost_types::Duration { seconds: OVERLAP_SECONDS, nanos: 0 }),
        ..Default::default()
    };
    let key = keys.rotate_key(request).await.context("rotate the key")?.into_inner();
    stage.healthy.receiver.learn(NEW_KEY, &key.secret).context("the new secret")?;
    if key.fingerprint.is_empty() {
        bail!("the new key has no fingerprint");
    }
    printer.line(&Line::Rotated { endpoint: HEALTHY, fingerprint: &key.fingerprint });
    Ok(())
}

/// Shows reports until the condition holds, or nothing comes for long: the checks then say what
/// is missing.
async fn wait(
    stage: &mut Stage,
    printer: &mut Printer,
    ledger: &mut Ledger,
    done: impl Fn(&Ledger) -> bool,
) {
    while !done(ledger) {
        printer.progress(&format!(
            "{} of {} deliveries taken",
            taken(ledger),
            ledger.expected().count()
        ));
        match tokio::time::timeout(PATIENCE, stage.reports.recv()).await {
            Ok(Some(seen)) => note(seen, printer, ledger),
            Ok(None) | Err(_) => return,
        }
    }
}

fn taken(ledger: &Ledger) -> usize {
    ledger.seen.iter().filter(|seen| seen.status == 200).count()
}

fn note(seen: Seen, printer: &mut Printer, ledger: &mut Ledger) {
    let waited = ledger
        .previous(&seen)
        .map(|previous| seen.arrived.saturating_duration_since(previous.answered));
    printer.line(&Line::of_attempt(&seen, waited));
    ledger.seen.push(seen);
}
