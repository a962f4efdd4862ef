//! `turnbuckle config …`

use super::{global::Session, values::Span};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use turnbuckle_proto::v1;

/// How often nodes are looked at while waiting: they report changes at once.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What can be asked about the way of the configuration.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Shows the newest revision and which nodes work by it.
    Status,
    /// Waits until every live node works by a revision. Exit code 1 when one does not in time.
    Wait(WaitArgs),
}

/// Options of `config wait`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WaitArgs {
    /// The revision to wait for [default: the newest now].
    #[arg(long, value_name = "N")]
    pub revision: Option<i64>,
    /// How long to wait.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub within: Span,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    match verb {
        Verb::Status => status(session).await,
        Verb::Wait(args) => wait(args, session).await,
    }
}

async fn live(session: &Session) -> Result<v1::ListNodesResponse, tonic::Status> {
    let request = v1::ListNodesRequest { live: true };
    Ok(session.client.nodes().list_nodes(request).await?.into_inner())
}

async fn status(session: &mut Session) -> anyhow::Result<()> {
    let list = live(session).await?;
    let behind = behind(&list, &list.epoch, list.revision).len();
    session.output.many(&list.nodes)?;
    session.output.note(&format!(
        "revision {} of epoch {}: {} of {} live nodes work by it",
        list.revision,
        list.epoch,
        list.nodes.len() - behind,
        list.nodes.len()
    ))
}

/// Names of the nodes that do not work by this state yet.
fn behind(list: &v1::ListNodesResponse, epoch: &str, revision: i64) -> Vec<String> {
    let lacks = |node: &&v1::Node| node.epoch != epoch || node.applied_revision < revision;
    list.nodes.iter().filter(lacks).map(|node| node.name.clone()).collect()
}

async fn wait(args: WaitArgs, session: &mut Session) -> anyhow::Result<()> {
    let end = Instant::now() + args.within.0;
    let mut wanted = args.revision;
    loop {
        let list = live(session).await?;
        let revision = *wanted.get_or_insert(list.revision);
        let late = behind(&list, &list.epoch, revision);
        if late.is_empty() && !list.nodes.is_empty() {
            session.output.many(&list.nodes)?;
            return session.output.note(&format!(
                "revision {revision}: all {} live nodes work by it",
                list.nodes.len()
            ));
        }
        if Instant::now() >= end {
            anyhow::ensure!(!list.nodes.is_empty(), "there is no live node");
            anyhow::bail!("revision {revision} is not in use at {}", late.join(", "));
        }
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_of_another_epoch_or_lower_is_behind() {
        let node = |name: &str, epoch: &str, applied_revision| v1::Node {
            name: name.to_owned(),
            epoch: epoch.to_owned(),
            applied_revision,
            ..v1::Node::default()
        };
        let nodes = vec![node("a", "e", 7), node("b", "e", 6), node("c", "old", 9)];
        let list = v1::ListNodesResponse { nodes, epoch: "e".to_owned(), revision: 7 };
        assert_eq!(behind(&list, "e", 7), ["b", "c"]);
        assert_eq!(behind(&list, "e", 6), ["c"]);
    }
}
