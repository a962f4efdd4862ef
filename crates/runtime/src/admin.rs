//! The inside view for operators and orchestrators: liveness, readiness, metrics.
//!
//! Bound to its own address, which is not for the outside world: it has no authentication.

mod metrics;
#[cfg(test)]
mod tests;

pub use metrics::{MetricsError, metrics_recorder};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
pub use metrics_exporter_prometheus::PrometheusHandle as MetricsHandle;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use std::{io, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// How long open connections may take to end when the process stops. Answers here are immediate;
/// a client that dawdles must not hold the process.
const LINGER: Duration = Duration::from_secs(1);

/// Content type of the Prometheus text form.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Content type of RFC 9457 problems.
const PROBLEM_JSON: &str = "application/problem+json";

/// What a readiness check finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It may take traffic.
    Ready,
    /// It may not, for now.
    NotReady,
}

/// Looks at one thing the process needs. Must not block: it runs in the request.
pub type ReadinessCheck = Arc<dyn Fn() -> Readiness + Send + Sync>;

/// Tells more of one thing than whether it is ready. Must not block, and must hold no secret.
pub type ReadinessDetail = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What the admin server answers from.
#[derive(Clone)]
pub struct AdminState {
    metrics: PrometheusHandle,
    checks: Vec<(&'static str, ReadinessCheck)>,
    details: Vec<(&'static str, ReadinessDetail)>,
    shutdown: CancellationToken,
}

impl AdminState {
    /// Without checks. When the token is cancelled, readiness ends at once and the server soon after.
    #[must_use]
    pub fn new(metrics: PrometheusHandle, shutdown: CancellationToken) -> Self {
        let (checks, details) = (Vec::new(), Vec::new());
        let mut state = Self { metrics, checks, details, shutdown: shutdown.clone() };
        state.checks.push(("running", Arc::new(move || ready(!shutdown.is_cancelled()))));
        state
    }

    /// Adds a check. Its name is all that a failed one shows.
    #[must_use]
    pub fn with_check(mut self, name: &'static str, check: ReadinessCheck) -> Self {
        self.checks.push((name, check));
        self
    }

    /// Adds a check that reads a value which its owner keeps up to date. When the owner is gone,
    /// so is readiness.
    #[must_use]
    pub fn with_watch(self, name: &'static str, value: watch::Receiver<Readiness>) -> Self {
        self.with_check(
            name,
            Arc::new(move || match value.has_changed() {
                Ok(_) => *value.borrow(),
                Err(_) => Readiness::NotReady,
            }),
        )
    }

    /// Adds to every answer about readiness what there is to know of one thing.
    #[must_use]
    pub fn with_detail(mut self, name: &'static str, detail: ReadinessDetail) -> Self {
        self.details.push((name, detail));
        self
    }

    fn failing(&self) -> Vec<&'static str> {
        let failed = self.checks.iter().filter(|(_, check)| check() == Readiness::NotReady);
        failed.map(|(name, _)| *name).collect()
    }
}

const fn ready(condition: bool) -> Readiness {
    if condition { Readiness::Ready } else { Readiness::NotReady }
}

/// Answers until the process ends. While it winds down, readiness says so and metrics are still read.
pub async fn serve_to_the_end(listener: TcpListener, state: AdminState) {
    if let Err(error) = axum::serve(listener, router(state)).await {
        tracing::error!(%error, "the admin listener failed");
    }
}

/// Answers until the state's token is cancelled.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, state: AdminState) -> io::Result<()> {
    let shutdown = state.shutdown.clone();
    let server = axum::serve(listener, router(state))
        .with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let lingered = async {
        shutdown.cancelled().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        ended = server => ended,
        () = lingered => Ok(()),
    }
}

/// The routes of the admin server.
pub fn router(state: AdminState) -> Router {
    Router::new()
        .route("/healthz", get(|| async { Json(json!({"status": "alive"})) }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics")
        })
        .method_not_allowed_fallback(|| async {
            problem(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here")
        })
        .with_state(state)
}

async fn readyz(State(state): State<AdminState>) -> Response {
    let failing = state.failing();
    let (status, mut body) = match failing.is_empty() {
        true => (StatusCode::OK, json!({"status": "ready"})),
        false => {
            let body = json!({"status": "not ready", "failing": failing});
            (StatusCode::SERVICE_UNAVAILABLE, body)
        }
    };
    for (name, detail) in &state.details {
        body[*name] = detail();
    }
    (status, Json(body)).into_response()
}

async fn render_metrics(State(state): State<AdminState>) -> Response {
    ([(header::CONTENT_TYPE, PROMETHEUS_TEXT)], state.metrics.render()).into_response()
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({"title": title, "status": status.as_u16(), "detail": detail}).to_string();
    (status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response()
}
