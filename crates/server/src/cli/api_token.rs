//! `turnbuckle api-token …`

use super::{
    common::{DryRun, ListArgs, Mask, show_pages},
    error::Usage,
    global::Session,
    output::Format,
    values::{Span, parse_etag, parse_time},
};
use prost_types::Timestamp;
use turnbuckle_proto::v1;

/// Between a token's tenant and its id.
const COLLECTION: &str = "apiTokens";

/// What can be done with API tokens.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Makes a token and shows its secret, once. It can have no more rights than you.
    Create(CreateArgs),
    /// Shows one token, never its secret.
    Get(Target),
    /// Lists the tenant's tokens that are valid.
    List(ListVerb),
    /// Changes the description, or lets a token expire sooner.
    Update(UpdateArgs),
    /// Ends a token for good: within a second no server takes it any more.
    Revoke(RevokeArgs),
}

/// Whose token.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Owner {
    /// One that is valid in every tenant, instead of one of the tenant's own.
    #[arg(long)]
    pub every_tenant: bool,
}

/// The token a verb works on.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// Name, short (`ci`) or full (`tenants/acme/apiTokens/ci`, `apiTokens/ci` for every tenant).
    pub name: String,
    /// Whose.
    #[command(flatten)]
    pub owner: Owner,
}

/// Options of `api-token create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new token [default: the server makes one].
    #[arg(default_value = "", hide_default_value = true)]
    pub id: String,
    /// What it may do: admin, operator, publisher, consumer, viewer, auditor or node.
    #[arg(long)]
    pub role: String,
    /// What it is for, for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub description: String,
    /// How long it is valid, 1m to 400d [default: 90d].
    #[arg(long, value_name = "DURATION", conflicts_with = "expires")]
    pub ttl: Option<Span>,
    /// When it expires, such as 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub expires: Option<Timestamp>,
    /// Whose.
    #[command(flatten)]
    pub owner: Owner,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `api-token list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListVerb {
    /// Also those that are expired or revoked.
    #[arg(long)]
    pub all: bool,
    /// Whose.
    #[command(flatten)]
    pub owner: Owner,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `api-token update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: Target,
    /// What it is for, for people.
    #[arg(long)]
    pub description: Option<String>,
    /// When it expires, sooner than before, such as 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub expires: Option<Timestamp>,
    /// Fail unless the token still has this etag.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = parse_etag)]
    pub etag: String,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `api-token revoke`.
#[derive(Clone, Debug, clap::Args)]
pub struct RevokeArgs {
    /// Which one.
    #[command(flatten)]
    pub target: Target,
    /// Why, for the record.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
    /// Fail unless the token still has this etag.
    #[arg(long, default_value = "", hide_default_value = true, value_parser = parse_etag)]
    pub etag: String,
}

impl Owner {
    fn parent(self, tenant: &str) -> String {
        if self.every_tenant { String::new() } else { tenant.to_owned() }
    }
}

impl Target {
    fn full(&self, tenant: &str) -> Result<String, Usage> {
        let parts: Vec<&str> = self.name.split('/').collect();
        match (parts.as_slice(), self.owner.every_tenant) {
            ([id], true) if !id.is_empty() => Ok(format!("{COLLECTION}/{id}")),
            ([id], false) if !id.is_empty() => Ok(format!("{tenant}/{COLLECTION}/{id}")),
            ([COLLECTION, id], _) if !id.is_empty() => Ok(self.name.clone()),
            (["tenants", owner, COLLECTION, id], false) if !owner.is_empty() && !id.is_empty() => {
                Ok(self.name.clone())
            }
            _ => Err(Usage(format!(
                "{:?} is no API token; use its id, tenants/TENANT/{COLLECTION}/ID, or \
                 {COLLECTION}/ID for one of every tenant",
                self.name
            ))),
        }
    }
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut tokens = session.client.api_tokens();
    let tenant = session.parent.clone();
    match verb {
        Verb::Create(args) => {
            let dry_run = args.dry.dry_run;
            let token = session.client.create_api_token(create(&tenant, args)).await?;
            session.output.one(&token)?;
            session.output.note_dry_run(dry_run)?;
            match dry_run {
                true => Ok(()),
                false => note_secret(session, &token),
            }
        }
        Verb::List(args) => list(args, session).await,
        Verb::Get(target) => {
            let request = v1::GetApiTokenRequest { name: target.full(&tenant)? };
            session.output.one(tokens.get_api_token(request).await?.get_ref())
        }
        Verb::Update(args) => {
            let dry_run = args.dry.dry_run;
            let token = tokens.update_api_token(update(&tenant, args)?).await?;
            session.output.one(token.get_ref())?;
            session.output.note_dry_run(dry_run)
        }
        Verb::Revoke(args) => {
            let name = args.target.full(&tenant)?;
            let request = v1::RevokeApiTokenRequest { name, etag: args.etag, reason: args.reason };
            session.output.one(tokens.revoke_api_token(request).await?.get_ref())
        }
    }
}

