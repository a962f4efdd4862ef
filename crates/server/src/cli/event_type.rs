//! `turnbuckle event-type …`

use super::{
    common::{GuardedTarget, LabelChange, Labels, ListArgs, Mask, Target, show_pages},
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
    /// Deletes an event type: publishing it is refused from then on.
    Delete(GuardedTarget),
}

/// Options of `event-type create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// The type, such as order.paid.
    pub id: String,
    /// What it means, for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
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
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut types = session.client.event_types();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::EventTypes.name(&parent, given);
    let event_type = match verb {
        Verb::Create(args) => {
            let event_type = v1::EventType {
                description: args.description,
                labels: args.labels.map(),
                ..Default::default()
            };
            let request = v1::CreateEventTypeRequest {
                parent,
                event_type_id: args.id,
                event_type: Some(event_type),
                ..Default::default()
            };
            types.create_event_type(request).await?
        }
        Verb::Get(target) => {
            let name = full(&target.name)?;
            types.get_event_type(v1::GetEventTypeRequest { name }).await?
        }
        Verb::Update(args) => {
            let name = full(&args.target.name)?;
            types.update_event_type(update(name, args)?).await?
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
    };
    session.output.one(event_type.get_ref())
}

fn update(name: String, args: UpdateArgs) -> anyhow::Result<v1::UpdateEventTypeRequest> {
    let mut mask = Mask::default();
    let event_type = v1::EventType {
        name,
        etag: args.target.etag,
        description: mask.take("description", args.description),
        labels: mask.labels(args.labels),
        ..Default::default()
    };
    Ok(v1::UpdateEventTypeRequest {
        event_type: Some(event_type),
        update_mask: mask.finish()?,
        ..Default::default()
    })
}
