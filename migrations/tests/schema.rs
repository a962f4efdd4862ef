//! The schema as a whole, on both backends.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a failed test")]

use sea_orm_migration::{
    MigratorTrait as _,
    sea_orm::{
        ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, DbBackend, Statement,
        TransactionTrait as _,
    },
};
use turnbuckle_migrations::{Migrator, SchemaStatus, expected_version, migrate, status};
use turnbuckle_testkit::postgres::TestDatabase;

/// Names the template database that holds nothing.
const EMPTY: &str = "migrations: nothing yet";

enum Home {
    Directory(tempfile::TempDir),
    Postgres(TestDatabase),
}

impl Home {
    fn sqlite() -> Self {
        Self::Directory(tempfile::tempdir().unwrap())
    }

    async fn postgres() -> Option<Self> {
        TestDatabase::create(EMPTY, async |_: &str| Ok(())).await.unwrap().map(Self::Postgres)
    }

    /// A pool of its own, as a process has.
    async fn connect(&self, connections: u32) -> DatabaseConnection {
        let url = match self {
            Self::Directory(directory) => {
                format!("sqlite://{}?mode=rwc", directory.path().join("schema.db").display())
            }
            Self::Postgres(database) => database.url().to_owned(),
        };
        let mut options = ConnectOptions::new(url);
        options.max_connections(connections).sqlx_logging(false);
        Database::connect(options).await.unwrap()
    }
}

macro_rules! on_both_backends {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::Home::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                if let Some(home) = super::Home::postgres().await {
                    super::$name(home).await;
                }
            })+
        }
    };
}

on_both_backends!(
    three_processes_migrate_at_once,
    the_status_tells_where_a_database_stands,
    everything_can_be_taken_back_and_made_again,
    a_migration_that_is_cut_short_leaves_nothing,
    the_audit_record_keeps_its_entries_when_its_rules_widen,
    event_types_written_without_policies_have_the_defaults,
);

async fn three_processes_migrate_at_once(home: Home) {
    let (one, two, three) = (home.connect(2).await, home.connect(2).await, home.connect(2).await);
    let (first, second, third) = tokio::join!(migrate(&one), migrate(&two), migrate(&three));
    first.unwrap();
    second.unwrap();
    third.unwrap();
    assert_eq!(status(&one).await.unwrap(), SchemaStatus::Current);
    assert_eq!(count(&one, "select count(*) from config_revision").await, 1);
}

async fn the_status_tells_where_a_database_stands(home: Home) {
    let db = home.connect(2).await;
    assert_eq!(status(&db).await.unwrap(), SchemaStatus::Empty);
    Migrator::up(&db, Some(1)).await.unwrap();
    let behind = status(&db).await.unwrap();
    assert!(
        matches!(&behind, SchemaStatus::Behind { pending } if pending.last() == Some(&expected_version())),
        "{behind:?}"
    );
    migrate(&db).await.unwrap();
    assert_eq!(status(&db).await.unwrap(), SchemaStatus::Current);
    let newer = "insert into seaql_migrations (version, applied_at) values ('m9_newer', 1)";
    db.execute_unprepared(newer).await.unwrap();
    let ahead = SchemaStatus::Ahead { unknown: vec!["m9_newer".to_owned()] };
    assert_eq!(status(&db).await.unwrap(), ahead);
    migrate(&db).await.unwrap();
    assert_eq!(status(&db).await.unwrap(), ahead);
}

async fn everything_can_be_taken_back_and_made_again(home: Home) {
    let db = home.connect(2).await;
    migrate(&db).await.unwrap();
    let made = tables(&db).await;
    assert!(made > 8);
    Migrator::down(&db, None).await.unwrap();
    // Only the list of migrations is left.
    assert_eq!(tables(&db).await, 1);
    assert_eq!(status(&db).await.unwrap(), SchemaStatus::Empty);
    migrate(&db).await.unwrap();
    assert_eq!(tables(&db).await, made);
}

async fn a_migration_that_is_cut_short_leaves_nothing(home: Home) {
    let db = home.connect(2).await;
    let transaction = db.begin().await.unwrap();
    Migrator::up(&transaction, None).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(tables(&db).await, 0);
    migrate(&db).await.unwrap();
}

