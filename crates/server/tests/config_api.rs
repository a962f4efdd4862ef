//! The configuration API of a whole process, through the client and the command line.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a failed test")]

use clap::Parser;
use std::{collections::BTreeSet, sync::OnceLock, time::Duration};
use tonic::{Code, Request};
use turnbuckle_client::{ApiError, Client, ClientOptions, TokenSource, proto as v1};
use turnbuckle_domain::{Clock as _, ResourceId, Role};
use turnbuckle_runtime::{SystemClock, auth::TokenKey};
use turnbuckle_server::{cli, serve};

#[derive(Parser)]
struct ServeCommand {
    #[command(flatten)]
    args: serve::ServeArgs,
}

#[derive(Parser)]
#[command(name = "turnbuckle")]
struct Turnbuckle {
    #[command(flatten)]
    global: cli::GlobalArgs,
    #[command(subcommand)]
    command: cli::Command,
}

/// One process for all tests, each of which has a tenant of its own.
struct Process {
    runtime: tokio::runtime::Runtime,
    url: String,
    token: String,
    home: tempfile::TempDir,
    _running: serve::Running,
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let line = format!(
            "serve --data-dir {} --api-listen 127.0.0.1:0 --ingress-listen 127.0.0.1:0 \
             --admin-listen 127.0.0.1:0 --allow-egress 127.0.0.0/8 --grace 0s",
            home.path().display()
        );
        let command = ServeCommand::try_parse_from(line.split_whitespace()).unwrap();
        let running = runtime.block_on(serve::start(&command.args)).unwrap();
        let url = format!("http://{}", running.api.unwrap());
        let token = std::fs::read_to_string(home.path().join("admin.token")).unwrap();
        Process { runtime, url, token: token.trim().to_owned(), home, _running: running }
    })
}

/// A fresh tenant and a client to work in it.
struct Scene {
    client: Client,
    tenant: &'static str,
    parent: String,
}

impl Scene {
    async fn new(tenant: &'static str) -> Self {
        let process = process();
        let client = Client::connect(ClientOptions {
            token: Some(TokenSource::Text(process.token.clone())),
            ..ClientOptions::new(process.url.clone())
        })
        .await
        .unwrap();
        let request =
            v1::CreateTenantRequest { tenant_id: tenant.to_owned(), ..Default::default() };
        client.tenants().create_tenant(request).await.unwrap();
        Self { client, tenant, parent: format!("tenants/{tenant}") }
    }

    /// Somebody else.
    async fn as_other(&self, role: Role, tenant: &str) -> Client {
        let process = process();
        let key = TokenKey::load(&process.home.path().join("token.key")).unwrap();
        let tenant = ResourceId::new(tenant).unwrap();
        let now = SystemClock.now();
        let token = key.issue("other", role, Some(tenant), Duration::from_secs(60), now).unwrap();
        Client::connect(ClientOptions {
            token: Some(TokenSource::Text(token)),
            ..ClientOptions::new(process.url.clone())
        })
        .await
        .unwrap()
    }

    fn name(&self, endpoint: &str) -> String {
        format!("{}/endpoints/{endpoint}", self.parent)
    }

    async fn create(&self, id: &str) -> v1::Endpoint {
        let request = self.create_request(id);
        self.client.endpoints().create_endpoint(request).await.unwrap().into_inner()
    }

    fn create_request(&self, id: &str) -> v1::CreateEndpointRequest {
        v1::CreateEndpointRequest {
            parent: self.parent.clone(),
            endpoint_id: id.to_owned(),
            endpoint: Some(endpoint("")),
            ..Default::default()
        }
    }

    async fn upsert(&self, endpoint: v1::Endpoint) -> Result<v1::Endpoint, tonic::Status> {
        let request = v1::UpdateEndpointRequest {
            endpoint: Some(endpoint),
            allow_missing: true,
            ..Default::default()
        };
        Ok(self.client.endpoints().update_endpoint(request).await?.into_inner())
    }

    async fn record(&self) -> Vec<v1::AuditEvent> {
        let request =
            v1::ListAuditEventsRequest { parent: self.parent.clone(), ..Default::default() };
        let page = self.client.audit().list_audit_events(request).await.unwrap().into_inner();
        assert_eq!(page.next_page_token, "");
        page.audit_events
    }

