//! The server that the demo starts: all roles, a temporary directory, ports of its own.

use super::{Role, ServeArgs, quotas::QuotaArgs, start};
use crate::{cli::Span, demo::RunningServer};
use anyhow::Context as _;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};
use turnbuckle_domain::{dedup_limits, health_limits, key_usage_limits, receipt_limits};

/// Starts everything in `data_dir`. Its receivers are on this machine, so loopback is let through.
///
/// # Errors
/// When the store or a port is not to be had.
pub async fn start_for_demo(data_dir: PathBuf) -> anyhow::Result<RunningServer> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let args = ServeArgs {
        config: None,
        roles: vec![Role::All],
        data_dir,
        database_url: None,
        control_plane_url: None,
        node_name: None,
        node_token_file: None,
        api_listen: any_port,
        ingress_listen: any_port,
        admin_listen: any_port,
        cors_origin: Vec::new(),
        dev: false,
        keyring_file: None,
        token_key_file: None,
        auth_config: None,
        allow_egress: vec!["127.0.0.0/8".into()],
        allow_egress_host: Vec::new(),
        trusted_proxy: Vec::new(),
        extra_ca_file: None,
        tls_cert_file: None,
        tls_key_file: None,
        allow_key_reveal: false,
        key_usage_interval: Span(key_usage_limits::WRITE_EVERY),
        dedup_window: Span(dedup_limits::WINDOW_DEFAULT),
        disable_failing_after: Span(health_limits::DISABLE_AFTER_DEFAULT),
        receipt_retention: Span(receipt_limits::KEPT),
        lease: Span(Duration::from_secs(15)),
        grace: Span(Duration::from_secs(2)),
        quotas: QuotaArgs::default(),
        log_format: "pretty".into(),
        log: "warn".into(),
    };
    turnbuckle_runtime::telemetry::init(args.log_format.parse()?, &args.log)?;
    let running = start(&args).await?;
    Ok(RunningServer {
        api_url: format!("http://{}", running.api.context("all roles have an API")?),
        token: running.admin_token.clone().context("the demo has a token key")?,
        stop: running.supervisor.shutdown(),
        finished: Box::pin(async move {
            if let Err(error) = running.finished().await {
                tracing::error!(%error, "the demo's server did not stop cleanly");
            }
        }),
    })
}
