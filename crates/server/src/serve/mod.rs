//! `turnbuckle serve`: the roles of one process.

mod api;
mod args;
mod callers;

mod embedded_demo;
mod ingress;
mod issuers;
mod json;
mod key_upkeep;
mod nodes;
mod outbound;
mod quotas;
mod welcome;

pub use args::{Role, ServeArgs};
pub use embedded_demo::start_for_demo;

use crate::secrets::Secrets;
use anyhow::Context as _;
use callers::Callers;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use turnbuckle_control_plane::{Dependencies, Sweeper};
use turnbuckle_delivery::{
    DeliveryPlane, EngineSettings, PlaneParts,
    egress::{AllowedName, EgressGuard, EgressPolicy, SystemResolver},
};
use turnbuckle_domain::{
    Clock, EventIntake, IdGenerator, Propagation, Random, ReceiptReplay, Revision, SecretRewrapper,
    SecretSealer,
};
use turnbuckle_ingress::{IngressPlane, Replays, TrustedProxies};
use turnbuckle_runtime::{
    Keyring, Supervisor, SystemClock,
    admin::{self, AdminState, Readiness},
    keyring::check_keyring,
    os_random,
    supervisor::OnExit,
    tls::ServerTls,
};
use turnbuckle_store::Store;

/// How often readiness looks at the store. It shows within this that the database is gone.
const STORE_CHECK: Duration = Duration::from_secs(2);
/// Longest answer that counts as one.
const STORE_CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Folding recorded samples into histograms, so that they do not pile up between scrapes.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);
/// Making partitions ahead; they are made a week ahead, so hours do not matter.
const MAINTENANCE: Duration = Duration::from_secs(3600);
/// Taking away ids whose window is over: a run goes on until none is left, or its bound is reached.
const DEDUP_SWEEP: Duration = Duration::from_secs(60);
/// Taking away what was deleted long ago: a run is bounded, so a large tenant takes some of them.
const CONFIG_SWEEP: Duration = Duration::from_secs(60);
/// Open files asked for: one for each attempt in flight, idle connection and caller.
const OPEN_FILES: u64 = 65_536;
/// Time beyond the grace of attempts for everything else to wind down.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// A running process.
pub struct Running {
    /// Owns every task.
    pub supervisor: Supervisor,
    /// Where gRPC listens.
    pub api: Option<SocketAddr>,
    /// Where the ingress listens.
    pub ingress: Option<SocketAddr>,
    /// Where health and metrics listen.
    pub admin: SocketAddr,
    /// A token for this process's operator, where tokens made with the token key are taken.
    pub admin_token: Option<String>,
    /// Whether the store had nothing in it.
    pub is_new: bool,
    grace: Duration,
}

impl Running {
    /// Waits until the process is to stop and everything has wound down.
    ///
    /// # Errors
    /// Why it stopped, unless it was asked to.
    pub async fn finished(self) -> anyhow::Result<()> {
        Ok(self.supervisor.run_until_stopped(self.grace + WIND_DOWN).await?)
    }
}

/// Runs a process until it is told to stop.
///
/// # Errors
/// When it cannot start, or a part it cannot do without fails.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    turnbuckle_runtime::telemetry::init(args.log_format.parse()?, &args.log)?;
    if let Err(error) = rlimit::increase_nofile_limit(OPEN_FILES) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let signals = turnbuckle_runtime::supervisor::Signals::listen()?;
    let supervisor = Supervisor::new();
    // Before anything is waited for, so that the wait can be ended.
    supervisor.stop_on(signals);
    let running = start_under(&args, supervisor).await?;
    if let Err(error) = welcome::print(&args, &running) {
        // Nobody reads the terminal any more; the server is up all the same.
        tracing::debug!(%error, "the first lines were not read");
    }
    running.finished().await
}

