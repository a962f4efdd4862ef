use super::*;
use crate::{AuditId, AuditOutcome, FieldChange, Revision, TenantId, Timestamp};
use uuid::Uuid;

fn record(entries: i64) -> Vec<AuditEntry> {
    let mut record: Vec<AuditEntry> = Vec::new();
    for sequence in 1..=entries {
        let mut entry = AuditEntry {
            id: AuditId::from_uuid(Uuid::from_u128(0x1000 + u128::from(sequence.unsigned_abs()))),
            tenant: TenantId::from_uuid(Uuid::from_u128(7)),
            sequence,
            at: Timestamp::from_micros(1_000 * sequence),
            subject: "alice".to_owned(),
            role: "admin".to_owned(),
            method: "turnbuckle.v1.Tenants/UpdateTenant".to_owned(),
            resource: "tenants/acme".to_owned(),
            request_id: format!("r-{sequence}"),
            reason: String::new(),
            revision: Revision(10 + sequence),
            outcome: AuditOutcome::Applied,
            changes: vec![FieldChange {
                field: "display_name".to_owned(),
                before: Some("a".to_owned()),
                after: None,
            }],
            hash: [0; 32],
        };
        entry.hash = chain_hash(record.last().map(|entry| &entry.hash), &entry);
        record.push(entry);
    }
    record
}

fn head_of(record: &[AuditEntry]) -> AuditHead {
    let newest = record.last().unwrap();
    AuditHead { id: newest.id, sequence: newest.sequence, hash: newest.hash }
}

fn verdict(head: &AuditHead, record: &[AuditEntry]) -> Result<u64, ChainFault> {
    verify_chain(head, record.iter().rev().cloned())
}

const fn fault(sequence: i64, fault: Fault) -> Result<u64, ChainFault> {
    Err(ChainFault { sequence, fault })
}

#[test]
fn an_untouched_record_passes() {
    for entries in [1, 2, 9] {
        let record = record(entries);
        assert_eq!(verdict(&head_of(&record), &record), Ok(entries.unsigned_abs()));
    }
}

#[test]
fn a_change_of_any_field_is_found_at_its_entry() {
    type Change = fn(&mut AuditEntry);
    let changes: [Change; 13] = [
        |entry| entry.id = AuditId::from_uuid(Uuid::from_u128(1)),
        |entry| entry.at = Timestamp::from_micros(1),
        |entry| entry.subject.push('x'),
        |entry| entry.role = "viewer".to_owned(),
        |entry| entry.method.push('x'),
        |entry| entry.resource.push('x'),
        |entry| entry.request_id.push('x'),
        |entry| entry.reason.push('x'),
        |entry| entry.revision = Revision(1),
        |entry| entry.changes[0].field.push('x'),
        |entry| entry.changes[0].before = None,
        |entry| entry.changes[0].after = Some(String::new()),
        |entry| entry.changes.clear(),
    ];
    for change in changes {
        for place in 0..5 {
            let mut record = record(5);
            let head = head_of(&record);
            change(&mut record[place]);
            let found = verdict(&head, &record);
            assert_eq!(found, fault(record[place].sequence, Fault::Altered));
        }
    }
}

#[test]
fn a_changed_entry_with_a_new_hash_breaks_the_next_one() {
    let mut record = record(5);
    let head = head_of(&record);
    record[2].subject = "mallory".to_owned();
    record[2].hash = chain_hash(Some(&record[1].hash.clone()), &record[2]);
    assert_eq!(verdict(&head, &record), fault(4, Fault::Altered));
}

#[test]
fn a_removed_entry_is_missing_wherever_it_was() {
    for place in 0..5 {
        let mut record = record(5);
        let head = head_of(&record);
        record.remove(place);
        let missing = i64::try_from(place).unwrap() + 1;
        assert_eq!(verdict(&head, &record), fault(missing, Fault::Missing));
    }
    assert_eq!(verdict(&head_of(&record(5)), &[]), fault(1, Fault::Missing));
}

#[test]
fn a_removed_entry_whose_number_was_given_away_is_found() {
    let mut record = record(5);
    let head = head_of(&record);
    record.remove(1);
    for (place, entry) in record.iter_mut().enumerate() {
        entry.sequence = i64::try_from(place).unwrap() + 1;
    }
    assert!(verdict(&head, &record).is_err());
}

#[test]
fn exchanged_entries_are_found() {
    let mut record = record(5);
    let head = head_of(&record);
    record.swap(1, 2);
    assert!(verdict(&head, &record).is_err());
    let (one, other) = (record[1].sequence, record[2].sequence);
    (record[1].sequence, record[2].sequence) = (other, one);
    assert_eq!(verdict(&head, &record), fault(2, Fault::Altered));
}

#[test]
fn a_cut_off_end_is_found_by_the_head() {
    let mut record = record(5);
    let head = head_of(&record);
    record.truncate(3);
    assert_eq!(verdict(&head, &record), fault(4, Fault::Missing));
    // A service that cut its head too is found by the one that was noted elsewhere.
    let mut check = ChainCheck::new(head_of(&record)).with_anchor(head.sequence, head.hash);
    record.iter().rev().cloned().for_each(|entry| check.step(entry));
    assert_eq!(check.finish(), fault(5, Fault::Missing));
}

#[test]
fn a_record_written_anew_is_found_by_an_anchor() {
    let old = record(5);
    let mut new: Vec<AuditEntry> = Vec::new();
    for mut entry in old.clone() {
        entry.subject = "nobody".to_owned();
        entry.hash = chain_hash(new.last().map(|entry| &entry.hash), &entry);
        new.push(entry);
    }
    assert_eq!(verdict(&head_of(&new), &new), Ok(5));
    let mut check = ChainCheck::new(head_of(&new)).with_anchor(3, old[2].hash);
    new.iter().rev().cloned().for_each(|entry| check.step(entry));
    assert_eq!(check.finish(), fault(3, Fault::Rewritten));
}

#[test]
fn entries_newer_than_the_head_are_left_alone() {
    let record = record(5);
    let head = head_of(&record[..3]);
    assert_eq!(verdict(&head, &record), Ok(3));
}

#[test]
fn a_record_belongs_to_one_tenant() {
    let mut record = record(3);
    let head = head_of(&record);
    record[0].tenant = TenantId::from_uuid(Uuid::from_u128(8));
    assert_eq!(verdict(&head, &record), fault(1, Fault::Altered));
}

#[test]
fn the_hashed_bytes_have_one_form_for_ever() {
    use data_encoding::HEXLOWER;
    let record = record(2);
    let hashes: Vec<String> = record.iter().map(|entry| HEXLOWER.encode(&entry.hash)).collect();
    // Computed by another program from the description of the form.
    assert_eq!(
        hashes,
        [
            "bfe7fd66b7f2f945f495302eef81447d5ecb3d5647d8090a3b58550c9de45481",
            "1eade7fbba86a6b75374d6c49f24d6a57395d05c78585221127c235f01c0513a",
        ]
    );
}