async fn list(args: ListVerb, session: &mut Session) -> anyhow::Result<()> {
    let mut tokens = session.client.api_tokens();
    let parent = args.owner.parent(&session.parent);
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let request = v1::ListApiTokensRequest {
            parent: parent.clone(),
            page_size,
            page_token,
            show_ended: args.all,
        };
        let page = tokens.list_api_tokens(request).await?.into_inner();
        Ok((page.api_tokens, page.next_page_token))
    })
    .await
}

fn create(tenant: &str, args: CreateArgs) -> v1::CreateApiTokenRequest {
    let token = v1::ApiToken {
        description: args.description,
        role: args.role,
        expire_time: args.expires,
        ttl: args.ttl.map(Span::to_proto),
        ..Default::default()
    };
    v1::CreateApiTokenRequest {
        parent: args.owner.parent(tenant),
        api_token_id: args.id,
        api_token: Some(token),
        every_tenant: args.owner.every_tenant,
        validate_only: args.dry.dry_run,
        ..Default::default()
    }
}

fn update(tenant: &str, args: UpdateArgs) -> anyhow::Result<v1::UpdateApiTokenRequest> {
    let mut mask = Mask::default();
    let token = v1::ApiToken {
        name: args.target.full(tenant)?,
        etag: args.etag,
        description: mask.take("description", args.description),
        expire_time: mask.take("expire_time", args.expires.map(Some)),
        ..Default::default()
    };
    Ok(v1::UpdateApiTokenRequest {
        api_token: Some(token),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
    })
}

/// A token is worth nothing when nobody wrote it down.
fn note_secret(session: &mut Session, token: &v1::ApiToken) -> anyhow::Result<()> {
    match (token.secret.is_empty(), session.output.format()) {
        // The first answer was lost, and this is that of a repeat.
        (true, _) => session.output.note(&format!(
            "note: the answer with the secret was lost on its way, and the secret cannot be read \
             again; revoke {} and make another token",
            token.name
        )),
        (false, Format::Name) => session.output.note(&format!(
            "note: -o name does not show the secret, and it cannot be read again; revoke {} and \
             make another token",
            token.name
        )),
        (false, _) => session.output.note_secret(&token.secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Root {
        #[command(subcommand)]
        verb: Verb,
    }

    fn verb(line: &str) -> Verb {
        Root::try_parse_from(line.split(' ')).unwrap().verb
    }

    #[test]
    fn names_are_short_or_full_and_tell_whose_token_it_is() {
        for (given, every_tenant, full) in [
            ("ci", false, Some("tenants/acme/apiTokens/ci")),
            ("tenants/b/apiTokens/ci", false, Some("tenants/b/apiTokens/ci")),
            ("apiTokens/ci", false, Some("apiTokens/ci")),
            ("ci", true, Some("apiTokens/ci")),
            ("tenants/b/apiTokens/ci", true, None),
            ("tenants/b/endpoints/ci", false, None),
            ("", false, None),
            ("apiTokens/", true, None),
        ] {
            let target = Target { name: given.to_owned(), owner: Owner { every_tenant } };
            assert_eq!(target.full("tenants/acme").ok().as_deref(), full, "{given}");
        }
    }

    #[test]
    fn a_new_token_is_the_tenants_unless_it_is_said_otherwise() {
        let Verb::Create(args) = verb("x create ci --role publisher --ttl 30d") else {
            panic!("not a creation")
        };
        let request = create("tenants/acme", args.clone());
        assert_eq!((request.parent.as_str(), request.every_tenant), ("tenants/acme", false));
        let ttl = request.api_token.unwrap().ttl.unwrap();
        assert_eq!(ttl.seconds, 30 * 24 * 3600);
        let request =
            create("tenants/acme", CreateArgs { owner: Owner { every_tenant: true }, ..args });
        assert_eq!((request.parent.as_str(), request.every_tenant), ("", true));
        assert!(Root::try_parse_from("x create ci".split(' ')).is_err());
    }
}
