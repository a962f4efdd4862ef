//! Payloads against the schema of their version.

use crate::config::{VersionCheck, Versions};
use std::sync::Arc;
use turnbuckle_domain::{Error, Event, Violations};
use turnbuckle_schema::Schema;

/// Payloads up to this size are checked where they arrive, which takes microseconds. Larger ones can
/// take long with an elaborate schema, and go to a thread that may block.
const INLINE_BYTES: usize = 4 * 1024;

/// Refuses an event that does not follow its version's schema, or whose version its type refuses.
/// `field` is where the event stands in the request.
pub(super) async fn check(versions: &Versions, event: &Event, field: &str) -> Result<(), Error> {
    match versions.check(&event.event_version) {
        VersionCheck::Unchecked => Ok(()),
        VersionCheck::Refused => Err(unknown(event, field)),
        VersionCheck::Schema(_) if !event.is_json() => {
            let field = format!("{field}.content_type");
            let message = format!(
                "is no JSON, but version {:?} of {:?} has a schema: publish JSON",
                event.event_version,
                event.event_type.as_str()
            );
            Err(Error::invalid(field, message))
        }
        VersionCheck::Schema(schema) => follows(schema, event, field).await,
    }
}

fn unknown(event: &Event, field: &str) -> Error {
    let message = format!(
        "{:?} is no version of {:?}: create it first, or correct it",
        event.event_version,
        event.event_type.as_str()
    );
    Error::invalid(format!("{field}.event_version"), message)
}

async fn follows(schema: Arc<Schema>, event: &Event, field: &str) -> Result<(), Error> {
    let checked = if event.data.len() <= INLINE_BYTES {
        // A batch of many lets others in between.
        tokio::task::coop::consume_budget().await;
        schema.validate(&event.data)
    } else {
        let data = event.data.clone();
        let checking = tokio::task::spawn_blocking(move || schema.validate(&data));
        checking.await.map_err(Error::internal)?
    };
    let mut violations = Violations::new();
    for broken in checked.err().unwrap_or_default() {
        violations.add(format!("{field}.data{}", broken.path), broken.message);
    }
    violations.finish()
}
