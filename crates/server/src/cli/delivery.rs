//! `turnbuckle delivery …`

use super::{
    common::{ListArgs, Target, show_pages},
    global::Session,
    names::Collection,
};
use turnbuckle_proto::v1;

/// What can be done with deliveries.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Lists deliveries, newest first.
    List(FindArgs),
    /// Shows one delivery.
    Get(Target),
    /// Lists the attempts of a delivery, first one first.
    Attempts(AttemptsArgs),
    /// Tries now; a finished delivery is opened again.
    Retry(Target),
    /// Ends a waiting delivery without sending.
    Cancel(Target),
}

/// Options of `delivery attempts`.
#[derive(Clone, Debug, clap::Args)]
pub struct AttemptsArgs {
    /// Which one.
    #[command(flatten)]
    pub target: Target,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum State {
    /// Waits for its next attempt, or is being tried.
    Pending,
    /// The receiver took it.
    Delivered,
    /// Will not be tried again by itself.
    Dead,
    /// Ended without success because its endpoint went away or somebody cancelled it.
    Cancelled,
}

impl State {
    fn to_proto(self) -> i32 {
        let state = match self {
            Self::Pending => v1::DeliveryState::Pending,
            Self::Delivered => v1::DeliveryState::Delivered,
            Self::Dead => v1::DeliveryState::Dead,
            Self::Cancelled => v1::DeliveryState::Cancelled,
        };
        state.into()
    }
}

/// Options of `delivery list`.
#[derive(Clone, Debug, clap::Args)]
pub struct FindArgs {
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
    /// Only deliveries to this endpoint.
    #[arg(long, value_name = "NAME")]
    pub endpoint: Option<String>,
    /// Only deliveries of this event.
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Only deliveries in this state.
    #[arg(long, value_enum)]
    pub state: Option<State>,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut deliveries = session.client.deliveries();
    let parent = session.parent.clone();
    let full = |target: Target| Collection::Deliveries.name(&parent, &target.name);
    let delivery = match verb {
        Verb::List(args) => return list(args, session).await,
        Verb::Attempts(args) => return attempts(full(args.target)?, args.list, session).await,
        Verb::Get(target) => {
            let name = full(target)?;
            deliveries.get_delivery(v1::GetDeliveryRequest { name }).await?
        }
        Verb::Retry(target) => {
            let name = full(target)?;
            deliveries.retry_delivery(v1::RetryDeliveryRequest { name }).await?
        }
        Verb::Cancel(target) => {
            let name = full(target)?;
            deliveries.cancel_delivery(v1::CancelDeliveryRequest { name }).await?
        }
    };
    session.output.one(delivery.get_ref())
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut deliveries = session.client.deliveries();
    let filter = filter(&session.parent, &args)?;
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let request = v1::ListDeliveriesRequest { page_size, page_token, ..filter.clone() };
        let page = deliveries.list_deliveries(request).await?.into_inner();
        Ok((page.deliveries, page.next_page_token))
    })
    .await
}

async fn attempts(parent: String, args: ListArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut deliveries = session.client.deliveries();
    show_pages(&mut session.output, args.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let request = v1::ListAttemptsRequest { parent, page_size, page_token };
        let page = deliveries.list_attempts(request).await?.into_inner();
        Ok((page.attempts, page.next_page_token))
    })
    .await
}

fn filter(parent: &str, args: &FindArgs) -> anyhow::Result<v1::ListDeliveriesRequest> {
    let name = |collection: Collection, given: &Option<String>| {
        given.as_ref().map_or(Ok(String::new()), |given| collection.name(parent, given))
    };
    Ok(v1::ListDeliveriesRequest {
        parent: parent.to_owned(),
        endpoint: name(Collection::Endpoints, &args.endpoint)?,
        event: name(Collection::Events, &args.event)?,
        state: args.state.map(State::to_proto).unwrap_or_default(),
        ..Default::default()
    })
}
