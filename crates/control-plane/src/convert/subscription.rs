//! Subscriptions on the wire.

use super::{
    change::{self, split_name},
    etag, finish,
    mask::{Fields, Mask},
    new_id, page, single, uid,
    value::{self, WireMeta},
    with_deleted,
};
use crate::{
    kept::{Listed, Lookup, Undelete},
    names::{EndpointName, SubscriptionName, TenantName},
    page::Page,
    subscription::{
        CreateSubscription, DeleteSubscription, ListSubscriptions, SubscriptionView,
        UpdateSubscription,
    },
    write::Upsert,
};
use turnbuckle_domain::{
    Channels, Error, Filter, PayloadFormat, ResourceId, SubscriptionId, TypePattern, Violations,
    limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc;

const PATTERNS_FIELD: &str = "subscription.event_types";
const FORMAT_FIELD: &str = "subscription.payload_format";
const FILTER_FIELD: &str = "subscription.filter";
const ENDPOINT_FIELD: &str = "subscription.endpoint";
const CHANNELS_FIELD: &str = "subscription.channels";

fn patterns(violations: &mut Violations, texts: &[String]) -> Option<Vec<TypePattern>> {
    if texts.is_empty() || texts.len() > limits::PATTERNS {
        let count = texts.len();
        violations.add(
            PATTERNS_FIELD,
            format!("has {count} patterns; use 1 to {}, such as order.* or *", limits::PATTERNS),
        );
        return None;
    }
    let mut patterns = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let pattern =
            violations.take(&format!("{PATTERNS_FIELD}[{index}]"), TypePattern::parse(text));
        // Twice the same pattern means the same as once.
        patterns.extend(pattern.filter(|pattern| !patterns.contains(pattern)));
    }
    Some(patterns)
}

fn payload_format(number: i32) -> Result<PayloadFormat, String> {
    use v1::PayloadFormat as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified | Wire::Envelope) => Ok(PayloadFormat::Envelope),
        Ok(Wire::Standard) => Ok(PayloadFormat::Standard),
        Ok(Wire::Raw) => Ok(PayloadFormat::Raw),
        Err(_) => Err(format!("is {number}, which names no payload format")),
    }
}

const fn wire_format(format: PayloadFormat) -> v1::PayloadFormat {
    match format {
        PayloadFormat::Envelope => v1::PayloadFormat::Envelope,
        PayloadFormat::Standard => v1::PayloadFormat::Standard,
        PayloadFormat::Raw => v1::PayloadFormat::Raw,
    }
}

/// A filter that every event passes is none.
fn filter(violations: &mut Violations, text: &str) -> Option<Option<Filter>> {
    let filter = violations.take(FILTER_FIELD, Filter::parse(text))?;
    Some(Some(filter).filter(|filter| !filter.matches_everything()))
}

fn channels(violations: &mut Violations, texts: Vec<String>) -> Option<Channels> {
    Channels::read(texts, limits::CHANNELS, CHANNELS_FIELD, violations)
}

/// The endpoint, which must be the tenant's own.
fn endpoint(
    violations: &mut Violations,
    tenant: Option<&ResourceId>,
    text: &str,
) -> Option<EndpointName> {
    let endpoint = violations.take(ENDPOINT_FIELD, EndpointName::parse(text))?;
    if let Some(tenant) = tenant.filter(|tenant| **tenant != endpoint.tenant) {
        violations.add(
            ENDPOINT_FIELD,
            format!("is of another tenant; use tenants/{tenant}/endpoints/{{endpoint}}"),
        );
    }
    Some(endpoint)
}

