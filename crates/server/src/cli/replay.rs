//! `turnbuckle replay …`

use super::{
    common::{ListArgs, Target, show_pages},
    global::Session,
    names::Collection,
    values::parse_time,
};
use anyhow::Context as _;
use std::time::Duration;
use tokio::time::sleep;
use turnbuckle_proto::v1::{self, ReplayState};

/// How often `--wait` looks.
const POLL: Duration = Duration::from_secs(1);

/// What can be done with replays.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Sends again what the options choose, oldest first. It goes on by itself; see `replay get`.
    Create(Box<CreateArgs>),
    /// Shows one replay and how far it is.
    Get(Target),
    /// Lists replays, newest first.
    List(FindArgs),
    /// Stops a replay until it is resumed.
    Pause(Target),
    /// Lets a paused replay go on where it stopped.
    Resume(Target),
    /// Ends a replay. What it has opened goes on.
    Cancel(Target),
}

/// What a replay sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Deliveries that never arrived: dead and cancelled ones.
    Failed,
    /// Every finished delivery, those that arrived too.
    All,
    /// Events that an endpoint wants today and has no delivery of.
    Missing,
}

/// A state of failed deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailedState {
    /// Dead letters.
    Dead,
    /// Cancelled ones.
    Cancelled,
}

/// Where a replay stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum State {
    /// Waits for a process.
    Pending,
    /// A process works at it.
    Running,
    /// Stands still until it is resumed.
    Paused,
    /// It has looked at everything.
    Done,
    /// Somebody ended it.
    Cancelled,
    /// It could not go on.
    Failed,
}

impl State {
    fn to_proto(self) -> i32 {
        let state = match self {
            Self::Pending => ReplayState::Pending,
            Self::Running => ReplayState::Running,
            Self::Paused => ReplayState::Paused,
            Self::Done => ReplayState::Done,
            Self::Cancelled => ReplayState::Cancelled,
            Self::Failed => ReplayState::Failed,
        };
        state.into()
    }
}

/// Options of `replay create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// What is sent again.
    #[arg(long, value_enum, default_value_t = Mode::Failed)]
    pub mode: Mode,
    /// Only to this endpoint.
    #[arg(long, value_name = "NAME")]
    pub endpoint: Option<String>,
    /// Only events of this type or pattern, such as order.*; repeat for more.
    #[arg(long = "event-type", value_name = "PATTERN")]
    pub event_types: Vec<String>,
    /// Only events of this source.
    #[arg(long, value_name = "SOURCE", default_value = "", hide_default_value = true)]
    pub source: String,
    /// Only this event (evt_…); repeat for more.
    #[arg(long = "event", value_name = "NAME")]
    pub events: Vec<String>,
    /// Only events accepted at this time or later, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub from: Option<prost_types::Timestamp>,
    /// Only events accepted before this time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<prost_types::Timestamp>,
    /// Only failed deliveries in this state; repeat for more.
    #[arg(long = "state", value_enum)]
    pub states: Vec<FailedState>,
    /// Only failed deliveries that ended for this reason, such as FINAL_ANSWER; repeat for more.
    #[arg(long = "finish-reason", value_name = "REASON")]
    pub reasons: Vec<String>,
    /// Deliveries a second, up to 5000; 0 for the server's default.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub rate: i32,
    /// Why, for the record.
    #[arg(
        long,
        required_unless_present = "dry_run",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    /// Counts what would be chosen, and sends nothing.
    #[arg(long, conflicts_with_all = ["wait", "request_id"])]
    pub dry_run: bool,
    /// Waits until the replay is finished, and shows how far it is.
    #[arg(long)]
    pub wait: bool,
    /// A UUID of yours: a repeat with the same one makes no second replay.
    #[arg(long, value_name = "UUID", default_value = "", hide_default_value = true)]
    pub request_id: String,
}

