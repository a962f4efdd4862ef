//! `turnbuckle receipt …`

use super::{
    common::{ListArgs, Target, show_pages},
    global::Session,
    names::Collection,
};
use turnbuckle_proto::v1;

/// What can be done with receipts.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Lists what the ingress decided about requests, newest first.
    List(FindArgs),
    /// Shows one receipt, with its payload where it is kept.
    Get(Target),
    /// Takes the kept payload of a request again, as the source is set now, and makes new events of it.
    Replay(ReplayArgs),
}

/// Options of `receipt replay`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// Receipt, short (rcp_…) or full. Its payload must be kept, as that of a dead letter is.
    pub name: String,
    /// Why, for the record.
    #[arg(long)]
    pub reason: String,
    /// Leaves out events whose ids are known: for batches of which only a part was no event.
    #[arg(long)]
    pub only_new: bool,
}

/// What was decided about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Decision {
    /// Its events are stored.
    Accepted,
    /// Its events were stored before.
    Duplicate,
    /// A known event id with other content.
    Anomaly,
    /// A question of the sender, answered.
    Handshake,
    /// Validly signed and no event; kept.
    DeadLetter,
    /// Refused.
    Refused,
    /// The store did not answer in time.
    Unavailable,
}

impl Decision {
    fn to_proto(self) -> i32 {
        let decision = match self {
            Self::Accepted => v1::ReceiptDecision::Accepted,
            Self::Duplicate => v1::ReceiptDecision::Duplicate,
            Self::Anomaly => v1::ReceiptDecision::Anomaly,
            Self::Handshake => v1::ReceiptDecision::Handshake,
            Self::DeadLetter => v1::ReceiptDecision::DeadLetter,
            Self::Refused => v1::ReceiptDecision::Refused,
            Self::Unavailable => v1::ReceiptDecision::Unavailable,
        };
        decision.into()
    }
}

/// Options of `receipt list`.
#[derive(Clone, Debug, clap::Args)]
pub struct FindArgs {
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
    /// Only requests to this source.
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only with this decision.
    #[arg(long, value_enum)]
    pub decision: Option<Decision>,
    /// Only with this id of the sender.
    #[arg(long, value_name = "ID")]
    pub event_id: Option<String>,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    match verb {
        Verb::List(args) => list(args, session).await,
        Verb::Get(target) => {
            let name = Collection::Receipts.name(&session.parent, &target.name)?;
            let request = v1::GetReceiptRequest { name };
            let receipt = session.client.receipts().get_receipt(request).await?;
            session.output.one(receipt.get_ref())
        }
        Verb::Replay(args) => {
            let name = Collection::Receipts.name(&session.parent, &args.name)?;
            let ReplayArgs { reason, only_new, .. } = args;
            let request = v1::ReplayReceiptRequest { name, reason, only_new };
            let answer = session.client.receipts().replay_receipt(request).await?;
            session.output.one(answer.get_ref())
        }
    }
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut receipts = session.client.receipts();
    let filter = filter(&session.parent, &args)?;
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let request = v1::ListReceiptsRequest { page_size, page_token, ..filter.clone() };
        let page = receipts.list_receipts(request).await?.into_inner();
        Ok((page.receipts, page.next_page_token))
    })
    .await
}

fn filter(parent: &str, args: &FindArgs) -> anyhow::Result<v1::ListReceiptsRequest> {
    let source = match &args.source {
        Some(given) => Collection::Sources.name(parent, given)?,
        None => String::new(),
    };
    Ok(v1::ListReceiptsRequest {
        parent: parent.to_owned(),
        source,
        decision: args.decision.map(Decision::to_proto).unwrap_or_default(),
        event_id: args.event_id.clone().unwrap_or_default(),
        ..Default::default()
    })
}