    async fn head(&self) -> v1::AuditHead {
        let name = format!("{}/auditHead", self.parent);
        self.client
            .audit()
            .get_audit_head(v1::GetAuditHeadRequest { name })
            .await
            .unwrap()
            .into_inner()
    }

    /// Runs a command line as this tenant.
    async fn command(&self, line: &str) -> anyhow::Result<()> {
        let process = process();
        let line = format!("turnbuckle {line} -o name --tenant {}", self.tenant);
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(["--server", &process.url, "--token", &process.token]);
        let parsed = Turnbuckle::try_parse_from(words)?;
        cli::run(parsed.command, &parsed.global).await
    }
}

fn endpoint(name: &str) -> v1::Endpoint {
    let http = v1::HttpTarget {
        url: "http://127.0.0.1:9/hook?token=hunter2".to_owned(),
        headers: [("x-api-key".to_owned(), "hunter2".to_owned())].into(),
        ..Default::default()
    };
    v1::Endpoint {
        name: name.to_owned(),
        display_name: "Orders".to_owned(),
        target: Some(v1::endpoint::Target::Http(http)),
        ..Default::default()
    }
}

macro_rules! sentences {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let tenant: &'static str = concat!("t-", stringify!($name));
            let id: String = tenant.replace('_', "-").chars().take(60).collect();
            process().runtime.block_on(async {
                let id: &'static str = id.leak();
                scenes::$name(&Scene::new(id.trim_end_matches('-')).await).await;
            });
        })+
    };
}

#[path = "config_api/sources.rs"]
mod sources;

sentences!(
    an_upsert_creates_once_and_then_changes_nothing,
    an_upsert_changes_what_differs,
    an_upsert_needs_a_whole_resource_only_when_it_creates,
    an_upsert_with_an_etag_creates_nothing,
    of_twenty_concurrent_upserts_one_creates_and_all_succeed,
    every_kind_that_services_register_can_be_upserted,
    what_is_only_validated_is_checked_and_not_done,
    a_rotation_that_is_only_validated_makes_no_key,
    an_etag_must_be_current,
    every_change_is_recorded_with_its_caller_and_request,
    a_record_is_verified_by_the_command_line,
    the_command_line_upserts_and_runs_dry,
    only_those_who_may_read_the_record_of_their_tenant_do,
    a_long_record_is_read_page_by_page_and_outlives_its_tenant,
);

mod scenes {
    use super::*;

    pub(super) async fn an_upsert_creates_once_and_then_changes_nothing(scene: &Scene) {
        let wanted = endpoint(&scene.name("orders"));
        let created = scene.upsert(wanted.clone()).await.unwrap();
        assert!(created.signing_secret.starts_with("whsec_"));
        let entries = scene.head().await.count;
        for _ in 0..3 {
            let again = scene.upsert(wanted.clone()).await.unwrap();
            assert_eq!(again, v1::Endpoint { signing_secret: String::new(), ..created.clone() });
        }
        assert_eq!(scene.head().await.count, entries);
    }

    pub(super) async fn an_upsert_changes_what_differs(scene: &Scene) {
        let created = scene.create("orders").await;
        let mut wanted = endpoint(&scene.name("orders"));
        wanted.display_name = "Other".to_owned();
        let changed = scene.upsert(wanted).await.unwrap();
        assert_eq!((changed.uid, changed.display_name), (created.uid, "Other".to_owned()));
        assert!(changed.revision > created.revision);
        assert_eq!(changed.signing_secret, "");
    }

    pub(super) async fn an_upsert_needs_a_whole_resource_only_when_it_creates(scene: &Scene) {
        let part = |id: &str| v1::Endpoint {
            name: scene.name(id),
            max_in_flight: 3,
            ..Default::default()
        };
        let refused = scene.upsert(part("orders")).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let violations = ApiError::new(&refused).violations;
        assert!(violations.iter().any(|violation| violation.field == "endpoint.http"));
        scene.create("orders").await;
        assert_eq!(scene.upsert(part("orders")).await.unwrap().max_in_flight, 3);
    }

