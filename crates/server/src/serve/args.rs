//! Options of `turnbuckle serve`.

use super::quotas::QuotaArgs;
use crate::cli::Span;
use std::{net::SocketAddr, path::PathBuf, time::Duration};
use turnbuckle_domain::{dedup_limits, health_limits, receipt_limits};

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Everything.
    All,
    /// Configuration over gRPC.
    ControlPlane,
    /// Publish and delivery.
    Delivery,
    /// HTTP from third parties.
    Ingress,
}

/// Options of `turnbuckle serve`.
#[derive(Clone, clap::Args)]
pub struct ServeArgs {
    /// File with settings: `name: value`, names as the flags with underscores. Environment and flags win.
    #[arg(long, value_name = "FILE", env = "TURNBUCKLE_CONFIG")]
    pub config: Option<PathBuf>,
    /// What this process does, separated by commas.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "all",
        env = "TURNBUCKLE_ROLES"
    )]
    pub roles: Vec<Role>,
    /// Directory of the embedded store and of keys made at the first start.
    #[arg(long, default_value = "turnbuckle-data", env = "TURNBUCKLE_DATA_DIR")]
    pub data_dir: PathBuf,
    /// postgres://… keeps everything in Postgres instead of the data directory.
    #[arg(long, env = "TURNBUCKLE_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Follow the configuration of this control plane, http://… or https://…, instead of reading it
    /// from the database. For processes of other roles.
    #[arg(long, value_name = "URL", env = "TURNBUCKLE_CONTROL_PLANE_URL")]
    pub control_plane_url: Option<String>,
    /// Name of this process among the nodes of its roles [default: host name and admin port].
    #[arg(long, value_name = "NAME", env = "TURNBUCKLE_NODE_NAME")]
    pub node_name: Option<String>,
    /// File with the token for the control plane: role node, subject delivery or ingress, read again
    /// when it changes.
    #[arg(long, value_name = "FILE", env = "TURNBUCKLE_NODE_TOKEN_FILE")]
    pub node_token_file: Option<PathBuf>,
    /// Where the API listens: gRPC, gRPC-Web and JSON over HTTP.
    #[arg(long, default_value = "127.0.0.1:7420", env = "TURNBUCKLE_API_LISTEN")]
    pub api_listen: SocketAddr,
    /// Where the HTTP ingress listens.
    #[arg(long, default_value = "127.0.0.1:7421", env = "TURNBUCKLE_INGRESS_LISTEN")]
    pub ingress_listen: SocketAddr,
    /// Where health, readiness and metrics listen. Has no authentication: keep it inside.
    #[arg(long, default_value = "127.0.0.1:7422", env = "TURNBUCKLE_ADMIN_LISTEN")]
    pub admin_listen: SocketAddr,
    /// PEM file with the certificate of the API and the ingress, then its chain: both speak TLS. Read
    /// again when it changes. Without it both speak plain text, for a proxy in front of them.
    #[arg(long, value_name = "FILE", env = "TURNBUCKLE_TLS_CERT_FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// PEM file with the key of --tls-cert-file.
    #[arg(long, value_name = "FILE", env = "TURNBUCKLE_TLS_KEY_FILE")]
    pub tls_key_file: Option<PathBuf>,
    /// Web page origin that may call the API, such as `https://console.example.com`. Repeatable.
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',', env = "TURNBUCKLE_CORS_ORIGIN")]
    pub cors_origin: Vec<String>,
    /// For development: calls without a token are admin calls, and keys are made when missing.
    #[arg(long, env = "TURNBUCKLE_DEV")]
    pub dev: bool,
    /// Key-encryption keys for secrets at rest [default: keyring.json in the data directory].
    #[arg(long, env = "TURNBUCKLE_KEYRING_FILE")]
    pub keyring_file: Option<PathBuf>,
    /// Key that signs and verifies bearer tokens [default: token.key in the data directory].
    #[arg(long, env = "TURNBUCKLE_TOKEN_KEY_FILE")]
    pub token_key_file: Option<PathBuf>,
    /// Issuers whose tokens are taken, with their keys and subjects. Tokens made with the token key
    /// are refused then, unless --token-key-file is given too.
    #[arg(long, env = "TURNBUCKLE_AUTH_CONFIG")]
    pub auth_config: Option<PathBuf>,
    /// Network that deliveries may go to although it is not public, such as 10.2.0.0/16. Repeatable.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', env = "TURNBUCKLE_ALLOW_EGRESS")]
    pub allow_egress: Vec<String>,
    /// Host name that deliveries may go to although it is internal; its addresses are judged still. Repeatable.
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "TURNBUCKLE_ALLOW_EGRESS_HOST")]
    pub allow_egress_host: Vec<String>,
    /// Network of proxies in front of the ingress, such as 10.2.0.0/16, whose X-Forwarded-For is
    /// believed. Without it limits count by the address of the connection. Repeatable.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', env = "TURNBUCKLE_TRUSTED_PROXY")]
    pub trusted_proxy: Vec<String>,
    /// PEM file with certificate authorities trusted besides the public ones.
    #[arg(long, env = "TURNBUCKLE_EXTRA_CA_FILE")]
    pub extra_ca_file: Option<PathBuf>,
    /// Lets administrators see secrets of signing keys again. Each look is recorded.
    #[arg(long, env = "TURNBUCKLE_ALLOW_KEY_REVEAL")]
    pub allow_key_reveal: bool,
    /// How often the use of signing keys is written, and open rotations are judged by it: 1s to 1h.
    #[arg(long, default_value = "60s", env = "TURNBUCKLE_KEY_USAGE_INTERVAL")]
    pub key_usage_interval: Span,
    /// How long a worker may be silent before others take its deliveries: 1s to 5m.
    #[arg(long, default_value = "15s", env = "TURNBUCKLE_LEASE")]
    pub lease: Span,
    /// Time for attempts in flight when the process is told to stop: 0s to 10m.
    #[arg(long, default_value = "30s", env = "TURNBUCKLE_GRACE")]
    pub grace: Span,
    /// How long ids of published events are remembered: 1h to 31d. Ids of sources have windows of their
    /// own.
    #[arg(long, default_value = "7d", env = "TURNBUCKLE_DEDUP_WINDOW")]
    pub dedup_window: Span,
    /// An endpoint of which every attempt failed for so long is disabled: 1h to 30d, or 0 for never.
    #[arg(long, default_value = "5d", env = "TURNBUCKLE_DISABLE_FAILING_AFTER")]
    pub disable_failing_after: Span,
    /// How long receipts of the ingress are kept: 1d to 400d.
    #[arg(long, default_value = "30d", env = "TURNBUCKLE_RECEIPT_RETENTION")]
    pub receipt_retention: Span,
    /// How much a tenant may have.
    #[command(flatten)]
    pub quotas: QuotaArgs,
    /// pretty or json; logs go to stderr.
    #[arg(long, default_value = "pretty", env = "TURNBUCKLE_LOG_FORMAT")]
    pub log_format: String,
    /// What is logged, such as info,turnbuckle_delivery=debug.
    #[arg(long, default_value = "info", env = "TURNBUCKLE_LOG")]
    pub log: String,
}