/// Opens the store, binds every port, and starts the roles.
///
/// # Errors
/// When an option, a key file, the store or a port is not as it must be.
pub async fn start(args: &ServeArgs) -> anyhow::Result<Running> {
    start_under(args, Supervisor::new()).await
}

/// The same under a supervisor that may be told to stop before everything is up.
async fn start_under(args: &ServeArgs, supervisor: Supervisor) -> anyhow::Result<Running> {
    args.check()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let guard = Arc::new(egress_guard(args)?);
    let makes_keys = args.database_url.is_none() && !Store::embedded_exists(&args.data_dir);
    let secrets = Secrets::load(args, makes_keys)?;
    let admin_token = welcome::admin_token(args, secrets.token_key.as_ref(), clock.now())?;
    let (authenticator, refreshers) = issuers::open(args, secrets.token_key, &guard, &clock)?;
    let store = open_store(args, &clock).await?;
    check_keyring(&secrets.keyring, store.sealed.as_ref(), clock.now()).await?;
    // Nothing was ever configured, whatever a first start that was cut short left behind.
    let is_new = store.config.revision().await? == Revision::ZERO;
    let listeners = Listeners::bind(args).await?;
    let tls = listener_tls(args, &supervisor)?;
    let metrics = admin::metrics_recorder()?;
    let ready = spawn_upkeep(&supervisor, &store, &clock, metrics.clone());
    let keyring = Arc::new(secrets.keyring);
    let base = Base {
        random: Arc::new(os_random()?),
        sealer: Arc::<Keyring>::clone(&keyring),
        rewrapper: keyring,
        store,
        clock,
        guard,
    };
    issuers::spawn(&supervisor, refreshers);
    let callers = Callers::new(authenticator, &base.clock, &base.random);
    let admin_address = listeners.admin.local_addr()?;
    let sources = nodes::Sources::open(args, &base, &supervisor, admin_address)?;
    let is_up = Arc::new(AtomicBool::new(false));
    let admin = AdminState::new(metrics, supervisor.shutdown()).with_watch("store", ready);
    let admin = sources.checked_by(admin).with_check("start", started(&is_up));
    let running = Running {
        api: listeners.api.as_ref().map(TcpListener::local_addr).transpose()?,
        ingress: listeners.ingress.as_ref().map(TcpListener::local_addr).transpose()?,
        admin: admin_address,
        supervisor: supervisor.clone(),
        admin_token,
        is_new,
        grace: args.grace.into(),
    };
    let listeners = listeners.serve_admin(&supervisor, admin);
    sources.loaded(&supervisor, admin_address).await?;
    let (parts, ingress) = start_planes(args, base, &sources, callers, &supervisor).await?;
    if args.dev && is_new {
        welcome::make_default_tenant(&parts).await?;
    }
    listeners.serve(&supervisor, parts, ingress, tls)?;
    is_up.store(true, Ordering::SeqCst);
    Ok(running)
}

/// Whether everything has started.
fn started(is_up: &Arc<AtomicBool>) -> admin::ReadinessCheck {
    let is_up = Arc::clone(is_up);
    Arc::new(move || match is_up.load(Ordering::SeqCst) {
        true => Readiness::Ready,
        false => Readiness::NotReady,
    })
}

/// What every plane stands on.
struct Base {
    store: Store,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    sealer: Arc<dyn SecretSealer>,
    rewrapper: Arc<dyn SecretRewrapper>,
    guard: Arc<EgressGuard>,
}

/// Starts the delivery plane where this process has its role, and the reports of it.
async fn start_delivery(
    args: &ServeArgs,
    base: &Base,
    sources: &nodes::Sources,
    callers: &Callers,
    supervisor: &Supervisor,
) -> anyhow::Result<Option<DeliveryPlane>> {
    if !args.has(Role::Delivery) {
        return Ok(None);
    }
    let parts = plane_parts(args, base, sources, callers);
    let plane = DeliveryPlane::start(parts, supervisor).await?;
    sources.report_delivery(base, supervisor, plane.config());
    Ok(Some(plane))
}