    pub(super) async fn an_upsert_with_an_etag_creates_nothing(scene: &Scene) {
        let mut wanted = endpoint(&scene.name("orders"));
        wanted.etag = "\"1\"".to_owned();
        assert_eq!(scene.upsert(wanted.clone()).await.unwrap_err().code(), Code::NotFound);
        scene.create("orders").await;
        assert_eq!(scene.upsert(wanted).await.unwrap_err().code(), Code::Aborted);
        // Nor is a tenant made along the way.
        let lost = endpoint("tenants/nowhere/endpoints/orders");
        assert_eq!(scene.upsert(lost).await.unwrap_err().code(), Code::NotFound);
    }

    pub(super) async fn of_twenty_concurrent_upserts_one_creates_and_all_succeed(scene: &Scene) {
        let before = scene.head().await.count;
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (client, wanted) = (scene.client.clone(), endpoint(&scene.name("orders")));
            callers.spawn(async move {
                let request = v1::UpdateEndpointRequest {
                    endpoint: Some(wanted),
                    allow_missing: true,
                    ..Default::default()
                };
                client.endpoints().update_endpoint(request).await.unwrap().into_inner()
            });
        }
        let answers = callers.join_all().await;
        let made = answers.iter().filter(|answer| !answer.signing_secret.is_empty()).count();
        assert_eq!(made, 1);
        let uids: BTreeSet<&str> = answers.iter().map(|answer| answer.uid.as_str()).collect();
        assert_eq!(uids.len(), 1);
        assert_eq!(scene.head().await.count, before + 1);
    }

    pub(super) async fn every_kind_that_services_register_can_be_upserted(scene: &Scene) {
        let parent = &scene.parent;
        scene.create("orders").await;
        let mut revisions = BTreeSet::new();
        for _ in 0..2 {
            let event_type = v1::UpdateEventTypeRequest {
                event_type: Some(v1::EventType {
                    name: format!("{parent}/eventTypes/order.paid"),
                    description: "somebody has paid".to_owned(),
                    ..Default::default()
                }),
                allow_missing: true,
                ..Default::default()
            };
            let made = scene.client.event_types().update_event_type(event_type).await.unwrap();
            revisions.insert(made.get_ref().revision);
            let policy = v1::UpdateRetryPolicyRequest {
                retry_policy: Some(v1::RetryPolicy {
                    name: format!("{parent}/retryPolicies/quick"),
                    max_attempts: 3,
                    ..Default::default()
                }),
                allow_missing: true,
                ..Default::default()
            };
            let made = scene.client.retry_policies().update_retry_policy(policy).await.unwrap();
            revisions.insert(made.get_ref().revision);
            let subscription = v1::UpdateSubscriptionRequest {
                subscription: Some(v1::Subscription {
                    name: format!("{parent}/subscriptions/all"),
                    endpoint: scene.name("orders"),
                    event_types: vec!["order.*".to_owned()],
                    ..Default::default()
                }),
                allow_missing: true,
                ..Default::default()
            };
            let made = scene.client.subscriptions().update_subscription(subscription).await;
            revisions.insert(made.unwrap().get_ref().revision);
        }
        assert_eq!(revisions.len(), 3);
    }

    pub(super) async fn what_is_only_validated_is_checked_and_not_done(scene: &Scene) {
        let mut endpoints = scene.client.endpoints();
        let dry =
            v1::CreateEndpointRequest { validate_only: true, ..scene.create_request("orders") };
        let would_be = endpoints.create_endpoint(dry.clone()).await.unwrap().into_inner();
        assert_eq!(would_be.name, scene.name("orders"));
        let made = (would_be.uid, would_be.etag, would_be.revision, would_be.signing_secret);
        assert_eq!(made, (String::new(), String::new(), 0, String::new()));
        let name = scene.name("orders");
        let missing = endpoints
            .get_endpoint(v1::GetEndpointRequest { name: name.clone(), ..Default::default() })
            .await;
        assert_eq!(missing.unwrap_err().code(), Code::NotFound);

        let created = scene.create("orders").await;
        let taken = endpoints.create_endpoint(dry).await.unwrap_err();
        assert_eq!(taken.code(), Code::AlreadyExists);
        let dry = v1::UpdateEndpointRequest {
            endpoint: Some(v1::Endpoint {
                name: name.clone(),
                display_name: "Other".to_owned(),
                ..Default::default()
            }),
            validate_only: true,
            ..Default::default()
        };
        let would_be = endpoints.update_endpoint(dry).await.unwrap().into_inner();
        assert_eq!(would_be.display_name, "Other");
        assert_eq!(would_be.etag, created.etag);
        let present = endpoints
            .get_endpoint(v1::GetEndpointRequest { name, ..Default::default() })
            .await
            .unwrap();
        assert_eq!(present.into_inner().display_name, "Orders");
        // The tenant's creation and the endpoint's.
        assert_eq!(scene.head().await.count, 2);
    }

    pub(super) async fn a_rotation_that_is_only_validated_makes_no_key(scene: &Scene) {
        scene.create("orders").await;
        let mut keys = scene.client.keys();
        let name = format!("{}/keyRing", scene.name("orders"));
        let request = v1::GetKeyRingRequest { name };
        let before = keys.get_key_ring(request.clone()).await.unwrap().into_inner();
        let dry = v1::RotateKeyRequest {
            parent: scene.name("orders"),
            etag: before.etag.clone(),
            validate_only: true,
            ..Default::default()
        };
        let would_be = keys.rotate_key(dry.clone()).await.unwrap().into_inner();
        assert_eq!(would_be.state(), v1::KeyState::Active);
        assert_eq!((would_be.secret, would_be.fingerprint), (String::new(), String::new()));
        assert_eq!(keys.get_key_ring(request.clone()).await.unwrap().into_inner(), before);

        let real = v1::RotateKeyRequest { validate_only: false, ..dry.clone() };
        assert!(keys.rotate_key(real).await.unwrap().get_ref().secret.starts_with("whsec_"));
        assert_eq!(keys.rotate_key(dry.clone()).await.unwrap_err().code(), Code::Aborted);
        let etag = keys.get_key_ring(request).await.unwrap().into_inner().etag;
        let open = keys.rotate_key(v1::RotateKeyRequest { etag, ..dry }).await.unwrap_err();
        assert_eq!(open.code(), Code::FailedPrecondition);
    }

    pub(super) async fn an_etag_must_be_current(scene: &Scene) {
        let created = scene.create("orders").await;
        let change = |display_name: &str| v1::UpdateEndpointRequest {
            endpoint: Some(v1::Endpoint {
                name: scene.name("orders"),
                etag: created.etag.clone(),
                display_name: display_name.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let mut endpoints = scene.client.endpoints();
        endpoints.update_endpoint(change("First")).await.unwrap();
        let stale = endpoints.update_endpoint(change("Second")).await.unwrap_err();
        assert_eq!(stale.code(), Code::Aborted);
        assert_eq!(ApiError::new(&stale).reason.as_deref(), Some("ETAG_MISMATCH"));
        assert_eq!(scene.record().await.len(), 3);
    }

    pub(super) async fn every_change_is_recorded_with_its_caller_and_request(scene: &Scene) {
        scene.create("orders").await;
        let mut request = Request::new(v1::DisableEndpointRequest {
            name: scene.name("orders"),
            reason: "receiver moves".to_owned(),
            ..Default::default()
        });
        request.metadata_mut().insert("x-request-id", "ticket-4711".parse().unwrap());
        let disabled = scene.client.endpoints().disable_endpoint(request).await.unwrap();
        let record = scene.record().await;
        let methods: Vec<&str> = record.iter().map(|event| event.method.as_str()).collect();
        assert_eq!(
            methods,
            [
                "turnbuckle.v1.Endpoints/DisableEndpoint",
                "turnbuckle.v1.Endpoints/CreateEndpoint",
                "turnbuckle.v1.Tenants/CreateTenant",
            ]
        );
        let newest = &record[0];
        let who = (newest.subject.as_str(), newest.role.as_str(), newest.request_id.as_str());
        assert_eq!(who, ("local-admin", "admin", "ticket-4711"));
        assert_eq!(newest.reason, "receiver moves");
        assert_eq!(newest.resource, scene.name("orders"));
        assert_eq!(newest.revision, disabled.get_ref().revision);
        let fields: Vec<&str> = newest.changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(fields, ["disable_reason", "state"]);
        let text = format!("{record:?}");
        assert!(!text.contains("hunter2") && !text.contains("whsec_"), "{text}");
        let head = scene.head().await;
        assert_eq!((head.count, &head.audit_event, &head.hash), (3, &newest.name, &newest.hash));
    }

    pub(super) async fn a_record_is_verified_by_the_command_line(scene: &Scene) {
        for id in ["a", "b", "c"] {
            scene.create(id).await;
        }
        scene.command("audit list --resource endpoints/a --since 1h").await.unwrap();
        scene.command("audit export").await.unwrap();
        scene.command("audit verify").await.unwrap();
        let head = scene.head().await;
        let noted = format!("audit verify --anchor {}:{}", head.count, head.hash);
        scene.create("d").await;
        scene.command(&noted).await.unwrap();
        let other = format!("audit verify --anchor {}:{}", head.count, "00".repeat(32));
        let broken = scene.command(&other).await.unwrap_err();
        let text = format!("{broken:#}");
        assert!(text.contains("is broken: entry 4 is not the entry"), "{text}");
        let ahead = format!("audit verify --anchor 99:{}", head.hash);
        assert!(scene.command(&ahead).await.is_err());
    }

    pub(super) async fn the_command_line_upserts_and_runs_dry(scene: &Scene) {
        let url = "--url http://127.0.0.1:9/hook --max-in-flight 4";
        scene.command(&format!("endpoint create orders {url} --upsert --dry-run")).await.unwrap();
        assert_eq!(scene.head().await.count, 1);
        for _ in 0..2 {
            scene.command(&format!("endpoint create orders {url} --upsert")).await.unwrap();
        }
        scene.command("event-type create order.paid --upsert").await.unwrap();
        scene.command("event-type create order.paid --upsert").await.unwrap();
        scene.command("retry-policy create quick --max-attempts 3 --upsert").await.unwrap();
        let subscribe = "subscription create all --endpoint orders --type order.* --upsert";
        scene.command(subscribe).await.unwrap();
        scene.command(subscribe).await.unwrap();
        scene.command("key rotate orders --dry-run").await.unwrap();
        scene.command("endpoint update orders --max-in-flight 5 --dry-run").await.unwrap();
        assert_eq!(scene.head().await.count, 5);
        let nameless = scene.command(&format!("endpoint create {url} --upsert")).await;
        assert!(nameless.unwrap_err().to_string().contains("--upsert needs the id"));
    }

    pub(super) async fn only_those_who_may_read_the_record_of_their_tenant_do(scene: &Scene) {
        let read = async |role: Role, tenant: &str| {
            let client = scene.as_other(role, tenant).await;
            let name = format!("{}/auditHead", scene.parent);
            let parent = scene.parent.clone();
            let head = client.audit().get_audit_head(v1::GetAuditHeadRequest { name }).await;
            let list = v1::ListAuditEventsRequest { parent, ..Default::default() };
            let list = client.audit().list_audit_events(list).await;
            let (head, list) = (head.map(drop), list.map(drop));
            assert_eq!(head.as_ref().err().map(|e| e.code()), list.err().map(|e| e.code()));
            head.map_err(|status| status.code())
        };
        for role in Role::ALL {
            let reads = matches!(role, Role::Admin | Role::Operator | Role::Auditor);
            let expected = if reads { Ok(()) } else { Err(Code::PermissionDenied) };
            assert_eq!(read(role, scene.tenant).await, expected, "{role:?}");
            assert_eq!(read(role, "elsewhere").await, Err(Code::PermissionDenied), "{role:?}");
        }
        // An auditor looks and touches nothing.
        let auditor = scene.as_other(Role::Auditor, scene.tenant).await;
        let refused = auditor.endpoints().create_endpoint(scene.create_request("x")).await;
        assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    }

    pub(super) async fn a_long_record_is_read_page_by_page_and_outlives_its_tenant(scene: &Scene) {
        for id in ["a", "b"] {
            let made = scene.create(id).await;
            let request = v1::DeleteEndpointRequest { name: made.name, ..Default::default() };
            scene.client.endpoints().delete_endpoint(request).await.unwrap();
        }
        let name = scene.parent.clone();
        let request = v1::DeleteTenantRequest { name, ..Default::default() };
        scene.client.tenants().delete_tenant(request).await.unwrap();
        let mut seen = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = v1::ListAuditEventsRequest {
                parent: scene.parent.clone(),
                page_size: 2,
                page_token,
                ..Default::default()
            };
            let page = scene.client.audit().list_audit_events(request).await.unwrap().into_inner();
            assert!(page.audit_events.len() <= 2);
            seen.extend(page.audit_events.iter().map(|event| event.sequence));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, [6, 5, 4, 3, 2, 1]);
        scene.command("audit verify").await.unwrap();
    }
}
