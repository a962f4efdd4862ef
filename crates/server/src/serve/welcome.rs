//! What a first start leaves and says.

use super::{Role, Running, ServeArgs, api::ApiParts};
use anyhow::Context as _;
use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::Duration,
};
use turnbuckle_domain::{
    AuditId, ChangeContext, Meta, ResourceId, Role as CallerRole, Tenant, TenantId, Timestamp,
};
use turnbuckle_runtime::auth::TokenKey;

/// Where the operator's token lies in the data directory.
const ADMIN_TOKEN: &str = "admin.token";
/// Long enough to forget about, short enough to be renewed some day.
const ADMIN_TOKEN_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Who makes what a first start makes, in the audit record.
const FIRST_START: &str = "turnbuckle serve --dev";

/// Makes the operator's token, where our own tokens are taken. With an embedded store it is left in
/// the data directory, for the command line to find; it is never printed outside development.
pub(super) fn admin_token(
    args: &ServeArgs,
    key: Option<&TokenKey>,
    now: Timestamp,
) -> anyhow::Result<Option<String>> {
    let Some(key) = key else {
        return Ok(None);
    };
    let token = key.issue("local-admin", CallerRole::Admin, None, ADMIN_TOKEN_LIFE, now)?;
    let path = args.data_dir.join(ADMIN_TOKEN);
    if args.database_url.is_none() && !path.exists() {
        leave(&path, &token).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(Some(token))
}

/// Writes a file as a whole or not at all, for its owner only.
fn leave(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    std::fs::rename(unfinished, path)
}

/// Development starts with a tenant, so that the first publish needs no preparation but its type.
pub(super) async fn make_default_tenant(parts: &ApiParts) -> anyhow::Result<()> {
    let Some(control) = &parts.control_plane else {
        return Ok(());
    };
    let now = parts.clock.now();
    let tenant = Tenant {
        id: TenantId::from_uuid(control.ids.uuid()),
        slug: ResourceId::new("default")?,
        display_name: "Default".into(),
        labels: turnbuckle_domain::Labels::default(),
        meta: Meta { created_at: now, updated_at: now, ..Meta::default() },
    };
    let by = ChangeContext {
        id: AuditId::from_uuid(control.ids.uuid()),
        at: now,
        subject: FIRST_START.into(),
        role: CallerRole::Admin,
        method: FIRST_START.into(),
        request_id: control.ids.uuid().to_string(),
        reason: "first start in development".into(),
        validate_only: false,
        request: None,
    };
    let created = control.store.create_tenant(tenant, &by).await?;
    control.propagation.applied(created.meta.revision).await;
    Ok(())
}

/// Says what listens where, and at the first start how to publish.
pub(super) fn print(args: &ServeArgs, running: &Running) -> anyhow::Result<()> {
    let mut out = io::stderr().lock();
    let store = match &args.database_url {
        Some(_) => "Postgres".to_owned(),
        None => format!("embedded, in {}", args.data_dir.display()),
    };
    writeln!(out, "turnbuckle {} is up. Store: {store}", env!("CARGO_PKG_VERSION"))?;
    if let Some(api) = running.api {
        writeln!(out, "  API (gRPC)   {}://{api}", scheme(args))?;
    }
    if let Some(ingress) = running.ingress {
        writeln!(out, "  Ingress      {}://{ingress}", scheme(args))?;
    }
    writeln!(out, "  Admin        http://{}/readyz, /metrics", running.admin)?;
    if running.is_new && args.has(Role::ControlPlane) && args.has(Role::Delivery) {
        first_publish(&mut out, args, running)?;
    }
    Ok(())
}

/// What the listeners of the API and the ingress speak.
const fn scheme(args: &ServeArgs) -> &'static str {
    if args.tls_cert_file.is_some() { "https" } else { "http" }
}

fn first_publish(out: &mut impl io::Write, args: &ServeArgs, running: &Running) -> io::Result<()> {
    let program = std::env::args().next().unwrap_or_else(|| "turnbuckle".into());
    let server = running.api.map(|api| format!("{}://{api}", scheme(args))).unwrap_or_default();
    let options = match server.as_str() {
        "http://127.0.0.1:7420" => String::new(),
        other => format!(" --server {other}"),
    };
    if let Some(config) = args.auth_config.as_ref().filter(|_| !args.takes_own_tokens()) {
        // What is below would need a token that only an issuer can give.
        return writeln!(out, "  Tokens       of the issuers in {}", config.display());
    }
    let is_embedded = args.database_url.is_none();
    let path = args.data_dir.join(ADMIN_TOKEN);
    if let Some(token) = running.admin_token.as_ref().filter(|_| args.dev) {
        writeln!(out, "  Dev token    {token}")?;
    } else if is_embedded {
        writeln!(out, "  Admin token  in {} (the command line finds it there)", path.display())?;
    }
    let token = match (is_embedded, args.dev, args.data_dir.as_os_str() == "turnbuckle-data") {
        (true, _, true) | (false, true, _) => String::new(),
        (true, _, false) => format!(" --token-file {}", path.display()),
        (false, false, _) => format!(" --token-file {ADMIN_TOKEN}"),
    };
    writeln!(out, "\nFirst publish, in another terminal:\n")?;
    if let Some(key) = args.token_key_file.as_ref().filter(|_| !is_embedded && !args.dev) {
        let issue =
            format!("token issue --token-key-file {} --subject me --role admin", key.display());
        writeln!(out, "  {program} {issue} > {ADMIN_TOKEN}")?;
    }
    if !args.dev {
        writeln!(out, "  {program}{options}{token} tenant create default")?;
    }
    writeln!(out, "  {program}{options}{token} event-type create order.paid")?;
    let data = r#"--data '{"order": 1, "total": "12.50"}'"#;
    writeln!(out, "  {program}{options}{token} event publish --type order.paid {data}\n")
}