async fn start_planes(
    args: &ServeArgs,
    base: Base,
    sources: &nodes::Sources,
    callers: Callers,
    supervisor: &Supervisor,
) -> anyhow::Result<(api::ApiParts, Option<IngressPlane>)> {
    let delivery = start_delivery(args, &base, sources, &callers, supervisor).await?;
    let intake = match args.has(Role::Ingress) || args.has(Role::ControlPlane) {
        true => Some(ingress::intake(&base, delivery.as_ref(), supervisor).await?),
        false => None,
    };
    let ingress = start_ingress(args, &base, sources, intake.clone(), supervisor).await?;
    let source_tests = match intake.clone().filter(|_| args.has(Role::ControlPlane)) {
        Some(intake) => {
            let settings = ingress_settings(args, TrustedProxies::default());
            Some(ingress::tests(&base, ingress.as_ref(), intake, settings, supervisor).await?)
        }
        None => None,
    };
    let distributes = args.has(Role::ControlPlane);
    let distribution = distributes.then(|| nodes::distribute(&base, sources, supervisor));
    let here: Option<Arc<dyn Propagation>> = match &delivery {
        Some(plane) => Some(Arc::new(plane.config())),
        None if args.has(Role::ControlPlane) => {
            Some(callers.follow(base.store.config_source(), supervisor).await?)
        }
        None => None,
    };
    if here.is_some() {
        callers.spawn(supervisor, &base.store);
    }
    let tests = source_tests.as_ref().and_then(|tests| tests.follows.clone());
    let here = here.into_iter().chain(ingress.as_ref().map(ingress::propagation)).chain(tests);
    let here = here.collect();
    let applied =
        sources.applied_revisions(&base, delivery.as_ref().map(DeliveryPlane::own_revision));
    let Base { store, clock, random, sealer, rewrapper, guard } = base;
    let propagation = distribution.clone().map(|distribution| nodes::Told { distribution, here });
    let control_plane = propagation.map(|propagation| Dependencies {
        store: store.config,
        receipts: store.receipts,
        replays: intake.map(|intake| Arc::new(Replays(intake)) as Arc<dyn ReceiptReplay>),
        history: store.history,
        sealer,
        ids: IdGenerator::new(Arc::clone(&clock), random),
        clock: Arc::clone(&clock),
        propagation: Arc::new(propagation),
        targets: guard,
        key_usage: store.key_usage,
        applied,
        sealed: store.sealed,
        rewrapper,
        reveals_keys: args.allow_key_reveal,
    });
    if let Some(control_plane) = &control_plane {
        spawn_sweep(supervisor, Sweeper::new(control_plane));
    }
    let origins = json::Origins::parse(&args.cors_origin)?;
    let parts = api::ApiParts {
        control_plane,
        distribution,
        delivery,
        source_tests: source_tests.map(|tests| tests.add),
        callers,
        clock,
        dev: args.dev,
        origins,
        key_upkeep_every: args.key_usage_interval.into(),
    };
    Ok((parts, ingress))
}

fn ingress_settings(args: &ServeArgs, proxies: TrustedProxies) -> ingress::Settings {
    ingress::Settings {
        receipt_retention: args.receipt_retention.into(),
        proxies,
        key_usage_every: args.key_usage_interval.into(),
    }
}

async fn start_ingress(
    args: &ServeArgs,
    base: &Base,
    sources: &nodes::Sources,
    intake: Option<Arc<dyn EventIntake>>,
    supervisor: &Supervisor,
) -> anyhow::Result<Option<IngressPlane>> {
    let Some(intake) = intake.filter(|_| args.has(Role::Ingress)) else { return Ok(None) };
    let proxies = TrustedProxies::parse(&args.trusted_proxy)
        .map_err(|error| anyhow::anyhow!("--trusted-proxy: {error}"))?;
    let settings = ingress_settings(args, proxies);
    let plane = ingress::start(base, sources, intake, settings, supervisor).await?;
    sources.report_ingress(base, supervisor, plane.sources());
    Ok(Some(plane))
}

