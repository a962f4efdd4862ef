//! Commands that work on files and the database, without a server.

use crate::cli::{self, GlobalArgs, Span};
use anyhow::Context as _;
use std::{
    io::{self, Write as _},
    path::PathBuf,
};
use turnbuckle_domain::{Clock as _, ResourceId, Role};
use turnbuckle_runtime::{Keyring, SystemClock, auth::TokenKey};
use turnbuckle_store::Store;

/// Options of `turnbuckle migrate`.
#[derive(Clone, clap::Args)]
pub struct MigrateArgs {
    /// The database to bring up to date.
    #[arg(long, env = "TURNBUCKLE_DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
}

/// Verbs on key-encryption keys.
#[derive(Clone, clap::Subcommand)]
pub enum KeyringVerb {
    /// Make a keyring file with one fresh key. Never overwrites.
    Create {
        /// Where to write it; readable by its owner only.
        file: PathBuf,
    },
    /// Verbs that a server does.
    #[command(flatten)]
    Remote(cli::KeyringVerb),
}

/// Verbs on bearer tokens.
#[derive(Clone, clap::Subcommand)]
pub enum TokenVerb {
    /// Make the key that signs tokens. Never overwrites.
    CreateKey {
        /// Where to write it; readable by its owner only.
        file: PathBuf,
    },
    /// Print a token for a caller.
    Issue {
        /// The key that the server verifies with.
        #[arg(
            long,
            default_value = "turnbuckle-data/token.key",
            env = "TURNBUCKLE_TOKEN_KEY_FILE"
        )]
        token_key_file: PathBuf,
        /// Who it is for; shown in logs.
        #[arg(long)]
        subject: String,
        /// admin, operator, publisher, consumer, viewer, auditor or node.
        #[arg(long)]
        role: String,
        /// The one tenant it is bound to [default: every tenant].
        // Not named `tenant`: the global option of that name would fill it with its default.
        #[arg(long)]
        for_tenant: Option<String>,
        /// How long it is valid.
        #[arg(long, default_value = "24h")]
        ttl: Span,
    },
}

/// Brings a Postgres database to this program's schema.
///
/// # Errors
/// When the database does not answer or its schema is too new.
pub async fn migrate(args: MigrateArgs) -> anyhow::Result<()> {
    Store::migrate_postgres(&args.database_url).await?;
    writeln!(io::stderr(), "the database has this program's schema")?;
    Ok(())
}

/// Works on keyring files, and on what is sealed under their keys.
///
/// # Errors
/// When the file exists or cannot be written, or the server refuses.
pub async fn keyring(verb: KeyringVerb, global: &GlobalArgs) -> anyhow::Result<()> {
    let file = match verb {
        KeyringVerb::Create { file } => file,
        KeyringVerb::Remote(verb) => return cli::run_keyring(verb, global).await,
    };
    Keyring::create(&file)?;
    let path = file.display();
    writeln!(io::stderr(), "{path} made: back it up; without it, stored secrets cannot be read")?;
    Ok(())
}

/// Works on token keys and tokens.
///
/// # Errors
/// When a file cannot be read or written, or an option is malformed.
pub fn token(verb: TokenVerb) -> anyhow::Result<()> {
    match verb {
        TokenVerb::CreateKey { file } => {
            TokenKey::create(&file)?;
            writeln!(io::stderr(), "{} made", file.display())?;
        }
        TokenVerb::Issue { token_key_file, subject, role, for_tenant, ttl } => {
            let known = "admin, operator, publisher, consumer, viewer, auditor, node";
            let role = Role::parse(&role)
                .with_context(|| format!("--role {role:?} is unknown; use one of {known}"))?;
            let tenant = for_tenant.map(ResourceId::new).transpose().context("--for-tenant")?;
            let key = TokenKey::load(&token_key_file)?;
            let token = key.issue(&subject, role, tenant, ttl.into(), SystemClock.now())?;
            writeln!(io::stdout(), "{token}")?;
        }
    }
    Ok(())
}
