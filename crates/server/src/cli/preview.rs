//! `turnbuckle retry-policy preview …`

use super::{
    error::Usage,
    global::Session,
    names::Collection,
    output::Format,
    retry_policy::{Settings, given},
    values::Span,
};
use turnbuckle_proto::v1::{self, preview_retry_policy_request::Policy};

/// Options of `retry-policy preview`.
#[derive(Clone, Debug, clap::Args)]
pub struct PreviewArgs {
    /// A stored policy by name. Without one, the options below say the rules; without any, the
    /// built-in policy is shown.
    #[arg(conflicts_with_all = [
        "first_delay", "factor", "max_delay", "delays", "jitter", "max_attempts", "horizon",
        "max_retry_after", "retry_statuses",
    ])]
    pub name: Option<String>,
    /// The rules.
    #[command(flatten)]
    pub settings: Settings,
    /// How long each attempt takes until it fails, 0 to 30s [default: 0s].
    #[arg(long, value_name = "DURATION")]
    pub attempt_duration: Option<Span>,
}

pub(super) async fn run(args: PreviewArgs, session: &mut Session) -> anyhow::Result<()> {
    if session.output.format() == Format::Name {
        return Err(Usage("a preview has no names: use -o table, json or yaml".into()).into());
    }
    let request = request(session.parent.clone(), args)?;
    let answer = session.client.retry_policies().preview_retry_policy(request).await?.into_inner();
    session.output.many(&answer.attempts)
}

fn request(parent: String, args: PreviewArgs) -> Result<v1::PreviewRetryPolicyRequest, Usage> {
    let policy = match args.name {
        Some(name) => Policy::Name(Collection::RetryPolicies.name(&parent, &name)?),
        None => Policy::RetryPolicy(given(args.settings)),
    };
    let attempt_duration = args.attempt_duration.map(Span::to_proto);
    Ok(v1::PreviewRetryPolicyRequest { parent, policy: Some(policy), attempt_duration })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Root {
        #[command(flatten)]
        args: PreviewArgs,
    }

    fn parsed(line: &str) -> Result<v1::PreviewRetryPolicyRequest, clap::Error> {
        let root = Root::try_parse_from(line.split(' '))?;
        Ok(request("tenants/acme".to_owned(), root.args).unwrap())
    }

    #[test]
    fn a_policy_is_named_or_given_by_its_options() {
        let named = parsed("x quick --attempt-duration 2s").unwrap();
        assert_eq!(named.policy, Some(Policy::Name("tenants/acme/retryPolicies/quick".into())));
        assert_eq!(named.attempt_duration.unwrap().seconds, 2);
        let Some(Policy::RetryPolicy(policy)) = parsed("x --delays 5s,1m").unwrap().policy else {
            panic!("not given")
        };
        assert!(matches!(policy.backoff, Some(v1::retry_policy::Backoff::Delays(_))));
        assert!(parsed("x quick --jitter none").is_err());
        assert!(parsed("x").is_ok());
    }
}