fn plane_parts(
    args: &ServeArgs,
    base: &Base,
    sources: &nodes::Sources,
    callers: &Callers,
) -> PlaneParts {
    PlaneParts {
        log: Arc::clone(&base.store.log),
        queue: Arc::clone(&base.store.queue),
        pull: Arc::clone(&base.store.pull),
        history: Arc::clone(&base.store.history),
        replays: Arc::clone(&base.store.replays),
        record: Arc::clone(&base.store.config),
        config: Arc::new(callers.observe(sources.of_delivery(base))),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        sealer: Arc::clone(&base.sealer),
        guard: Arc::clone(&base.guard),
        key_usage: Arc::clone(&base.store.key_usage),
        health: Arc::clone(&base.store.health),
        key_usage_every: args.key_usage_interval.into(),
        settings: EngineSettings {
            lease: args.lease.into(),
            grace: args.grace.into(),
            dedup_window: args.dedup_window.into(),
            disable_after: args.disable_after(),
        },
        shared_store: args.database_url.is_some(),
    }
}

fn egress_guard(args: &ServeArgs) -> anyhow::Result<EgressGuard> {
    let extra_roots = match &args.extra_ca_file {
        None => Vec::new(),
        Some(path) => {
            let pem = std::fs::read(path)
                .with_context(|| format!("cannot read --extra-ca-file {}", path.display()))?;
            EgressPolicy::certificates(&pem)?
        }
    };
    let names = args.allow_egress_host.iter().map(|name| AllowedName::parse(name));
    let policy = EgressPolicy {
        allow: EgressPolicy::networks(&args.allow_egress)?,
        allow_names: names.collect::<Result<_, _>>()?,
        extra_roots,
        ..EgressPolicy::default()
    };
    Ok(EgressGuard::new(policy, Arc::new(SystemResolver))?)
}

async fn open_store(args: &ServeArgs, clock: &Arc<dyn Clock>) -> anyhow::Result<Store> {
    let store = match &args.database_url {
        Some(url) => Store::open_postgres(url, clock.now()).await?,
        None => Store::open_embedded(&args.data_dir, Arc::clone(clock)).await?,
    };
    Ok(store.with_quotas(args.quotas.quotas()))
}

struct Listeners {
    api: Option<TcpListener>,
    ingress: Option<TcpListener>,
    admin: TcpListener,
}

impl Listeners {
    async fn bind(args: &ServeArgs) -> anyhow::Result<Self> {
        let has_api = args.has(Role::ControlPlane) || args.has(Role::Delivery);
        Ok(Self {
            api: bind(has_api, args.api_listen, "--api-listen").await?,
            ingress: bind(args.has(Role::Ingress), args.ingress_listen, "--ingress-listen").await?,
            admin: bind(true, args.admin_listen, "--admin-listen").await?.context("bound above")?,
        })
    }

    /// Health and metrics first: they tell that the rest is not ready.
    fn serve_admin(self, supervisor: &Supervisor, state: AdminState) -> Doors {
        supervisor.spawn_to_the_end(admin::serve_to_the_end(self.admin, state));
        Doors { api: self.api, ingress: self.ingress }
    }
}

/// What opens when everything has started.
struct Doors {
    api: Option<TcpListener>,
    ingress: Option<TcpListener>,
}

