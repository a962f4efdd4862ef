//! `turnbuckle retry-policy …`

use super::{
    common::{
        CreateMode, DryRun, GuardedTarget, LabelChange, Labels, ListArgs, Mask, Target, everything,
        show_pages, upsert_name,
    },
    deleted::{FindArgs, FindTarget, UndeleteArgs},
    error::Usage,
    global::Session,
    names::Collection,
    preview::{self, PreviewArgs},
    values::Span,
};
use turnbuckle_proto::v1::{self, retry_policy::Backoff};

/// What can be done with retry policies.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates a retry policy.
    Create(CreateArgs),
    /// Shows one retry policy.
    Get(FindTarget),
    /// Lists the tenant's retry policies.
    List(FindArgs),
    /// Lists what a retry policy is and was, the newest version first.
    Versions(VersionsArgs),
    /// Changes a retry policy. It applies to deliveries not yet finished.
    Update(UpdateArgs),
    /// Deletes a retry policy that no endpoint uses. It can be undeleted for 30 days.
    Delete(GuardedTarget),
    /// Brings a deleted retry policy back.
    Undelete(UndeleteArgs),
    /// Shows when a delivery that keeps failing would be tried.
    Preview(PreviewArgs),
}

/// How delays are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Jitter {
    /// The delay as it is.
    None,
    /// Half of the delay plus a random part of the other half.
    Equal,
    /// A random part of the delay.
    Full,
}

impl Jitter {
    fn to_proto(self) -> i32 {
        let jitter = match self {
            Self::None => v1::Jitter::None,
            Self::Equal => v1::Jitter::Equal,
            Self::Full => v1::Jitter::Full,
        };
        jitter.into()
    }
}

/// Options that `retry-policy create` and `retry-policy update` share.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Exponential: delay after the first attempt.
    #[arg(long, value_name = "DURATION", requires_all = ["factor", "max_delay"])]
    pub first_delay: Option<Span>,
    /// Exponential: growth per attempt, 1 to 10.
    #[arg(long, requires = "first_delay")]
    pub factor: Option<f64>,
    /// Exponential: longest delay.
    #[arg(long, value_name = "DURATION", requires = "first_delay")]
    pub max_delay: Option<Span>,
    /// List: delays one by one, such as 5s,5m,30m,2h; the last one repeats.
    #[arg(
        long,
        value_name = "DURATIONS",
        value_delimiter = ',',
        conflicts_with_all = ["first_delay", "factor", "max_delay"]
    )]
    pub delays: Vec<Span>,
    /// How delays are spread.
    #[arg(long, value_enum)]
    pub jitter: Option<Jitter>,
    /// Attempts in all, the first one counted, 1 to 100.
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<i32>,
    /// No attempt starts later than this after the event was accepted, 1s to 30d.
    #[arg(long, value_name = "DURATION")]
    pub horizon: Option<Span>,
    /// Longest wait a receiver can ask for with Retry-After; 0 ignores it.
    #[arg(long, value_name = "DURATION")]
    pub max_retry_after: Option<Span>,
    /// Other 4xx answers that are retried, such as 404,409.
    #[arg(long = "retry-status", value_name = "CODES", value_delimiter = ',')]
    pub retry_statuses: Vec<i32>,
}

/// Options of `retry-policy create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new policy. The server makes one when it is missing.
    #[arg(default_value = "", hide_default_value = true)]
    pub id: String,
    /// The rules.
    #[command(flatten)]
    pub settings: Settings,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// What if it exists.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `retry-policy versions`.
