//! The resources the command line shows: message names and table columns, as data.

use turnbuckle_proto::v1;

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Field paths such as `http.url`; the first one that is set counts.
    pub(crate) paths: &'static [&'static str],
    pub(crate) style: Style,
}

/// How a column shows its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// Only the last part of a resource name.
    Short,
    /// A time relative to now.
    Age,
    /// The same, in a column that is shown only when a row has such a time.
    RareAge,
    /// A number whose zero means that there is none.
    Code,
}

/// A message that can be shown.
pub(crate) trait Resource: prost::Message {
    /// Full name of the message in the contract.
    const MESSAGE: &'static str;
    /// Columns of a list.
    const COLUMNS: &'static [Column];

    /// The resource name.
    fn name(&self) -> &str;
}

const fn plain(title: &'static str, paths: &'static [&'static str]) -> Column {
    Column { title, paths, style: Style::Plain }
}

const fn short(title: &'static str, paths: &'static [&'static str]) -> Column {
    Column { title, paths, style: Style::Short }
}

const fn age(title: &'static str, paths: &'static [&'static str]) -> Column {
    Column { title, paths, style: Style::Age }
}

const NAME: Column = short("NAME", &["name"]);
const LABELS: Column = plain("LABELS", &["labels"]);
const CREATED: Column = age("CREATED", &["create_time"]);
const DELETED: Column = Column { title: "DELETED", paths: &["delete_time"], style: Style::RareAge };

impl Resource for v1::PulledDelivery {
    const MESSAGE: &'static str = "turnbuckle.v1.PulledDelivery";
    const COLUMNS: &'static [Column] = &[
        short("DELIVERY", &["delivery"]),
        plain("EVENT ID", &["event.event_id"]),
        plain("EVENT TYPE", &["event.event_type"]),
        plain("SUBJECT", &["event.subject"]),
        plain("ATTEMPT", &["attempt"]),
    ];

    fn name(&self) -> &str {
        &self.delivery
    }
}

impl Resource for v1::TestKeyResponse {
    const MESSAGE: &'static str = "turnbuckle.v1.TestKeyResponse";
    const COLUMNS: &'static [Column] = &[short("KEY", &["key"]), plain("OUTCOME", &["outcome"])];

    fn name(&self) -> &str {
        &self.key
    }
}

impl Resource for v1::TestSourceResponse {
    const MESSAGE: &'static str = "turnbuckle.v1.TestSourceResponse";
    const COLUMNS: &'static [Column] =
        &[short("SOURCE", &["name"]), plain("ACCEPTED", &["accepted"])];

    fn name(&self) -> &str {
        &self.name
    }
}

impl Resource for v1::KeyEncryptionKey {
    const MESSAGE: &'static str = "turnbuckle.v1.KeyEncryptionKey";
    const COLUMNS: &'static [Column] = &[
        plain("KEY-ENCRYPTION KEY", &["id"]),
        plain("PRIMARY", &["primary"]),
        plain("IN KEYRING", &["in_keyring"]),
        plain("RECORDS", &["records"]),
        plain("DROPPABLE", &["droppable"]),
    ];

    fn name(&self) -> &str {
        &self.id
    }
}

impl Resource for v1::KeyringStatus {
    const MESSAGE: &'static str = "turnbuckle.v1.KeyringStatus";
    const COLUMNS: &'static [Column] = &[plain("SUMMARY", &["summary"])];

    fn name(&self) -> &str {
        "keyring"
    }
}

impl Resource for v1::PreviewReplayResponse {
    const MESSAGE: &'static str = "turnbuckle.v1.PreviewReplayResponse";
    const COLUMNS: &'static [Column] =
        &[plain("MATCHED", &["matched"]), plain("COMPLETE", &["complete"])];

    fn name(&self) -> &str {
        ""
    }
}

macro_rules! resources {
    ($($message:ident: [$($column:expr),* $(,)?];)*) => {
        $(impl Resource for v1::$message {
            const MESSAGE: &'static str = concat!("turnbuckle.v1.", stringify!($message));
            const COLUMNS: &'static [Column] = &[$($column),*];

            fn name(&self) -> &str {
                &self.name
            }
        })*
    };
}

resources! {
    Replay: [
        NAME,
        plain("MODE", &["mode"]),
        short("ENDPOINT", &["endpoint"]),
        plain("STATE", &["state"]),
        plain("MATCHED", &["progress.matched"]),
        plain("REOPENED", &["progress.reopened"]),
        plain("MADE", &["progress.made"]),
        CREATED,
    ];
    Tenant: [NAME, plain("DISPLAY NAME", &["display_name"]), LABELS, CREATED];
    EventType: [NAME, plain("DESCRIPTION", &["description"]), LABELS, CREATED];
    EventTypeVersion: [NAME, plain("DESCRIPTION", &["description"]), CREATED];
    Endpoint: [
        NAME,
        plain("STATE", &["state"]),
        plain("TARGET", &["http.url", "pull"]),
        plain("SIGNATURE", &["signature_profile"]),
        short("RETRY POLICY", &["retry_policy"]),
        CREATED,
        DELETED,
    ];
    Subscription: [
        NAME,
        short("ENDPOINT", &["endpoint"]),
        plain("EVENT TYPES", &["event_types"]),
        plain("FORMAT", &["payload_format"]),
        plain("FILTER", &["filter"]),
        plain("CHANNELS", &["channels"]),
        CREATED,
        DELETED,
    ];
    RetryPolicy: [
        NAME,
        plain("VERSION", &["version"]),
        plain("BACKOFF", &["exponential", "delays.delays"]),
        plain("JITTER", &["jitter"]),
        plain("ATTEMPTS", &["max_attempts"]),
        plain("HORIZON", &["horizon"]),
        CREATED,
        DELETED,
    ];
    Source: [
        NAME,
        plain("STATE", &["state"]),
        plain("PRESET", &["preset"]),
        plain("PATH", &["ingest_path"]),
        plain("WEAKNESSES", &["weaknesses"]),
        CREATED,
        DELETED,
    ];
    SourcePreset: [
        short("PRESET", &["name"]),
        plain("TITLE", &["title"]),
        plain("EVIDENCE", &["evidence"]),
        plain("NEEDS", &["scheme_settings"]),
        plain("WEAKNESSES", &["weaknesses"]),
    ];
    KeyRing: [NAME];
    KeyRingStatus: [NAME];
    KeyStatus: [
        short("KEY", &["name"]),
        plain("STATE", &["state"]),
        plain("FINGERPRINT", &["fingerprint"]),
        plain("SIGNED", &["signatures"]),
        plain("SHARE %", &["share_percent"]),
        age("LAST USE", &["last_use_time"]),
        age("LAST TEST", &["last_test_time"]),
        plain("RESULT", &["last_test_outcome"]),
        age("RETIRES", &["retire_time"]),
    ];
    Key: [
        short("KEY", &["name"]),
        plain("STATE", &["state"]),
        plain("ALGORITHM", &["algorithm"]),
        plain("FINGERPRINT", &["fingerprint"]),
        age("SIGNS SINCE", &["activate_time"]),
        age("RETIRES", &["retire_time"]),
        CREATED,
    ];
    Event: [
        NAME,
        plain("EVENT ID", &["event_id"]),
        plain("TYPE", &["event_type"]),
        plain("SOURCE", &["source"]),
        plain("SUBJECT", &["subject"]),
        age("ACCEPTED", &["accept_time"]),
    ];
    PublishEventResponse: [
        NAME,
        plain("EVENT ID", &["event_id"]),
        plain("DELIVERIES", &["deliveries"]),
        plain("DUPLICATE", &["duplicate"]),
    ];
    Delivery: [
        NAME,
        plain("EVENT ID", &["event_id"]),
        plain("TYPE", &["event_type"]),
        short("ENDPOINT", &["endpoint"]),
        plain("STATE", &["state"]),
        plain("ATTEMPTS", &["attempts"]),
        age("NEXT", &["next_attempt_time"]),
        CREATED,
        plain("REASON", &["reason"]),
    ];
    Receipt: [
        NAME,
        age("TIME", &["receive_time"]),
        short("SOURCE", &["source"]),
        plain("DECISION", &["decision"]),
        plain("STATUS", &["status"]),
        plain("EVENT ID", &["event_id"]),
        plain("KEY", &["key_state"]),
        plain("REASON", &["reason"]),
    ];
    ReplayReceiptResponse: [
        NAME,
        plain("EVENTS", &["events"]),
        plain("KNOWN", &["known"]),
        plain("REFUSED", &["refused"]),
        plain("REFUSAL", &["refusal"]),
    ];
    ApiToken: [
        NAME,
        plain("ROLE", &["role"]),
        plain("STATE", &["state"]),
        plain("HINT", &["hint"]),
        age("EXPIRES", &["expire_time"]),
        age("LAST USE", &["last_use_time"]),
        plain("CREATOR", &["creator"]),
        CREATED,
    ];
    AuditEvent: [
        age("TIME", &["time"]),
        plain("SUBJECT", &["subject"]),
        plain("ROLE", &["role"]),
        short("METHOD", &["method"]),
        plain("RESOURCE", &["resource"]),
        plain("REVISION", &["revision"]),
        plain("OUTCOME", &["outcome"]),
        plain("REASON", &["reason"]),
    ];
    Node: [
        NAME,
        plain("LIVE", &["live"]),
        plain("REVISION", &["applied_revision"]),
        plain("LAG", &["lag"]),
        plain("STALENESS", &["staleness"]),
        plain("HELD", &["held.revision"]),
        plain("VERSION", &["version"]),
        age("REPORTED", &["report_time"]),
        plain("REFUSED", &["refused"]),
    ];
    AuditHead: [NAME, plain("COUNT", &["count"]), plain("HASH", &["hash"])];
    Attempt: [
        plain("ATTEMPT", &["number"]),
        plain("STARTED", &["start_time"]),
        plain("TOOK", &["duration"]),
        plain("OUTCOME", &["outcome"]),
        Column {
            title: "STATUS",
            paths: &["http_status"],
            style: Style::Code,
        },
        plain("RETRY IN", &["retry_delay"]),
        plain("RETRY-AFTER", &["retry_after_honoured"]),
        plain("DETAIL", &["detail"]),
    ];
}

/// No resource and without a name: the attempts of a preview are told by their numbers.
impl Resource for v1::PlannedAttempt {
    const MESSAGE: &'static str = "turnbuckle.v1.PlannedAttempt";
    const COLUMNS: &'static [Column] = &[
        plain("ATTEMPT", &["number"]),
        plain("AFTER AT LEAST", &["delay_min"]),
        plain("AT MOST", &["delay_max"]),
        plain("EARLIEST", &["earliest"]),
        plain("LATEST", &["latest"]),
        plain("UNCERTAIN", &["uncertain"]),
    ];

    fn name(&self) -> &str {
        ""
    }
}
