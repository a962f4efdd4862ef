//! `turnbuckle tenant …`

use super::{
    common::{DryRun, GuardedTarget, LabelChange, Labels, ListArgs, Mask, Target, show_pages},
    global::Session,
    names,
};
use turnbuckle_proto::v1;

/// What can be done with tenants.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates a tenant.
    Create(CreateArgs),
    /// Shows one tenant.
    Get(Target),
    /// Lists the tenants you may see.
    List(ListArgs),
    /// Changes a tenant.
    Update(UpdateArgs),
    /// Deletes a tenant that has no endpoints left.
    Delete(GuardedTarget),
}

/// Options of `tenant create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new tenant: a-z, 0-9 and -, starting with a letter.
    pub id: String,
    /// Name for people.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub display_name: String,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `tenant update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// Name for people.
    #[arg(long)]
    pub display_name: Option<String>,
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let dry_run = match &verb {
        Verb::Create(args) => args.dry.dry_run,
        Verb::Update(args) => args.dry.dry_run,
        _ => false,
    };
    let mut tenants = session.client.tenants();
    let tenant = match verb {
        Verb::Create(args) => {
            let tenant = v1::Tenant {
                display_name: args.display_name,
                labels: args.labels.map(),
                ..Default::default()
            };
            let request = v1::CreateTenantRequest {
                tenant_id: args.id,
                tenant: Some(tenant),
                validate_only: args.dry.dry_run,
                ..Default::default()
            };
            session.client.create_tenant(request).await?
        }
        Verb::Get(target) => {
            let name = names::tenant(&target.name)?;
            tenants.get_tenant(v1::GetTenantRequest { name }).await?.into_inner()
        }
        Verb::Update(args) => tenants.update_tenant(update(args)?).await?.into_inner(),
        Verb::List(args) => {
            return show_pages(&mut session.output, args.limit, async |page_size, page_token| {
                let request = v1::ListTenantsRequest { page_size, page_token };
                let page = tenants.list_tenants(request).await?.into_inner();
                Ok((page.tenants, page.next_page_token))
            })
            .await;
        }
        Verb::Delete(target) => {
            let name = names::tenant(&target.name)?;
            let request = v1::DeleteTenantRequest { name: name.clone(), etag: target.etag };
            tenants.delete_tenant(request).await?;
            return session.output.removed(&name);
        }
    };
    session.output.one(&tenant)?;
    session.output.note_dry_run(dry_run)
}

fn update(args: UpdateArgs) -> anyhow::Result<v1::UpdateTenantRequest> {
    let mut mask = Mask::default();
    let tenant = v1::Tenant {
        name: names::tenant(&args.target.name)?,
        etag: args.target.etag,
        display_name: mask.take("display_name", args.display_name),
        labels: mask.labels(args.labels),
        ..Default::default()
    };
    Ok(v1::UpdateTenantRequest {
        tenant: Some(tenant),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
    })
}
