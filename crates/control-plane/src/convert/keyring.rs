//! Key-encryption keys on the wire.

use crate::keyring::{KeyEncryptionKey, KeyringStatus};
use turnbuckle_domain::{Error, RewrapProgress};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::timestamp;

/// Most records that a call looks at; none for as many as it can.
pub(crate) fn rewrap(request: v1::RewrapSecretsRequest) -> Result<Option<u32>, Error> {
    match u32::try_from(request.max_records) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(Error::invalid("max_records", "is negative: use 0 for all, or 1 and more")),
    }
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn progress(progress: &RewrapProgress) -> v1::RewrapProgress {
    v1::RewrapProgress {
        to: progress.to.clone(),
        moved: count(progress.moved),
        unreadable: count(progress.unreadable),
        start_time: Some(timestamp(progress.started_at)),
        update_time: Some(timestamp(progress.updated_at)),
        finish_time: progress.finished_at.map(timestamp),
    }
}

pub(crate) fn rewrapped(answer: &RewrapProgress) -> v1::RewrapSecretsResponse {
    let done = answer.finished_at.is_some();
    v1::RewrapSecretsResponse { done, progress: Some(progress(answer)) }
}

fn key_message(key: &KeyEncryptionKey) -> v1::KeyEncryptionKey {
    v1::KeyEncryptionKey {
        id: key.id.clone(),
        primary: key.is_primary,
        in_keyring: key.in_keyring,
        records: count(key.records),
        droppable: key.is_droppable(),
    }
}

pub(crate) fn message(status: &KeyringStatus) -> v1::KeyringStatus {
    v1::KeyringStatus {
        keys: status.keys.iter().map(key_message).collect(),
        rewrap: status.rewrap.as_ref().map(progress),
        summary: status.summary(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_be_bounded_and_not_negative() {
        let with = |max_records| rewrap(v1::RewrapSecretsRequest { max_records });
        assert_eq!(with(0).unwrap(), None);
        assert_eq!(with(7).unwrap(), Some(7));
        assert!(with(-1).unwrap_err().to_string().contains("max_records: is negative"));
    }
}