#[derive(Clone, Debug, clap::Args)]
pub struct VersionsArgs {
    /// Which one.
    #[command(flatten)]
    pub target: Target,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `retry-policy update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// The rules.
    #[command(flatten)]
    pub settings: Settings,
    /// Retries no answers but the usual ones.
    #[arg(long, conflicts_with = "retry_statuses")]
    pub clear_retry_statuses: bool,
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let dry_run = match &verb {
        Verb::Create(args) => args.mode.dry.dry_run,
        Verb::Update(args) => args.dry.dry_run,
        Verb::Undelete(args) => args.dry.dry_run,
        _ => false,
    };
    let mut policies = session.client.retry_policies();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::RetryPolicies.name(&parent, given);
    let policy = match verb {
        Verb::Create(args) if args.mode.upsert => {
            let request = upsert(create(parent, args))?;
            policies.update_retry_policy(request).await?.into_inner()
        }
        Verb::Create(args) => session.client.create_retry_policy(create(parent, args)).await?,
        Verb::Get(target) => {
            let (name, show_deleted) = (full(&target.name)?, target.show_deleted);
            let request = v1::GetRetryPolicyRequest { name, show_deleted };
            policies.get_retry_policy(request).await?.into_inner()
        }
        Verb::Update(args) => {
            let name = full(&args.target.name)?;
            policies.update_retry_policy(update(name, args)?).await?.into_inner()
        }
        Verb::Undelete(args) => {
            let request = v1::UndeleteRetryPolicyRequest {
                name: full(&args.target.name)?,
                uid: args.uid,
                etag: args.target.etag,
                validate_only: args.dry.dry_run,
            };
            policies.undelete_retry_policy(request).await?.into_inner()
        }
        Verb::Preview(args) => return preview::run(args, session).await,
        Verb::List(args) => return list(args, session).await,
        Verb::Versions(args) => {
            let name = full(&args.target.name)?;
            return versions(name, args.list.limit, session).await;
        }
        Verb::Delete(target) => {
            let name = full(&target.name)?;
            let request = v1::DeleteRetryPolicyRequest { name: name.clone(), etag: target.etag };
            policies.delete_retry_policy(request).await?;
            return session.output.removed(&name);
        }
    };
    session.output.one(&policy)?;
    session.output.note_dry_run(dry_run)
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, show_deleted) = (session.parent.clone(), args.show_deleted);
    let mut service = session.client.retry_policies();
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let request = v1::ListRetryPoliciesRequest { parent, page_size, page_token, show_deleted };
        let page = service.list_retry_policies(request).await?.into_inner();
        Ok((page.retry_policies, page.next_page_token))
    })
    .await
}

async fn versions(name: String, limit: u32, session: &mut Session) -> anyhow::Result<()> {
    let mut service = session.client.retry_policies();
    show_pages(&mut session.output, limit, async |page_size, page_token| {
        let name = name.clone();
        let request = v1::ListRetryPolicyVersionsRequest { name, page_size, page_token };
        let page = service.list_retry_policy_versions(request).await?.into_inner();
        Ok((page.versions, page.next_page_token))
    })
    .await
}

/// A policy that is given by its options alone.
pub(super) fn given(options: Settings) -> v1::RetryPolicy {
    settings(&mut Mask::default(), options, false)
}

fn create(parent: String, args: CreateArgs) -> v1::CreateRetryPolicyRequest {
    let mut policy = settings(&mut Mask::default(), args.settings, false);
    policy.labels = args.labels.map();
    v1::CreateRetryPolicyRequest {
        parent,
        retry_policy_id: args.id,
        retry_policy: Some(policy),
        validate_only: args.mode.dry.dry_run,
        ..Default::default()
    }
}

/// The same as an update of everything, which creates what is missing.
fn upsert(request: v1::CreateRetryPolicyRequest) -> Result<v1::UpdateRetryPolicyRequest, Usage> {
    let v1::CreateRetryPolicyRequest {
        parent, retry_policy_id, retry_policy, validate_only, ..
    } = request;
    let name = upsert_name(Collection::RetryPolicies, &parent, &retry_policy_id)?;
    Ok(v1::UpdateRetryPolicyRequest {
        retry_policy: retry_policy.map(|retry_policy| v1::RetryPolicy { name, ..retry_policy }),
        update_mask: everything(),
        allow_missing: true,
        validate_only,
    })
}

fn update(name: String, args: UpdateArgs) -> anyhow::Result<v1::UpdateRetryPolicyRequest> {
    let mut mask = Mask::default();
    let mut policy = settings(&mut mask, args.settings, args.clear_retry_statuses);
    policy.name = name;
    policy.etag = args.target.etag;
    policy.labels = mask.labels(args.labels);
    Ok(v1::UpdateRetryPolicyRequest {
        retry_policy: Some(policy),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
        ..Default::default()
    })
}

fn settings(mask: &mut Mask, settings: Settings, clear_statuses: bool) -> v1::RetryPolicy {
    let statuses =
        (clear_statuses || !settings.retry_statuses.is_empty()).then_some(settings.retry_statuses);
    let exponential = settings.first_delay.map(|first| {
        Backoff::Exponential(v1::ExponentialBackoff {
            first_delay: Some(first.to_proto()),
            factor: settings.factor.unwrap_or_default(),
            max_delay: settings.max_delay.map(Span::to_proto),
        })
    });
    let list = (!settings.delays.is_empty()).then(|| {
        let delays = settings.delays.into_iter().map(Span::to_proto).collect();
        Backoff::Delays(v1::DelayList { delays })
    });
    let backoff = match (exponential, list) {
        (Some(exponential), _) => mask.take("exponential", Some(Some(exponential))),
        (None, Some(list)) => mask.take("delays", Some(Some(list))),
        (None, None) => None,
    };
    let span = |span: Option<Span>| span.map(|span| Some(span.to_proto()));
    v1::RetryPolicy {
        backoff,
        jitter: mask.take("jitter", settings.jitter.map(Jitter::to_proto)),
        max_attempts: mask.take("max_attempts", settings.max_attempts),
        horizon: mask.take("horizon", span(settings.horizon)),
        max_retry_after: mask.take("max_retry_after", span(settings.max_retry_after)),
        retry_statuses: mask.take("retry_statuses", statuses),
        ..Default::default()
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

    fn parsed(line: &str) -> Result<Verb, clap::Error> {
        Root::try_parse_from(line.split(' ')).map(|root| root.verb)
    }

    #[test]
    fn an_exponential_policy_takes_its_three_numbers_together() {
        let line = "x create quick --first-delay 300ms --factor 2 --max-delay 2s --max-attempts 6";
        let Ok(Verb::Create(args)) = parsed(line) else { panic!("not a create") };
        let policy = create("tenants/acme".into(), args).retry_policy.unwrap();
        let Some(Backoff::Exponential(backoff)) = policy.backoff else { panic!("not exponential") };
        assert_eq!(backoff.first_delay.unwrap().nanos, 300_000_000);
        assert_eq!(policy.max_attempts, 6);
        assert!(parsed("x create quick --first-delay 1s").is_err());
    }

    #[test]
    fn a_list_of_delays_excludes_the_exponential_options() {
        let Ok(Verb::Update(args)) = parsed("x update quick --delays 5s,5m,2h") else {
            panic!("not an update")
        };
        let request = update("tenants/acme/retryPolicies/quick".into(), args).unwrap();
        assert_eq!(request.update_mask.unwrap().paths, ["delays"]);
        let line = "x create q --delays 5s --first-delay 1s --factor 2 --max-delay 9s";
        assert!(parsed(line).is_err());
    }
}