impl ServeArgs {
    /// Whether tokens made with the token key are taken: not besides configured issuers, unless
    /// the operator asks for it.
    #[must_use]
    pub fn takes_own_tokens(&self) -> bool {
        self.auth_config.is_none() || self.token_key_file.is_some()
    }

    /// Whether the process has this role.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.roles.iter().any(|own| *own == role || *own == Role::All)
    }

    /// After how long an endpoint that fails all the time is disabled; none means never.
    #[must_use]
    pub fn disable_after(&self) -> Option<Duration> {
        Some(self.disable_failing_after.into()).filter(|after| !Duration::is_zero(after))
    }

    /// Checks what clap cannot; lists everything wrong at once.
    ///
    /// # Errors
    /// When an option is out of bounds.
    pub fn check(&self) -> anyhow::Result<()> {
        let mut faults = Vec::new();
        let lease = Duration::from(self.lease);
        if lease < Duration::from_secs(1) || lease > Duration::from_secs(300) {
            faults.push("--lease is between 1s and 5m");
        }
        let usage = Duration::from(self.key_usage_interval);
        if usage < Duration::from_secs(1) || usage > Duration::from_secs(3600) {
            faults.push("--key-usage-interval is between 1s and 1h");
        }
        let window = Duration::from(self.dedup_window);
        if !(dedup_limits::WINDOW_MIN..=dedup_limits::WINDOW_MAX).contains(&window) {
            faults.push("--dedup-window is between 1h and 31d");
        }
        let failing = health_limits::DISABLE_AFTER_MIN..=health_limits::DISABLE_AFTER_MAX;
        if self.disable_after().is_some_and(|after| !failing.contains(&after)) {
            faults.push("--disable-failing-after is between 1h and 30d, or 0 for never");
        }
        let kept = Duration::from(self.receipt_retention);
        if !(receipt_limits::KEPT_MIN..=receipt_limits::KEPT_MAX).contains(&kept) {
            faults.push("--receipt-retention is between 1d and 400d");
        }
        if Duration::from(self.grace) > Duration::from_secs(600) {
            faults.push("--grace is at most 10m");
        }
        if self.dev && !self.api_listen.ip().is_loopback() {
            faults.push(
                "--dev lets everybody in who can reach the API: keep --api-listen on 127.0.0.1",
            );
        }
        if self.control_plane_url.is_some() && self.has(Role::ControlPlane) {
            faults.push(
                "--control-plane-url is for processes that are no control plane: leave it out, or \
                 choose --roles delivery or ingress",
            );
        }
        if self.control_plane_url.is_some() && self.node_token_file.is_none() {
            faults.push("--control-plane-url needs --node-token-file");
        }
        if self.tls_cert_file.is_some() != self.tls_key_file.is_some() {
            faults.push("--tls-cert-file and --tls-key-file go together: give both or none");
        }
        if let Some(url) = &self.database_url
            && !url.starts_with("postgres://")
            && !url.starts_with("postgresql://")
        {
            faults.push("--database-url starts with postgres://");
        }
        anyhow::ensure!(faults.is_empty(), "{}", faults.join("; "));
        Ok(())
    }
}
