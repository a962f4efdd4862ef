//! What a replay chooses, as the text that is stored: JSON with names, so that it outlives our types.

use super::entity::corrupt;
use serde_json::{Value, json};
use turnbuckle_domain::{
    DeliveryState, EndpointId, EventUid, FinishReason, ReopenedStates, ReplayFilter, StoreError,
    Timestamp, TypePattern,
};
use uuid::Uuid;

pub(super) fn encode(filter: &ReplayFilter) -> Result<String, StoreError> {
    let states: Vec<&str> = filter.states.iter().map(DeliveryState::as_str).collect();
    let types: Vec<String> = filter.event_types.iter().map(ToString::to_string).collect();
    let events: Vec<Uuid> = filter.events.iter().map(|event| event.uuid()).collect();
    let reasons: Vec<&str> = filter.reasons.iter().map(|reason| reason.as_str()).collect();
    let document = json!({
        "endpoint": filter.endpoint.map(|endpoint| endpoint.uuid().to_string()),
        "event_types": types,
        "source": filter.source,
        "events": events.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "from_us": filter.from.map(Timestamp::micros),
        "until_us": filter.until.micros(),
        "states": states,
        "reasons": reasons,
    });
    serde_json::to_string(&document).map_err(|error| StoreError::Internal(error.into()))
}

pub(super) fn decode(text: &str) -> Result<ReplayFilter, StoreError> {
    let document: Value = serde_json::from_str(text).map_err(|_| corrupt("filter"))?;
    read(&document).ok_or_else(|| corrupt("filter"))
}

fn read(document: &Value) -> Option<ReplayFilter> {
    let uuid = |value: &Value| value.as_str()?.parse::<Uuid>().ok();
    let states = texts(&document["states"])?;
    let has = |state: DeliveryState| states.contains(&state.as_str());
    Some(ReplayFilter {
        endpoint: match &document["endpoint"] {
            Value::Null => None,
            id => Some(EndpointId::from_uuid(uuid(id)?)),
        },
        event_types: all(&texts(&document["event_types"])?, |text| TypePattern::parse(text).ok())?,
        source: document["source"].as_str().map(str::to_owned),
        events: all(&texts(&document["events"])?, |text| {
            text.parse().ok().map(EventUid::from_uuid)
        })?,
        from: document["from_us"].as_i64().map(Timestamp::from_micros),
        until: Timestamp::from_micros(document["until_us"].as_i64()?),
        states: ReopenedStates {
            delivered: has(DeliveryState::Delivered),
            dead: has(DeliveryState::Dead),
            cancelled: has(DeliveryState::Cancelled),
        },
        reasons: all(&texts(&document["reasons"])?, FinishReason::parse)?,
    })
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Every text read; none when one cannot be: a replay that chose less or more than was asked for would
/// be worse than none.
fn all<T>(texts: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    texts.iter().copied().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_back_as_it_was_written() {
        let full = ReplayFilter {
            endpoint: Some(EndpointId::from_uuid(Uuid::from_u128(1))),
            event_types: ["*", "order.*", "order.paid"]
                .map(|t| TypePattern::parse(t).unwrap())
                .into(),
            source: Some("shop \"ü\"".to_owned()),
            events: vec![EventUid::from_uuid(Uuid::from_u128(2))],
            from: Some(Timestamp::from_micros(3)),
            until: Timestamp::from_micros(4),
            states: ReopenedStates { delivered: true, dead: false, cancelled: true },
            reasons: vec![FinishReason::FinalAnswer, FinishReason::EndpointDisabled],
        };
        let bare = ReplayFilter {
            endpoint: None,
            event_types: Vec::new(),
            source: None,
            events: Vec::new(),
            from: None,
            reasons: Vec::new(),
            ..full
        };
        for filter in [&full, &bare] {
            assert_eq!(decode(&encode(filter).unwrap()).unwrap(), *filter);
        }
        for bad in
            ["", "{}", r#"{"until_us":1,"states":[],"event_types":["?"],"events":[],"reasons":[]}"#]
        {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}
