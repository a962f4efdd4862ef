//! A migrated store on either backend, and resources to put into it.

use crate::common::{by, endpoint, id, labels, meta, ring, tenant};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, sqlx::sqlite::SqliteJournalMode};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use turnbuckle_domain::{
    Channel, Compatibility, ConfigStore as _, Endpoint, EndpointTarget, Error, EventType,
    EventTypeId, EventTypeVersion, EventTypeVersionId, Filter, HttpTarget, PayloadFormat,
    RetryPolicy, RetryPolicyId, RetryRule, Revision, Subscription, SubscriptionId, Tenant,
    TenantId, TypeName, TypePattern, UnknownVersion, VersionName, VersionsSeen,
};
use turnbuckle_store::config::ConfigDb;
use turnbuckle_testkit::postgres::TestDatabase;
use uuid::Uuid;

/// As many writers as the tests run at once, and a reader.
const CONNECTIONS: u32 = 9;
/// Longer than any turn a writer waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Quotes, backslashes and text beyond ASCII go through the store as they are.
const FILTER: &str = r#"data.total >= 100 && data["it's \\ Ü"] != null"#;
/// Gives up at once.
const IMPATIENCE: Duration = Duration::from_millis(1);

enum Home {
    Directory(#[expect(dead_code, reason = "kept until the end of the test")] TempDir),
    Postgres(#[expect(dead_code, reason = "kept until the end of the test")] TestDatabase),
}

pub(crate) struct Fixture {
    pub(crate) config: Arc<ConfigDb>,
    pub(crate) db: DatabaseConnection,
    url: String,
    _home: Home,
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("config.db").display());
        let db = connect(&url, PATIENCE).await;
        turnbuckle_migrations::migrate(&db).await.unwrap();
        Self::new(db, url, Home::Directory(directory))
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let key = turnbuckle_migrations::expected_version();
        let migrate = async |url: &str| {
            let db = connect(url, PATIENCE).await;
            turnbuckle_migrations::migrate(&db).await?;
            Ok(db.close().await?)
        };
        let database = TestDatabase::create(&key, migrate).await.unwrap()?;
        let url = database.url().to_owned();
        let db = connect(&url, PATIENCE).await;
        Some(Self::new(db, url, Home::Postgres(database)))
    }

    fn new(db: DatabaseConnection, url: String, home: Home) -> Self {
        Self { config: Arc::new(ConfigDb::new(db.clone())), db, url, _home: home }
    }

    /// The same database through connections that wait for no lock.
    pub(crate) async fn impatient(&self) -> ConfigDb {
        ConfigDb::new(connect(&self.url, IMPATIENCE).await)
    }

    pub(crate) async fn tenant(&self, slug: &str) -> Tenant {
        self.config.create_tenant(tenant(slug), &by()).await.unwrap()
    }

    pub(crate) async fn endpoint(&self, owner: &Tenant, slug: &str) -> Endpoint {
        self.config.create_endpoint(endpoint(owner.id, slug), ring(), &by()).await.unwrap()
    }

    pub(crate) async fn revision(&self) -> Revision {
        turnbuckle_domain::ConfigSource::revision(self.config.as_ref()).await.unwrap()
    }
}

async fn connect(url: &str, patience: Duration) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    let lock_timeout = format!("{}ms", patience.as_millis());
    options
        .max_connections(CONNECTIONS)
        .sqlx_logging(false)
        .map_sqlx_sqlite_opts(move |options| {
            options.journal_mode(SqliteJournalMode::Wal).busy_timeout(patience)
        })
        .map_sqlx_postgres_opts(move |options| {
            options.options([("lock_timeout", lock_timeout.as_str())])
        });
    Database::connect(options).await.unwrap()
}

pub(crate) fn event_type(tenant: TenantId, name: &str) -> EventType {
    EventType {
        id: EventTypeId::from_uuid(Uuid::now_v7()),
        tenant,
        type_name: TypeName::new(name).unwrap(),
        description: "somebody has paid".to_owned(),
        compatibility: Compatibility::Full,
        unknown_version: UnknownVersion::Refuse,
        labels: labels(),
        meta: meta(),
    }
}

pub(crate) fn version(owner: &EventType, name: &str) -> EventTypeVersion {
    EventTypeVersion {
        id: EventTypeVersionId::from_uuid(Uuid::now_v7()),
        tenant: owner.tenant,
        event_type: owner.id,
        version: VersionName::new(name).unwrap(),
        schema: format!("{{ \"title\": \"Ü {name}\" }}\n"),
        description: "what is new".to_owned(),
        meta: meta(),
    }
}

/// What a caller has seen who read the type and, when it has one, its latest version.
pub(crate) fn seen(owner: &EventType, latest: Option<&EventTypeVersion>) -> VersionsSeen {
    VersionsSeen { event_type: owner.meta.revision, latest: latest.map(|latest| latest.id) }
}

pub(crate) fn retry_policy(tenant: TenantId, slug: &str) -> RetryPolicy {
    RetryPolicy {
        id: RetryPolicyId::from_uuid(Uuid::now_v7()),
        tenant,
        slug: id(slug),
        version: 1,
        rule: RetryRule { retry_statuses: vec![404], ..RetryRule::default() },
        labels: labels(),
        meta: meta(),
    }
}

pub(crate) fn subscription(endpoint: &Endpoint, slug: &str) -> Subscription {
    Subscription {
        id: SubscriptionId::from_uuid(Uuid::now_v7()),
        tenant: endpoint.tenant,
        slug: id(slug),
        endpoint: endpoint.id,
        patterns: ["*", "order.*", "order.paid"]
            .map(|text| TypePattern::parse(text).unwrap())
            .into(),
        format: PayloadFormat::Raw,
        filter: Some(Filter::parse(FILTER).unwrap()),
        channels: ["eu/gold", "a:1"].map(|name| Channel::new(name).unwrap()).into_iter().collect(),
        labels: labels(),
        meta: meta(),
    }
}

/// What is refused, and for whom.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, String) {
    let error = result.unwrap_err();
    let reason = error.reason();
    match error {
        Error::NotFound { resource }
        | Error::AlreadyExists { resource }
        | Error::Stale { resource, .. } => (reason, resource),
        Error::Precondition { subject, .. } => (reason, subject),
        other => (reason, format!("{other:?}")),
    }
}

/// The receiver of an endpoint that has a URL.
pub(crate) fn http(endpoint: &mut Endpoint) -> &mut HttpTarget {
    let EndpointTarget::Http(http) = &mut endpoint.target else { panic!("no receiver") };
    http
}
