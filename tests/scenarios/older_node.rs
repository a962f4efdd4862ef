//! A node that is older than its control plane: what it cannot use is told, and its version before works on.

use turnbuckle_proto::v1::RefusedResource;
use turnbuckle_tests::{
    Apart, eventually,
    sender::{SECRET, Sender, github},
};

async fn takes(sender: &Sender, id: &str) -> anyhow::Result<()> {
    // The same body under another id would be a repeat.
    let body = format!(r#"{{"zen":"Keep it logically awesome.","id":"{id}"}}"#);
    // What was just configured may be on its way still.
    eventually("it is taken", async || {
        let answer = sender.post(&github(SECRET, id, "ping", &body)?, &body).await?;
        Ok((answer.status == 202).then_some(()))
    })
    .await
}

async fn told(apart: &Apart) -> anyhow::Result<RefusedResource> {
    eventually("the node tells what it cannot use", async || {
        let node = apart.node_of("ingress.door-1").await?;
        Ok(node.and_then(|node| node.refused.into_iter().next()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_a_door_cannot_build_is_told_and_goes_on_as_before() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let door = apart.node("ingress", "door-1").await?;
    let sender = Sender::of(&apart.scene().await?, &door, "github", SECRET).await?;
    apart.applied(1).await?;
    takes(&sender, "d-1").await?;
    // As a control plane of a later version would write it.
    apart
        .home
        .execute(
            "with next as (
                update config_revision set revision = revision + 1 returning revision)
             update source
             set preset = 'of-a-later-version', revision = (select revision from next)",
        )
        .await?;
    let refused = told(&apart).await?;
    assert_eq!((refused.kind.as_str(), refused.uid), ("sources", sender.source.uid.clone()));
    takes(&sender, "d-2").await?;

    door.stop().await?;
    let door = apart.node("ingress", "door-1").await?;
    let sender = sender.at(&door);
    takes(&sender, "d-3").await?;
    // Everything is read anew: the node has its version before from its own file alone.
    apart.home.execute("update config_revision set epoch = gen_random_uuid()").await?;
    apart.applied(1).await?;
    takes(&sender, "d-4").await?;
    told(&apart).await?;
    apart
        .home
        .execute(
            "with next as (
                update config_revision set revision = revision + 1 returning revision)
             update source set preset = 'github', revision = (select revision from next)",
        )
        .await?;
    eventually("nothing is refused", async || {
        let node = apart.node_of("ingress.door-1").await?;
        Ok(node.filter(|node| node.refused.is_empty()).map(drop))
    })
    .await?;
    takes(&sender, "d-5").await
}
