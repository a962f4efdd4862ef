//! `turnbuckle event …`

use super::{
    common::{ListArgs, literal_or_file, show_pages},
    global::Session,
    names::Collection,
    values::parse_time,
};
use prost_types::Timestamp;
use turnbuckle_proto::v1;

/// What can be done with events.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Publishes one event. Done means: durable.
    Publish(PublishArgs),
    /// Shows one event.
    Get(GetArgs),
    /// Lists events, newest first, without their payloads.
    List(FindArgs),
}

/// Options of `event publish`.
#[derive(Clone, Debug, clap::Args)]
pub struct PublishArgs {
    /// Registered event type, such as order.paid.
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: String,
    /// Payload: the text itself, @FILE, or - for stdin. Sent byte for byte.
    #[arg(long, allow_hyphen_values = true)]
    pub data: String,
    /// Your id of the event. The same id is accepted once; publishing again is safe.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub id: String,
    /// Who it comes from; ids are unique within a source.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub source: String,
    /// The object it is about, such as orders/1001.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub subject: String,
    /// The object's version.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub sequence: Option<i64>,
    /// Version of the payload's schema [default: 1]. The payload must follow it where it is registered.
    #[arg(long = "version", default_value = "", hide_default_value = true)]
    pub event_version: String,
    /// Channel it belongs to; repeat for more, or separate by commas. Subscriptions with channels get
    /// it when they share one.
    #[arg(long = "channel", value_delimiter = ',', value_name = "CHANNEL")]
    pub channels: Vec<String>,
    /// Media type of the payload [default: application/json].
    #[arg(long, default_value = "", hide_default_value = true)]
    pub content_type: String,
    /// When it happened, RFC 3339 [default: now].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub occurred_at: Option<Timestamp>,
}

/// Options of `event get`.
#[derive(Clone, Debug, clap::Args)]
pub struct GetArgs {
    /// Name, short (evt_…) or full. Find it by your own id with `event list --event-id ID`.
    pub name: String,
    /// Writes the payload alone, byte for byte.
    #[arg(long)]
    pub payload: bool,
}

/// Options of `event list`.
#[derive(Clone, Debug, clap::Args)]
pub struct FindArgs {
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
    /// Only events with this id.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub event_id: String,
    /// Only events of this type.
    #[arg(long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    pub event_type: String,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    match verb {
        Verb::Publish(args) => publish(args, session).await,
        Verb::Get(args) => {
            let name = Collection::Events.name(&session.parent, &args.name)?;
            let request = v1::GetEventRequest { name };
            let event = session.client.events().get_event(request).await?.into_inner();
            if args.payload {
                return session.output.raw(&event.data);
            }
            session.output.one(&event)
        }
        Verb::List(args) => {
            let mut events = session.client.events();
            let parent = &session.parent;
            let limit = args.list.limit;
            show_pages(&mut session.output, limit, async |page_size, page_token| {
                let request = v1::ListEventsRequest {
                    parent: parent.clone(),
                    page_size,
                    page_token,
                    event_id: args.event_id.clone(),
                    event_type: args.event_type.clone(),
                };
                let page = events.list_events(request).await?.into_inner();
                Ok((page.events, page.next_page_token))
            })
            .await
        }
    }
}

async fn publish(args: PublishArgs, session: &mut Session) -> anyhow::Result<()> {
    let event = v1::Event {
        data: literal_or_file(&args.data)?.into(),
        event_id: args.id,
        event_type: args.event_type,
        event_version: args.event_version,
        occurred_at: args.occurred_at,
        source: args.source,
        subject: args.subject,
        sequence: args.sequence,
        content_type: args.content_type,
        channels: args.channels,
        ..Default::default()
    };
    let accepted = session.client.publish(session.parent.clone(), event).await?;
    session.output.one(&accepted)?;
    if accepted.duplicate {
        session.output.note("note: this event had been accepted before; nothing new happens")?;
    } else if accepted.deliveries == 0 {
        session.output.note("note: no subscription wants this event")?;
    }
    Ok(())
}