pub(crate) fn create(request: v1::CreateSubscriptionRequest) -> Result<CreateSubscription, Error> {
    let mut violations = Violations::new();
    let subscription = request.subscription.unwrap_or_default();
    let tenant = violations.take("parent", TenantName::parse(&request.parent)).map(|name| name.0);
    let slug = new_id(&mut violations, "subscription_id", request.subscription_id);
    let endpoint = endpoint(&mut violations, tenant.as_ref(), &subscription.endpoint);
    let patterns = patterns(&mut violations, &subscription.event_types);
    let format = violations.take(FORMAT_FIELD, payload_format(subscription.payload_format));
    let filter = filter(&mut violations, &subscription.filter);
    let channels = channels(&mut violations, subscription.channels);
    let labels = value::labels(&mut violations, "subscription.labels", subscription.labels);
    let command = || {
        Some(CreateSubscription {
            tenant: tenant?,
            slug: slug?,
            endpoint: endpoint?,
            patterns: patterns?,
            format: format?,
            filter: filter?,
            channels: channels?,
            labels: labels?,
        })
    };
    finish(violations, command())
}

pub(crate) fn get(request: v1::GetSubscriptionRequest) -> Result<Lookup<SubscriptionName>, Error> {
    let name = single("name", SubscriptionName::parse(&request.name))?;
    Ok(Lookup { name, show_deleted: request.show_deleted })
}

pub(crate) fn list(request: v1::ListSubscriptionsRequest) -> Result<ListSubscriptions, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let show_deleted = request.show_deleted;
    let scope = format!("{}/subscriptions{}", request.parent, with_deleted(show_deleted));
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListSubscriptions { tenant: parent?.0, page: page?, show_deleted });
    finish(violations, command())
}

pub(crate) fn update(request: v1::UpdateSubscriptionRequest) -> Result<UpdateSubscription, Error> {
    let mut violations = Violations::new();
    let Some(subscription) = request.subscription else {
        return Err(Error::invalid("subscription", "is required"));
    };
    let fields = Fields {
        changeable: &[
            ("event_types", !subscription.event_types.is_empty()),
            ("payload_format", subscription.payload_format != 0),
            ("labels", !subscription.labels.is_empty()),
            ("filter", !subscription.filter.is_empty()),
            ("channels", !subscription.channels.is_empty()),
        ],
        output_only: &[],
        fixed: &["endpoint"],
    };
    let whole = request
        .update_mask
        .as_ref()
        .is_none_or(|mask| mask.paths.is_empty() || mask.paths.iter().any(|path| path == "*"));
    let mask = Mask::read(request.update_mask, &fields, &mut violations);
    let name = violations.take("subscription.name", SubscriptionName::parse(&subscription.name));
    let etag = etag(&mut violations, "subscription.etag", &subscription.etag);
    let tenant = name.as_ref().map(|name| &name.tenant);
    // Only where the whole resource speaks: a mask that leaves the endpoint out says nothing of it.
    let endpoint = (whole && !subscription.endpoint.is_empty())
        .then(|| endpoint(&mut violations, tenant, &subscription.endpoint))
        .flatten();
    let patterns = mask
        .has("event_types")
        .then(|| patterns(&mut violations, &subscription.event_types))
        .flatten();
    let format = mask
        .has("payload_format")
        .then(|| violations.take(FORMAT_FIELD, payload_format(subscription.payload_format)))
        .flatten();
    let filter =
        mask.has("filter").then(|| filter(&mut violations, &subscription.filter)).flatten();
    let channels =
        mask.has("channels").then(|| channels(&mut violations, subscription.channels)).flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, "subscription.labels", subscription.labels))
        .flatten();
    let command = name.map(|name| UpdateSubscription {
        name,
        etag,
        endpoint,
        patterns,
        format,
        filter,
        channels,
        labels,
    });
    finish(violations, command)
}

pub(crate) fn upsert(
    request: v1::UpdateSubscriptionRequest,
) -> Result<Upsert<UpdateSubscription, CreateSubscription>, Error> {
    let wanted = request.allow_missing.then(|| request.subscription.clone().unwrap_or_default());
    let update = update(request)?;
    let create = wanted.map(|subscription| {
        let (parent, subscription_id) = split_name(&subscription.name);
        let subscription = Some(subscription);
        create(v1::CreateSubscriptionRequest {
            parent,
            subscription_id,
            subscription,
            ..Default::default()
        })
    });
    change::upsert(update, create)
}

