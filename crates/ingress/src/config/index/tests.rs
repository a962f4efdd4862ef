use super::*;
use crate::config::check_source;
use std::collections::BTreeMap;
use turnbuckle_domain::{
    Deletable, IngestPath, Labels, Meta, ResourceId, SchemeChoice, SourceSettings, TenantId,
};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(1);

fn source(number: u8, preset: &str, revision: i64) -> Source {
    Source {
        disabled: None,
        id: SourceId::from_uuid(Uuid::from_u128(number.into())),
        tenant: TenantId::from_uuid(Uuid::from_u128(1)),
        slug: ResourceId::new(format!("s{number}")).unwrap(),
        display_name: String::new(),
        scheme: SchemeChoice::Preset(preset.to_owned()),
        scheme_settings: BTreeMap::new(),
        path: IngestPath { token: token(number), previous: None },
        public_url: None,
        settings: SourceSettings::default(),
        labels: Labels::default(),
        meta: Meta { created_at: NOW, updated_at: NOW, revision: Revision(revision) },
    }
}

fn token(number: u8) -> IngestToken {
    IngestToken::from_random([number; IngestToken::LENGTH])
}

fn delta(epoch: u128, revision: i64, sources: Vec<Source>) -> ConfigDelta {
    let live = |value| Deletable { value, deleted: false };
    ConfigDelta {
        epoch: Epoch::from_uuid(Uuid::from_u128(epoch)),
        revision: Revision(revision),
        sources: sources.into_iter().map(live).collect(),
        ..ConfigDelta::default()
    }
}

fn served(index: &SourceIndex, number: u8) -> Option<Revision> {
    index.by_token(&token(number), NOW).map(|entry| entry.source().meta.revision)
}

#[test]
fn a_source_that_cannot_be_built_is_told_and_its_version_before_serves_on() {
    let first = SourceIndex::default().apply(delta(1, 5, vec![source(1, "github", 5)]));
    assert!(first.refused().is_empty());
    let newer = vec![source(1, "no-such", 6), source(2, "no-such", 6)];
    assert!(check_source(&newer[0]).is_err(), "a stream refuses it before it comes here");
    let next = first.apply(delta(1, 6, newer.clone())).keeping(&first);
    assert_eq!((served(&next, 1), served(&next, 2)), (Some(Revision(5)), None));
    let refused = next.refused();
    assert_eq!(refused.len(), 2);
    assert_eq!((refused[0].kind.as_str(), refused[0].revision), ("sources", Revision(6)));

    // All of it is read anew, as after a re-wrap.
    let anew = SourceIndex::default().apply(delta(2, 6, newer)).keeping(&next);
    assert_eq!((served(&anew, 1), served(&anew, 2)), (Some(Revision(5)), None));
    assert_eq!(anew.refused().len(), 2);

    // Mended and deleted, nothing is left of it.
    let mut last = delta(2, 7, vec![source(1, "github", 7), source(2, "no-such", 7)]);
    last.sources[1].deleted = true;
    let last = anew.apply(last).keeping(&anew);
    assert_eq!(served(&last, 1), Some(Revision(7)));
    assert!(last.refused().is_empty());
}

#[test]
fn what_another_epoch_does_not_have_is_gone() {
    let first = SourceIndex::default().apply(delta(1, 5, vec![source(1, "github", 5)]));
    let anew = SourceIndex::default().apply(delta(2, 5, Vec::new())).keeping(&first);
    assert_eq!(served(&anew, 1), None);
}