impl Doors {
    fn serve(
        self,
        supervisor: &Supervisor,
        parts: api::ApiParts,
        ingress: Option<IngressPlane>,
        tls: Option<ServerTls>,
    ) -> anyhow::Result<()> {
        let acceptor = |protocols: &[&str]| tls.as_ref().map(|tls| tls.acceptor(protocols));
        if let Some(listener) = self.api {
            api::spawn(supervisor, listener, acceptor(&["h2", "http/1.1"]).transpose()?, parts)?;
        }
        if let (Some(listener), Some(plane)) = (self.ingress, ingress) {
            plane.listen(listener, acceptor(&["http/1.1"]).transpose()?, supervisor);
        }
        Ok(())
    }
}

/// The certificate of the listeners, where there is one, kept fresh.
fn listener_tls(args: &ServeArgs, supervisor: &Supervisor) -> anyhow::Result<Option<ServerTls>> {
    let (Some(cert), Some(key)) = (&args.tls_cert_file, &args.tls_key_file) else {
        return Ok(None);
    };
    let tls = ServerTls::load(cert, key).context("--tls-cert-file, --tls-key-file")?;
    let (kept, stop) = (tls.clone(), supervisor.shutdown());
    supervisor.spawn("tls-reload", OnExit::Log, async move {
        kept.keep_fresh(stop).await;
        Ok::<(), std::convert::Infallible>(())
    });
    Ok(Some(tls))
}

async fn bind(
    wanted: bool,
    address: SocketAddr,
    option: &str,
) -> anyhow::Result<Option<TcpListener>> {
    if !wanted {
        return Ok(None);
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on {address}: stop what does, or choose another with {option}")
    })?;
    Ok(Some(listener))
}

/// Small periodic tasks around the store and the metrics.
fn spawn_upkeep(
    supervisor: &Supervisor,
    store: &Store,
    clock: &Arc<dyn Clock>,
    metrics: admin::MetricsHandle,
) -> watch::Receiver<Readiness> {
    let (ready, receiver) = watch::channel(Readiness::Ready);
    let pinged = store.clone();
    spawn_periodic(supervisor, "store-check", STORE_CHECK, move || {
        let (store, ready) = (pinged.clone(), ready.clone());
        async move {
            let answer = tokio::time::timeout(STORE_CHECK_TIMEOUT, store.ping()).await;
            let state = match answer {
                Ok(Ok(())) => Readiness::Ready,
                Ok(Err(_)) | Err(_) => Readiness::NotReady,
            };
            ready.send_replace(state);
        }
    });
    spawn_periodic(supervisor, "metrics-upkeep", METRICS_UPKEEP, move || {
        metrics.run_upkeep();
        async {}
    });
    let (swept, now) = (store.clone(), Arc::clone(clock));
    spawn_periodic(supervisor, "dedup-sweep", DEDUP_SWEEP, move || {
        let (store, clock) = (swept.clone(), Arc::clone(&now));
        async move {
            if let Err(error) = store.sweep_dedup(clock.as_ref()).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "old ids stay for now");
            }
        }
    });
    let (maintained, clock) = (store.clone(), Arc::clone(clock));
    spawn_periodic(supervisor, "store-maintenance", MAINTENANCE, move || {
        let (store, now) = (maintained.clone(), clock.now());
        async move {
            if let Err(error) = store.maintain(now).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "maintenance failed");
            }
        }
    });
    receiver
}

/// Deleted configuration is purged after its time, and old requests are forgotten.
fn spawn_sweep(supervisor: &Supervisor, sweeper: Sweeper) {
    let sweeper = Arc::new(sweeper);
    spawn_periodic(supervisor, "config-sweep", CONFIG_SWEEP, move || {
        let sweeper = Arc::clone(&sweeper);
        async move {
            if let Err(error) = sweeper.run().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "sweeping failed");
            }
        }
    });
}

fn spawn_periodic<F, W>(supervisor: &Supervisor, name: &'static str, period: Duration, mut work: W)
where
    W: FnMut() -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let stop = supervisor.shutdown();
    supervisor.spawn(name, OnExit::Log, async move {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            work().await;
        }
        Ok::<(), std::convert::Infallible>(())
    });
}
