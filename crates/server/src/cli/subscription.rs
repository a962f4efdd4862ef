//! `turnbuckle subscription …`

use super::{
    common::{
        CreateMode, DryRun, GuardedTarget, LabelChange, Labels, Mask, everything, show_pages,
        upsert_name,
    },
    deleted::{FindArgs, FindTarget, UndeleteArgs},
    error::Usage,
    global::Session,
    names::Collection,
};
use turnbuckle_proto::v1;

/// What can be done with subscriptions.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates a subscription.
    Create(CreateArgs),
    /// Shows one subscription.
    Get(FindTarget),
    /// Lists the tenant's subscriptions.
    List(FindArgs),
    /// Changes a subscription.
    Update(UpdateArgs),
    /// Deletes a subscription. Deliveries already made go on. It can be undeleted for 30 days.
    Delete(GuardedTarget),
    /// Brings a deleted subscription back.
    Undelete(UndeleteArgs),
}

/// What the body of a delivery looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PayloadFormat {
    /// The event as JSON with the published bytes in `data`.
    Envelope,
    /// The Standard Webhooks payload: type, timestamp, data.
    Standard,
    /// The published bytes, nothing around them.
    Raw,
}

impl PayloadFormat {
    fn to_proto(self) -> i32 {
        let format = match self {
            Self::Envelope => v1::PayloadFormat::Envelope,
            Self::Standard => v1::PayloadFormat::Standard,
            Self::Raw => v1::PayloadFormat::Raw,
        };
        format.into()
    }
}

/// Options of `subscription create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new subscription. The server makes one when it is missing.
    #[arg(default_value = "", hide_default_value = true)]
    pub id: String,
    /// Endpoint that wants the events.
    #[arg(long)]
    pub endpoint: String,
    /// Type (order.paid), prefix (order.*) or *; repeat for more, or separate by commas.
    #[arg(long = "type", required = true, value_delimiter = ',', value_name = "PATTERN")]
    pub types: Vec<String>,
    /// What the request body looks like.
    #[arg(long, value_enum)]
    pub format: Option<PayloadFormat>,
    /// Of the events of these types, which ones: 'data.total >= 100'. The language is in
    /// docs/filters.md.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Only events with one of these channels; repeat for more, or separate by commas.
    #[arg(long = "channel", value_delimiter = ',', value_name = "CHANNEL")]
    pub channels: Vec<String>,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// What if it exists.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `subscription update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// The patterns from now on; they replace all patterns before.
    #[arg(long = "type", value_delimiter = ',', value_name = "PATTERN")]
    pub types: Vec<String>,
    /// What the request body looks like.
    #[arg(long, value_enum)]
    pub format: Option<PayloadFormat>,
    /// The filter from now on; '' removes it.
    #[arg(long)]
    pub filter: Option<String>,
    /// The channels from now on; they replace all channels before.
    #[arg(long = "channel", value_delimiter = ',', value_name = "CHANNEL")]
    pub channels: Vec<String>,
    /// Wants events of every channel, and without.
    #[arg(long, conflicts_with = "channels")]
    pub clear_channels: bool,
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let dry_run = match &verb {
        Verb::Create(args) => args.mode.dry.dry_run,
        Verb::Update(args) => args.dry.dry_run,
        Verb::Undelete(args) => args.dry.dry_run,
        _ => false,
    };
    let mut subscriptions = session.client.subscriptions();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::Subscriptions.name(&parent, given);
    let subscription = match verb {
        Verb::Create(args) if args.mode.upsert => {
            let request = upsert(create(parent, args)?)?;
            subscriptions.update_subscription(request).await?.into_inner()
        }
        Verb::Create(args) => session.client.create_subscription(create(parent, args)?).await?,
        Verb::Get(target) => {
            let (name, show_deleted) = (full(&target.name)?, target.show_deleted);
            let request = v1::GetSubscriptionRequest { name, show_deleted };
            subscriptions.get_subscription(request).await?.into_inner()
        }
        Verb::Update(args) => {
            let name = full(&args.target.name)?;
            subscriptions.update_subscription(update(name, args)?).await?.into_inner()
        }
        Verb::Undelete(args) => {
            let request = v1::UndeleteSubscriptionRequest {
                name: full(&args.target.name)?,
                uid: args.uid,
                etag: args.target.etag,
                validate_only: args.dry.dry_run,
            };
            subscriptions.undelete_subscription(request).await?.into_inner()
        }
        Verb::List(args) => return list(args, session).await,
        Verb::Delete(target) => {
            let name = full(&target.name)?;
            let request = v1::DeleteSubscriptionRequest { name: name.clone(), etag: target.etag };
            subscriptions.delete_subscription(request).await?;
            return session.output.removed(&name);
        }
    };
    session.output.one(&subscription)?;
    session.output.note_dry_run(dry_run)
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, show_deleted) = (session.parent.clone(), args.show_deleted);
    let mut service = session.client.subscriptions();
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let request = v1::ListSubscriptionsRequest { parent, page_size, page_token, show_deleted };
        let page = service.list_subscriptions(request).await?.into_inner();
        Ok((page.subscriptions, page.next_page_token))
    })
    .await
}

fn create(parent: String, args: CreateArgs) -> anyhow::Result<v1::CreateSubscriptionRequest> {
    let subscription = v1::Subscription {
        endpoint: Collection::Endpoints.name(&parent, &args.endpoint)?,
        event_types: args.types,
        payload_format: args.format.map(PayloadFormat::to_proto).unwrap_or_default(),
        filter: args.filter,
        channels: args.channels,
        labels: args.labels.map(),
        ..Default::default()
    };
    Ok(v1::CreateSubscriptionRequest {
        parent,
        subscription_id: args.id,
        subscription: Some(subscription),
        validate_only: args.mode.dry.dry_run,
        ..Default::default()
    })
}

/// The same as an update of everything, which creates what is missing.
fn upsert(request: v1::CreateSubscriptionRequest) -> Result<v1::UpdateSubscriptionRequest, Usage> {
    let v1::CreateSubscriptionRequest {
        parent, subscription_id, subscription, validate_only, ..
    } = request;
    let name = upsert_name(Collection::Subscriptions, &parent, &subscription_id)?;
    Ok(v1::UpdateSubscriptionRequest {
        subscription: subscription.map(|subscription| v1::Subscription { name, ..subscription }),
        update_mask: everything(),
        allow_missing: true,
        validate_only,
    })
}

fn update(name: String, args: UpdateArgs) -> anyhow::Result<v1::UpdateSubscriptionRequest> {
    let mut mask = Mask::default();
    let types = (!args.types.is_empty()).then_some(args.types);
    let channels = (args.clear_channels || !args.channels.is_empty()).then_some(args.channels);
    let subscription = v1::Subscription {
        name,
        etag: args.target.etag,
        event_types: mask.take("event_types", types),
        payload_format: mask.take("payload_format", args.format.map(PayloadFormat::to_proto)),
        filter: mask.take("filter", args.filter),
        channels: mask.take("channels", channels),
        labels: mask.labels(args.labels),
        ..Default::default()
    };
    Ok(v1::UpdateSubscriptionRequest {
        subscription: Some(subscription),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
        ..Default::default()
    })
}
