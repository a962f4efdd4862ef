//! `turnbuckle pull ENDPOINT`

use super::{global::Session, names::Collection, values::Span};
use std::time::Duration;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use turnbuckle_proto::v1::{
    PullActions, PullOpen, PullOutcome, PullStreamRequest, PullStreamResponse, PulledDelivery,
    pull_stream_request::Message as Out, pull_stream_response::Message as In,
};

/// Time for the server to answer acknowledgements.
const ANSWERS: Duration = Duration::from_secs(10);

/// Options of `pull`.
#[derive(Clone, Debug, clap::Args)]
pub struct PullArgs {
    /// Name of the pull endpoint, short or full.
    pub endpoint: String,
    /// Most deliveries to show.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=1000))]
    pub max: i32,
    /// Acknowledges what was shown: it is done and never sent again. Without it, everything goes back
    /// and counts as not tried.
    #[arg(long)]
    pub ack: bool,
    /// How long to wait for a first delivery, and then for each further one.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub wait: Span,
}

pub(super) async fn run(args: PullArgs, session: &mut Session) -> anyhow::Result<()> {
    let open = PullOpen {
        endpoint: Collection::Endpoints.name(&session.parent, &args.endpoint)?,
        max_outstanding: args.max,
        ..PullOpen::default()
    };
    let (said, messages) = mpsc::channel(2);
    said.send(PullStreamRequest { message: Some(Out::Open(open)) }).await?;
    let mut pulls = session.client.pulls();
    let mut told = pulls.stream(ReceiverStream::new(messages)).await?.into_inner();
    let found = collect(&mut told, &args).await?;
    session.output.many(&found)?;
    if args.ack && !found.is_empty() {
        let acks = found.iter().map(|one| one.lease_token.clone()).collect();
        let actions = PullActions { acks, ..PullActions::default() };
        said.send(PullStreamRequest { message: Some(Out::Actions(actions)) }).await?;
    }
    // Nothing more comes from us: the server answers what was said, and takes the rest back.
    drop(said);
    let acked = timeout(ANSWERS, count_acked(&mut told)).await??;
    let note = match (args.ack, found.len()) {
        (_, 0) => "note: nothing is due".to_owned(),
        (false, count) => format!("note: {count} shown and given back; --ack takes them"),
        (true, count) if acked < count => {
            format!("note: {acked} of {count} acknowledged; the others are sent again")
        }
        (true, count) => format!("note: {count} acknowledged"),
    };
    session.output.note(&note)
}

async fn collect(
    told: &mut Streaming<PullStreamResponse>,
    args: &PullArgs,
) -> anyhow::Result<Vec<PulledDelivery>> {
    let mut found: Vec<PulledDelivery> = Vec::new();
    let most = usize::try_from(args.max).unwrap_or_default();
    while found.len() < most {
        let Ok(message) = timeout(args.wait.0, told.message()).await else { break };
        match message?.and_then(|message| message.message) {
            Some(In::Deliveries(pulled)) => found.extend(pulled.deliveries),
            Some(In::Opened(_) | In::Results(_)) => {}
            None => break,
        }
    }
    Ok(found)
}

async fn count_acked(told: &mut Streaming<PullStreamResponse>) -> anyhow::Result<usize> {
    let mut acked = 0;
    while let Some(message) = told.message().await? {
        if let Some(In::Results(results)) = message.message {
            let done = results.results.iter();
            acked += done.filter(|one| one.outcome() == PullOutcome::Acked).count();
        }
    }
    Ok(acked)
}