/// Options of `replay list`.
#[derive(Clone, Debug, clap::Args)]
pub struct FindArgs {
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
    /// Only replays in this state.
    #[arg(long, value_enum)]
    pub state: Option<State>,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut replays = session.client.replays();
    let parent = session.parent.clone();
    let full = |target: Target| Collection::Replays.name(&parent, &target.name);
    let replay = match verb {
        Verb::Create(args) => return create(*args, session).await,
        Verb::List(args) => return list(args, session).await,
        Verb::Get(target) => {
            let name = full(target)?;
            replays.get_replay(v1::GetReplayRequest { name }).await?
        }
        Verb::Pause(target) => {
            let name = full(target)?;
            replays.pause_replay(v1::PauseReplayRequest { name }).await?
        }
        Verb::Resume(target) => {
            let name = full(target)?;
            replays.resume_replay(v1::ResumeReplayRequest { name }).await?
        }
        Verb::Cancel(target) => {
            let name = full(target)?;
            replays.cancel_replay(v1::CancelReplayRequest { name }).await?
        }
    };
    session.output.one(replay.get_ref())
}

async fn create(args: CreateArgs, session: &mut Session) -> anyhow::Result<()> {
    let parent = session.parent.clone();
    let (dry_run, wait, request_id) = (args.dry_run, args.wait, args.request_id.clone());
    let replay = Some(wish(args, &parent)?);
    let mut replays = session.client.replays();
    if dry_run {
        let request = v1::PreviewReplayRequest { parent, replay };
        return session.output.one(replays.preview_replay(request).await?.get_ref());
    }
    let request = v1::CreateReplayRequest { parent, replay, request_id };
    let mut replay = replays.create_replay(request).await?.into_inner();
    while wait && replay.finish_time.is_none() && replay.state() != ReplayState::Paused {
        session.output.note(&progress_line(&replay))?;
        sleep(POLL).await;
        let request = v1::GetReplayRequest { name: replay.name.clone() };
        replay = replays.get_replay(request).await?.into_inner();
    }
    session.output.one(&replay).context("the replay goes on; see `turnbuckle replay get`")
}

/// How far it is, for a person who waits.
fn progress_line(replay: &v1::Replay) -> String {
    let progress = replay.progress.unwrap_or_default();
    let sent = progress.reopened + progress.made;
    let waits = if progress.waiting { ", waits for a slow endpoint" } else { "" };
    format!("{sent} opened of {} chosen, {} looked at{waits}", progress.matched, progress.looked_at)
}

fn wish(args: CreateArgs, parent: &str) -> anyhow::Result<v1::Replay> {
    let mode = match args.mode {
        Mode::Failed => v1::ReplayMode::Failed,
        Mode::All => v1::ReplayMode::All,
        Mode::Missing => v1::ReplayMode::Missing,
    };
    let state = |state: &FailedState| match state {
        FailedState::Dead => v1::DeliveryState::Dead.into(),
        FailedState::Cancelled => v1::DeliveryState::Cancelled.into(),
    };
    let endpoint = args.endpoint.map(|name| Collection::Endpoints.name(parent, &name));
    let events = args.events.iter().map(|name| Collection::Events.name(parent, name));
    Ok(v1::Replay {
        mode: mode.into(),
        endpoint: endpoint.transpose()?.unwrap_or_default(),
        event_types: args.event_types,
        source: args.source,
        events: events.collect::<Result<_, _>>()?,
        start_time: args.from,
        end_time: args.until,
        states: args.states.iter().map(state).collect(),
        reasons: args.reasons,
        rate_per_second: args.rate,
        reason: args.reason,
        ..Default::default()
    })
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut replays = session.client.replays();
    let (parent, state) = (session.parent.clone(), args.state.map(State::to_proto));
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let state = state.unwrap_or_default();
        let request = v1::ListReplaysRequest { parent, page_size, page_token, state };
        let page = replays.list_replays(request).await?.into_inner();
        Ok((page.replays, page.next_page_token))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_a_person_wants_to_know() {
        let progress = v1::ReplayProgress {
            looked_at: 20,
            matched: 9,
            reopened: 3,
            made: 1,
            waiting: true,
            ..Default::default()
        };
        let replay = v1::Replay { progress: Some(progress), ..Default::default() };
        let line = progress_line(&replay);
        assert_eq!(line, "4 opened of 9 chosen, 20 looked at, waits for a slow endpoint");
    }
}
