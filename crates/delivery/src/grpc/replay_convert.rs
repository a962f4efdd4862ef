//! Messages of replays.

use super::convert;
use crate::replay::name;
use turnbuckle_domain::{
    DeliveryState, EndpointId, Error, EventUid, FinishReason, ReopenedStates, Replay, ReplayCounts,
    ReplayFilter, ReplayId, ReplayScope, ReplayState, ResourceId, TenantId, Timestamp, TypePattern,
    Violations, replay_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{from_timestamp, timestamp, timestamp_opt};
use uuid::Uuid;

/// No state: what is there already stays as it is.
const NONE: ReopenedStates = ReopenedStates { delivered: false, dead: false, cancelled: false };
const ALL: ReopenedStates = ReopenedStates { delivered: true, dead: true, cancelled: true };

/// A wish, with what is wrong with it.
pub(super) struct Draft {
    replay: Replay,
    violations: Violations,
}

impl Draft {
    /// The replay, when nothing is wrong. Whose it is, its id and its maker are filled in by the caller.
    pub(super) fn check(mut self, needs_reason: bool) -> Result<Replay, Error> {
        let reason = &self.replay.reason;
        let (least, most) = (usize::from(needs_reason), replay_limits::REASON_CHARS);
        if !(least..=most).contains(&reason.chars().count()) || reason.contains(char::is_control) {
            let message = format!("say why in 1 to {most} characters on one line");
            self.violations.add("replay.reason", message);
        }
        self.violations.finish()?;
        Ok(self.replay)
    }
}

/// Takes the message apart and notes everything wrong at once.
pub(super) fn draft(
    slug: &ResourceId,
    wish: &v1::Replay,
    endpoint: Option<EndpointId>,
    now: Timestamp,
) -> Draft {
    let mut violations = Violations::new();
    let (scope, states) = mode(wish, &mut violations);
    let source = (!wish.source.is_empty()).then(|| wish.source.clone());
    let (from, until) = times(wish, now, &mut violations);
    let filter = ReplayFilter {
        endpoint,
        event_types: event_types(wish, &mut violations),
        source,
        events: events(slug, wish, &mut violations),
        from,
        until,
        states,
        reasons: reasons(wish, scope, &mut violations),
    };
    let rate = rate(wish, &mut violations);
    let replay = Replay {
        id: ReplayId::from_uuid(Uuid::nil()),
        tenant: TenantId::from_uuid(Uuid::nil()),
        scope,
        filter,
        endpoint_slug: String::new(),
        rate,
        reason: wish.reason.clone(),
        created_by: String::new(),
        created_at: now,
        state: ReplayState::Pending,
        counts: ReplayCounts::default(),
        position: None,
        waiting: false,
        started_at: None,
        updated_at: now,
        finished_at: None,
        failure: String::new(),
    };
    Draft { replay, violations }
}

fn mode(wish: &v1::Replay, violations: &mut Violations) -> (ReplayScope, ReopenedStates) {
    let (scope, states) = match v1::ReplayMode::try_from(wish.mode) {
        Ok(v1::ReplayMode::Failed) => (ReplayScope::Deliveries, ReopenedStates::FAILED),
        Ok(v1::ReplayMode::All) => (ReplayScope::Deliveries, ALL),
        Ok(v1::ReplayMode::Missing) => (ReplayScope::Events, NONE),
        Ok(v1::ReplayMode::Unspecified) | Err(_) => {
            violations.add("replay.mode", "choose FAILED, ALL or MISSING");
            (ReplayScope::Deliveries, ReopenedStates::FAILED)
        }
    };
    if wish.states.is_empty() {
        return (scope, states);
    }
    let only = |state: v1::DeliveryState| wish.states.contains(&state.into());
    let known = [v1::DeliveryState::Dead, v1::DeliveryState::Cancelled].map(i32::from);
    if states != ReopenedStates::FAILED || !wish.states.iter().all(|state| known.contains(state)) {
        violations.add("replay.states", "use DEAD and CANCELLED, with the mode FAILED only");
    }
    let (dead, cancelled) = (only(v1::DeliveryState::Dead), only(v1::DeliveryState::Cancelled));
    (scope, ReopenedStates { delivered: false, dead, cancelled })
}

fn times(
    wish: &v1::Replay,
    now: Timestamp,
    violations: &mut Violations,
) -> (Option<Timestamp>, Timestamp) {
    let mut read = |field: &str, time: &Option<prost_types::Timestamp>| {
        let time = time.as_ref()?;
        let read = from_timestamp(time).filter(|time| *time >= Timestamp::EPOCH);
        if read.is_none() {
            violations.add(field, "use a time between 1970 and 9999");
        }
        read
    };
    let from = read("replay.start_time", &wish.start_time);
    let until = read("replay.end_time", &wish.end_time).map_or(now, |until| until.min(now));
    if from.is_some_and(|from| from >= until) {
        violations.add("replay.start_time", "must be before end_time, and not in the future");
    }
    (from, until)
}

fn event_types(wish: &v1::Replay, violations: &mut Violations) -> Vec<TypePattern> {
    if wish.event_types.len() > replay_limits::EVENT_TYPES {
        let message = format!("use at most {}", replay_limits::EVENT_TYPES);
        violations.add("replay.event_types", message);
        return Vec::new();
    }
    let fields = wish.event_types.iter().enumerate();
    let read = |(index, text): (usize, &String)| {
        violations.take(&format!("replay.event_types[{index}]"), TypePattern::parse(text))
    };
    fields.filter_map(read).collect()
}

/// Sorted, each once.
fn events(slug: &ResourceId, wish: &v1::Replay, violations: &mut Violations) -> Vec<EventUid> {
    if wish.events.len() > replay_limits::EVENTS {
        let message = format!("use at most {}; make more replays for more", replay_limits::EVENTS);
        violations.add("replay.events", message);
        return Vec::new();
    }
    let mut events = Vec::with_capacity(wish.events.len());
    for (index, text) in wish.events.iter().enumerate() {
        let field = format!("replay.events[{index}]");
        let parts = convert::child(&field, text, "events").ok().filter(|(owner, _)| owner == slug);
        match parts.and_then(|(_, id)| id.parse::<EventUid>().ok()) {
            Some(event) => events.push(event),
            None => violations.add(field, format!("use the form tenants/{slug}/events/{{event}}")),
        }
    }
    events.sort_unstable();
    events.dedup();
    events
}

fn reasons(
    wish: &v1::Replay,
    scope: ReplayScope,
    violations: &mut Violations,
) -> Vec<FinishReason> {
    if !wish.reasons.is_empty() && (scope == ReplayScope::Events || is_all(wish)) {
        violations.add("replay.reasons", "choose reasons with the mode FAILED only");
    }
    let mut reasons = Vec::new();
    // More than there are can only be repeats.
    for (index, text) in wish.reasons.iter().enumerate().take(Violations::MAX) {
        match FinishReason::parse(text) {
            Some(reason) => reasons.push(reason),
            None => violations.add(
                format!("replay.reasons[{index}]"),
                "is no reason of a delivery, such as ATTEMPTS_EXHAUSTED",
            ),
        }
    }
    reasons
}

fn is_all(wish: &v1::Replay) -> bool {
    wish.mode() == v1::ReplayMode::All
}

fn rate(wish: &v1::Replay, violations: &mut Violations) -> u32 {
    let given = match wish.rate_per_second {
        0 => Some(replay_limits::RATE_DEFAULT),
        given => u32::try_from(given).ok().filter(|rate| *rate <= replay_limits::RATE_MAX),
    };
    given.unwrap_or_else(|| {
        let message = format!(
            "use 1 to {} deliveries a second, or 0 for {}",
            replay_limits::RATE_MAX,
            replay_limits::RATE_DEFAULT
        );
        violations.add("replay.rate_per_second", message);
        replay_limits::RATE_DEFAULT
    })
}

pub(super) fn replay(slug: &ResourceId, replay: Replay) -> v1::Replay {
    let position_time = replay.position_time();
    let Replay { filter, .. } = &replay;
    let endpoint = match replay.endpoint_slug.as_str() {
        "" => String::new(),
        id => format!("tenants/{slug}/endpoints/{id}"),
    };
    let mode = mode_of(&replay);
    let states = match mode {
        v1::ReplayMode::Failed => {
            filter.states.iter().filter_map(state_of).map(i32::from).collect()
        }
        _ => Vec::new(),
    };
    v1::Replay {
        name: name(slug, replay.id),
        mode: mode.into(),
        endpoint,
        event_types: filter.event_types.iter().map(ToString::to_string).collect(),
        source: filter.source.clone().unwrap_or_default(),
        events: filter.events.iter().map(|uid| convert::event_name(slug, *uid)).collect(),
        start_time: timestamp_opt(filter.from),
        end_time: Some(timestamp(filter.until)),
        states,
        reasons: filter.reasons.iter().map(|reason| reason.as_str().to_owned()).collect(),
        rate_per_second: i32::try_from(replay.rate).unwrap_or(i32::MAX),
        state: state(replay.state).into(),
        progress: Some(progress(&replay.counts, position_time, replay.waiting)),
        creator: replay.created_by,
        create_time: Some(timestamp(replay.created_at)),
        begin_time: timestamp_opt(replay.started_at),
        update_time: Some(timestamp(replay.updated_at)),
        finish_time: timestamp_opt(replay.finished_at),
        reason: replay.reason,
        failure: replay.failure,
    }
}

fn mode_of(replay: &Replay) -> v1::ReplayMode {
    match replay.scope {
        ReplayScope::Events => v1::ReplayMode::Missing,
        ReplayScope::Deliveries if replay.filter.states.delivered => v1::ReplayMode::All,
        ReplayScope::Deliveries => v1::ReplayMode::Failed,
    }
}

const fn state_of(state: DeliveryState) -> Option<v1::DeliveryState> {
    match state {
        DeliveryState::Dead => Some(v1::DeliveryState::Dead),
        DeliveryState::Cancelled => Some(v1::DeliveryState::Cancelled),
        DeliveryState::Pending | DeliveryState::Delivered => None,
    }
}

fn progress(
    counts: &ReplayCounts,
    position: Option<Timestamp>,
    waiting: bool,
) -> v1::ReplayProgress {
    v1::ReplayProgress {
        looked_at: number(counts.looked_at),
        matched: number(counts.matched),
        reopened: number(counts.reopened),
        made: number(counts.made),
        skipped_pending: number(counts.skipped_pending),
        skipped_inactive: number(counts.skipped_inactive),
        skipped_gone: number(counts.skipped_gone),
        skipped_finished: number(counts.skipped_finished),
        skipped_unwanted: number(counts.skipped_unwanted),
        position_time: timestamp_opt(position),
        waiting,
    }
}

pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const fn state(state: ReplayState) -> v1::ReplayState {
    match state {
        ReplayState::Pending => v1::ReplayState::Pending,
        ReplayState::Running => v1::ReplayState::Running,
        ReplayState::Paused => v1::ReplayState::Paused,
        ReplayState::Done => v1::ReplayState::Done,
        ReplayState::Cancelled => v1::ReplayState::Cancelled,
        ReplayState::Failed => v1::ReplayState::Failed,
    }
}

/// The state a list is filtered by; none for every state.
pub(super) fn state_filter(number: i32) -> Result<Option<ReplayState>, Error> {
    let wanted = v1::ReplayState::try_from(number)
        .map_err(|_| Error::invalid("state", "use a value of ReplayState"))?;
    Ok(ReplayState::ALL.into_iter().find(|known| state(*known) == wanted))
}
