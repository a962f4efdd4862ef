//! `turnbuckle event-type …`

use super::{
    common::{
        CreateMode, DryRun, GuardedTarget, LabelChange, Labels, ListArgs, Mask, Target, everything,
        show_pages, upsert_name,
    },
    error::Usage,
    event_type_version,
    global::Session,
    names::Collection,
};
use turnbuckle_proto::v1;

/// What can be done with event types.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Registers an event type, so that it can be published.
    Create(CreateArgs),
    /// Shows one event type.
    Get(Target),
    /// Lists the tenant's event types.
    List(ListArgs),
    /// Changes an event type.
    Update(UpdateArgs),
    /// Deletes an event type with its versions: publishing it is refused from then on.
    Delete(GuardedTarget),
    /// Versions of event types: a JSON Schema each, which payloads follow.
    #[command(subcommand)]
    Version(event_type_version::Verb),
}

/// What a new version must keep of the latest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Compatibility {
    /// Anything may change.
    None,
    /// The new schema takes all data that the old one takes.
    Backward,
    /// Each of the two takes all data that the other takes.
    Full,
}

impl Compatibility {
    fn to_proto(self) -> i32 {
        let rule = match self {
            Self::None => v1::Compatibility::None,
            Self::Backward => v1::Compatibility::Backward,
            Self::Full => v1::Compatibility::Full,
        };
        rule.into()
    }
}

/// What becomes of events whose version is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UnknownVersion {
    /// They are accepted, and their payload is not checked.
    Allow,
    /// They are refused.
    Refuse,
}

impl UnknownVersion {
    fn to_proto(self) -> i32 {
        let choice = match self {
            Self::Allow => v1::UnknownVersion::Allow,
            Self::Refuse => v1::UnknownVersion::Refuse,
        };
        choice.into()
    }
}

/// What holds for the versions of an event type.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Policies {
    /// What a new version must keep of the latest one [default: backward].
    #[arg(long, value_enum)]
    pub compatibility: Option<Compatibility>,
    /// What becomes of events whose version is not registered [default: allow].
    #[arg(long, value_enum)]
    pub unknown_version: Option<UnknownVersion>,
}

/// Options of `event-type create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// The type, such as order.paid.
    pub id: String,
    /// What it means, for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// What holds for its versions.
    #[command(flatten)]
    pub policies: Policies,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// What if it exists.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `event-type update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// What it means, for people.
    #[arg(long)]
    pub description: Option<String>,
    /// What holds for its versions.
    #[command(flatten)]
    pub policies: Policies,
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
        _ => false,
    };
    let mut types = session.client.event_types();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::EventTypes.name(&parent, given);
    let event_type = match verb {
        Verb::Create(args) if args.mode.upsert => {
            let request = upsert(create(parent, args))?;
            types.update_event_type(request).await?.into_inner()
        }
        Verb::Create(args) => session.client.create_event_type(create(parent, args)).await?,
        Verb::Get(target) => {
            let name = full(&target.name)?;
            types.get_event_type(v1::GetEventTypeRequest { name }).await?.into_inner()
        }
        Verb::Update(args) => {
            let name = full(&args.target.name)?;
            types.update_event_type(update(name, args)?).await?.into_inner()
        }
        Verb::List(args) => {
            return show_pages(&mut session.output, args.limit, async |page_size, page_token| {
                let parent = parent.clone();
                let request = v1::ListEventTypesRequest { parent, page_size, page_token };
                let page = types.list_event_types(request).await?.into_inner();
                Ok((page.event_types, page.next_page_token))
            })
            .await;
        }
        Verb::Delete(target) => {
            let name = full(&target.name)?;
            let request = v1::DeleteEventTypeRequest { name: name.clone(), etag: target.etag };
            types.delete_event_type(request).await?;
            return session.output.removed(&name);
        }
        Verb::Version(verb) => return event_type_version::run(verb, session).await,
    };
    session.output.one(&event_type)?;
    session.output.note_dry_run(dry_run)
}

fn create(parent: String, args: CreateArgs) -> v1::CreateEventTypeRequest {
    let Policies { compatibility, unknown_version } = args.policies;
    let event_type = v1::EventType {
        description: args.description,
        compatibility: compatibility.map(Compatibility::to_proto).unwrap_or_default(),
        unknown_version: unknown_version.map(UnknownVersion::to_proto).unwrap_or_default(),
        labels: args.labels.map(),
        ..Default::default()
    };
    v1::CreateEventTypeRequest {
        parent,
        event_type_id: args.id,
        event_type: Some(event_type),
        validate_only: args.mode.dry.dry_run,
        ..Default::default()
    }
}

/// The same as an update of everything, which creates what is missing.
fn upsert(request: v1::CreateEventTypeRequest) -> Result<v1::UpdateEventTypeRequest, Usage> {
    let v1::CreateEventTypeRequest { parent, event_type_id, event_type, validate_only, .. } =
        request;
    let name = upsert_name(Collection::EventTypes, &parent, &event_type_id)?;
    Ok(v1::UpdateEventTypeRequest {
        event_type: event_type.map(|event_type| v1::EventType { name, ..event_type }),
        update_mask: everything(),
        allow_missing: true,
        validate_only,
    })
}

fn update(name: String, args: UpdateArgs) -> anyhow::Result<v1::UpdateEventTypeRequest> {
    let mut mask = Mask::default();
    let Policies { compatibility, unknown_version } = args.policies;
    let compatibility = compatibility.map(Compatibility::to_proto);
    let unknown_version = unknown_version.map(UnknownVersion::to_proto);
    let event_type = v1::EventType {
        name,
        etag: args.target.etag,
        description: mask.take("description", args.description),
        compatibility: mask.take("compatibility", compatibility),
        unknown_version: mask.take("unknown_version", unknown_version),
        labels: mask.labels(args.labels),
        ..Default::default()
    };
    Ok(v1::UpdateEventTypeRequest {
        event_type: Some(event_type),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
        ..Default::default()
    })
}