async fn the_audit_record_keeps_its_entries_when_its_rules_widen(home: Home) {
    let db = home.connect(2).await;
    // As far as the record's first form.
    Migrator::up(&db, Some(3)).await.unwrap();
    // An id of 16 bytes and a hash of 32, each as its backend writes them.
    let (id, hash) = match db.get_database_backend() {
        DbBackend::Postgres => {
            (format!("'{}'::uuid", "1".repeat(32)), format!("'\\x{}'::bytea", "2".repeat(64)))
        }
        _ => (format!("x'{}'", "1".repeat(32)), format!("x'{}'", "2".repeat(64))),
    };
    let tenant = format!("insert into tenant values ({id}, 'acme', '', '{{}}', 1, 1, null, 1)");
    let entry = |tenant: &str, sequence: i64, id: &str, (revision, outcome): (i64, &str)| {
        format!(
            "insert into audit_event values ({tenant}, {sequence}, {id}, 1, 's', 'admin', 'm', 'r', \
             'q', '', {revision}, '{outcome}', '[]', {hash})"
        )
    };
    let head = format!("insert into audit_head values ({id}, 1, {id}, {hash})");
    for statement in [tenant, entry(&id, 1, &id, (1, "applied")), head] {
        db.execute_unprepared(&statement).await.unwrap();
    }
    migrate(&db).await.unwrap();
    assert_eq!(count(&db, "select count(*) from audit_event").await, 1);
    assert_eq!(count(&db, "select count(*) from audit_head").await, 1);
    for statement in ["update audit_event set reason = 'x'", "delete from audit_event"] {
        let error = db.execute_unprepared(statement).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
    let (platform, other) = (id.replace('1', "0"), id.replace('1', "3"));
    let denied = entry(&platform, 1, &other, (0, "denied"));
    db.execute_unprepared(&denied).await.unwrap();
    // A change has a revision, and what is denied has none.
    for wrong in [(0, "applied"), (5, "denied"), (5, "odd")] {
        let wrong = entry(&id, 2, &id.replace('1', "4"), wrong);
        db.execute_unprepared(&wrong).await.unwrap_err();
    }
}

/// Rows of before the policies, and rows that a program of before goes on to write.
async fn event_types_written_without_policies_have_the_defaults(home: Home) {
    let db = home.connect(2).await;
    Migrator::up(&db, Some(3)).await.unwrap();
    let id = |number: u8| match db.get_database_backend() {
        sea_orm_migration::sea_orm::DbBackend::Postgres => format!("'{number:032}'"),
        _ => format!("x'{number:032}'"),
    };
    let tenant = format!(
        "insert into tenant (id, slug, display_name, labels, created_at_us, updated_at_us, revision) \
         values ({}, 'acme', '', '{{}}', 1, 1, 1)",
        id(1)
    );
    let event_type = |number: u8| {
        format!(
            "insert into event_type (id, tenant_id, type_name, description, labels, created_at_us, \
             updated_at_us, revision) values ({}, {}, 'order.{number}', '', '{{}}', 1, 1, 2)",
            id(number),
            id(1)
        )
    };
    db.execute_unprepared(&tenant).await.unwrap();
    db.execute_unprepared(&event_type(2)).await.unwrap();
    migrate(&db).await.unwrap();
    db.execute_unprepared(&event_type(3)).await.unwrap();
    let defaults = "select count(*) from event_type \
                    where compatibility = 'backward' and unknown_version = 'allow'";
    assert_eq!(count(&db, defaults).await, 2);
}

#[tokio::test]
async fn a_pool_of_one_is_refused_instead_of_waiting_for_itself() {
    let Some(home) = Home::postgres().await else {
        return;
    };
    let db = home.connect(1).await;
    let error = migrate(&db).await.unwrap_err();
    assert!(error.to_string().contains("at least 2 connections"), "{error}");
}

async fn tables(db: &DatabaseConnection) -> i64 {
    let sql = match db.get_database_backend() {
        sea_orm_migration::sea_orm::DbBackend::Postgres => {
            "select count(*) from pg_tables where schemaname = 'public'"
        }
        _ => "select count(*) from sqlite_schema where type = 'table' and name not like 'sqlite_%'",
    };
    count(db, sql).await
}

async fn count(db: &DatabaseConnection, sql: &str) -> i64 {
    let statement = Statement::from_string(db.get_database_backend(), sql);
    db.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap()
}