pub(crate) fn delete(request: v1::DeleteSubscriptionRequest) -> Result<DeleteSubscription, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SubscriptionName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteSubscription { name, etag }))
}

pub(crate) fn undelete(
    request: v1::UndeleteSubscriptionRequest,
) -> Result<Undelete<SubscriptionName, SubscriptionId>, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SubscriptionName::parse(&request.name));
    let uid = uid(&mut violations, "uid", &request.uid);
    let etag = etag(&mut violations, "etag", &request.etag);
    let command = || Some(Undelete { name: name?, uid: uid?, etag });
    finish(violations, command())
}

pub(crate) fn message(view: &SubscriptionView) -> v1::Subscription {
    let subscription = &view.subscription;
    let meta = WireMeta::from(&subscription.meta);
    let name = SubscriptionName { tenant: view.tenant.clone(), id: subscription.slug.clone() };
    let endpoint = EndpointName { tenant: view.tenant.clone(), id: view.endpoint.clone() };
    v1::Subscription {
        name: name.to_string(),
        uid: value::uid(&subscription.meta, subscription.id),
        endpoint: endpoint.to_string(),
        event_types: subscription.patterns.iter().map(ToString::to_string).collect(),
        payload_format: wire_format(subscription.format).into(),
        filter: subscription.filter.as_ref().map(Filter::to_string).unwrap_or_default(),
        channels: subscription.channels.iter().map(ToString::to_string).collect(),
        labels: value::label_map(&subscription.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        delete_time: view.deleted_at.map(grpc::timestamp),
        purge_time: value::purge_time(view.deleted_at),
    }
}

pub(crate) fn messages(page: &Page<Listed<SubscriptionView>>) -> v1::ListSubscriptionsResponse {
    let (subscriptions, next_page_token) =
        super::page::messages(page, |listed| listed.place.as_str(), |listed| message(&listed.row));
    v1::ListSubscriptionsResponse { subscriptions, next_page_token }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(endpoint: &str, patterns: &[&str]) -> v1::CreateSubscriptionRequest {
        v1::CreateSubscriptionRequest {
            parent: "tenants/acme".to_owned(),
            subscription_id: String::new(),
            subscription: Some(v1::Subscription {
                endpoint: endpoint.to_owned(),
                event_types: patterns.iter().map(|text| (*text).to_owned()).collect(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_subscription_names_an_endpoint_and_patterns() {
        let command =
            create(request("tenants/acme/endpoints/e", &["order.*", "*", "order.*"])).unwrap();
        assert_eq!(command.slug, None);
        assert_eq!(command.format, PayloadFormat::Envelope);
        assert_eq!(command.patterns.len(), 2);
    }

    fn filtered(text: &str) -> v1::CreateSubscriptionRequest {
        let mut request = request("tenants/acme/endpoints/e", &["*"]);
        request.subscription.as_mut().unwrap().filter = text.to_owned();
        request
    }

    #[test]
    fn a_filter_is_checked_when_it_is_written() {
        let command = create(filtered("data.total>=100")).unwrap();
        assert_eq!(command.filter.unwrap().to_string(), "data.total >= 100");
        for everything in ["", "  ", "true"] {
            assert_eq!(create(filtered(everything)).unwrap().filter, None, "{everything:?}");
        }
        let error = create(filtered("data.total = 1")).unwrap_err().to_string();
        let place = "subscription.filter: is wrong at column 12: expected an operator";
        assert!(error.contains(place), "{error}");
        let error = create(filtered(&" ".repeat(4097))).unwrap_err().to_string();
        assert!(error.contains("longer than 4096 bytes"), "{error}");
    }

    #[test]
    fn an_update_keeps_replaces_or_removes_the_filter() {
        let update_with = |text: &str, paths: &[&str]| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            let mut subscription = filtered(text).subscription.unwrap();
            subscription.name = "tenants/acme/subscriptions/s".to_owned();
            let command = update(v1::UpdateSubscriptionRequest {
                subscription: Some(subscription),
                update_mask: Some(prost_types::FieldMask { paths }),
                ..Default::default()
            });
            command.unwrap().filter
        };
        let wanted = Filter::parse("data.total >= 100").unwrap();
        assert_eq!(update_with("", &[]), None);
        assert_eq!(update_with("data.total >= 100", &["labels"]), None);
        for paths in [&[][..], &["filter"], &["*"]] {
            assert_eq!(update_with("data.total >= 100", paths), Some(Some(wanted.clone())));
        }
        for paths in [&["filter"], &["*"]] {
            assert_eq!(update_with("", paths), Some(None));
        }
    }

    #[test]
    fn channels_are_a_checked_set_that_an_update_can_empty() {
        let with = |names: &[&str], paths: &[&str]| {
            let mut request = request("tenants/acme/endpoints/e", &["*"]);
            let subscription = request.subscription.as_mut().unwrap();
            subscription.channels = names.iter().map(|name| (*name).to_owned()).collect();
            subscription.name = "tenants/acme/subscriptions/s".to_owned();
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            let update = v1::UpdateSubscriptionRequest {
                subscription: request.subscription.clone(),
                update_mask: Some(prost_types::FieldMask { paths }),
                ..Default::default()
            };
            (create(request), update)
        };
        let names = |channels: &Channels| channels.iter().map(ToString::to_string).collect();
        let (created, _) = with(&["b", "a", "b"], &[]);
        let sorted: Vec<String> = names(&created.unwrap().channels);
        assert_eq!(sorted, ["a", "b"]);
        let updated = |given: &[&str], paths: &[&str]| {
            update(with(given, paths).1).unwrap().channels.map(|channels| names(&channels))
        };
        assert_eq!(updated(&[], &[]), None);
        assert_eq!(updated(&["a"], &["labels"]), None);
        assert_eq!(updated(&["a"], &[]), Some(vec!["a".to_owned()]));
        assert_eq!(updated(&[], &["channels"]), Some(vec![]));
        let error = with(&["ok", "a b"], &[]).0.unwrap_err().to_string();
        assert!(error.contains("subscription.channels[1]: is \"a b\""), "{error}");
        let many: Vec<&str> = vec!["a"; 65];
        let error = with(&many, &[]).0.unwrap_err().to_string();
        assert!(error.contains("has 65 channels; use at most 64"), "{error}");
    }

    #[test]
    fn every_bad_pattern_is_named_by_its_place() {
        let error = create(request("", &["order.*", "order*", "a b"])).unwrap_err().to_string();
        for part in
            ["subscription.endpoint: is \"\"", "event_types[1]: is \"order*\"", "event_types[2]"]
        {
            assert!(error.contains(part), "{error}");
        }
        let error = create(request("tenants/acme/endpoints/e", &[])).unwrap_err().to_string();
        assert!(error.contains("has 0 patterns; use 1 to 64"), "{error}");
    }

    #[test]
    fn another_tenants_endpoint_is_refused() {
        let error = create(request("tenants/other/endpoints/e", &["*"])).unwrap_err().to_string();
        assert!(error.contains("use tenants/acme/endpoints/{endpoint}"), "{error}");
    }

    #[test]
    fn the_endpoint_can_be_sent_back_but_not_masked() {
        let update_with = |paths: &[&str]| {
            update(v1::UpdateSubscriptionRequest {
                subscription: Some(v1::Subscription {
                    name: "tenants/acme/subscriptions/s".to_owned(),
                    endpoint: "tenants/acme/endpoints/e".to_owned(),
                    event_types: vec!["*".to_owned()],
                    ..Default::default()
                }),
                update_mask: Some(prost_types::FieldMask {
                    paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                }),
                ..Default::default()
            })
        };
        assert!(update_with(&[]).unwrap().endpoint.is_some());
        assert!(update_with(&["*"]).unwrap().endpoint.is_some());
        assert!(update_with(&["event_types"]).unwrap().endpoint.is_none());
        let error = update_with(&["endpoint"]).unwrap_err().to_string();
        assert!(error.contains("fixed once created"), "{error}");
    }
}
