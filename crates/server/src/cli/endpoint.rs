//! `turnbuckle endpoint …`

use super::{
    common::{
        CreateMode, DryRun, GuardedTarget, LabelChange, Labels, Mask, everything, read_secret,
        show_pages, upsert_name,
    },
    deleted::{FindArgs, FindTarget, UndeleteArgs},
    error::Usage,
    global::Session,
    names::Collection,
    values::{Span, parse_pair},
};
use turnbuckle_proto::v1;

/// What can be done with endpoints.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates an endpoint. The answer shows its signing secret, once.
    Create(CreateArgs),
    /// Shows one endpoint.
    Get(FindTarget),
    /// Lists the tenant's endpoints.
    List(FindArgs),
    /// Changes an endpoint. Deliveries that wait use the new values.
    Update(UpdateArgs),
    /// Deletes an endpoint with its subscriptions. Deliveries that wait are cancelled, and its keys sign
    /// nothing. It can be undeleted for 30 days.
    Delete(GuardedTarget),
    /// Brings a deleted endpoint back, with its keys and the subscriptions that went with it.
    Undelete(UndeleteArgs),
    /// Starts sending again.
    Enable(GuardedTarget),
    /// Stops sending. Deliveries that wait are cancelled, and later events do not match.
    Disable(DisableArgs),
}

/// How requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// webhook-id, webhook-timestamp, webhook-signature.
    StandardWebhooks,
    /// X-Webhook-Timestamp, X-Webhook-Signature: v1=hex.
    TimestampedHex,
    /// X-Hub-Signature: sha256=hex.
    HubSha256,
}

impl Profile {
    fn to_proto(self) -> i32 {
        let profile = match self {
            Self::StandardWebhooks => v1::SignatureProfile::StandardWebhooks,
            Self::TimestampedHex => v1::SignatureProfile::TimestampedHex,
            Self::HubSha256 => v1::SignatureProfile::HubSha256,
        };
        profile.into()
    }
}

/// Options that `endpoint create` and `endpoint update` share.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Name for people.
    #[arg(long)]
    pub display_name: Option<String>,
    /// How requests are signed.
    #[arg(long, value_enum)]
    pub signature_profile: Option<Profile>,
    /// Retry policy by name.
    #[arg(long, value_name = "NAME")]
    pub retry_policy: Option<String>,
    /// Most deliveries in flight at once, 1 to 64.
    #[arg(long, value_name = "N")]
    pub max_in_flight: Option<i32>,
    /// Time for connect, send and answer together, 1s to 30s.
    #[arg(long, value_name = "DURATION")]
    pub request_timeout: Option<Span>,
    /// Extra request header; repeat for more. An update replaces all headers before.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub headers: Vec<(String, String)>,
    /// First part of the Standard Webhooks header names, such as svix.
    #[arg(long, value_name = "PREFIX")]
    pub header_prefix: Option<String>,
    /// Of a pull endpoint.
    #[command(flatten)]
    pub pull: PullSettings,
}

/// Options of pull endpoints.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Pull endpoints")]
pub struct PullSettings {
    /// How long a consumer has for a delivery, 5s to 10m [default: 30s].
    #[arg(long, value_name = "DURATION", conflicts_with_all = OF_HTTP)]
    pub lease: Option<Span>,
    /// Most deliveries that one stream holds at once, 1 to 1000 [default: 100].
    #[arg(long, value_name = "N", conflicts_with_all = OF_HTTP)]
    pub max_outstanding: Option<i32>,
    /// Of deliveries with the same subject only the earliest is out at a time.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        conflicts_with_all = OF_HTTP
    )]
    pub ordered_by_subject: Option<bool>,
}

/// What pull endpoints have not.
const OF_HTTP: [&str; 6] =
    ["url", "signature_profile", "max_in_flight", "request_timeout", "headers", "header_prefix"];

/// Options of `endpoint create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Id of the new endpoint. The server makes one when it is missing.
    #[arg(default_value = "", hide_default_value = true)]
    pub id: String,
    /// Where deliveries are sent.
    #[arg(long, required_unless_present = "pull_from")]
    pub url: Option<String>,
    /// Makes a pull endpoint: consumers take its deliveries over gRPC, and nothing is signed.
    #[arg(long = "pull", id = "pull_from", conflicts_with_all = OF_HTTP)]
    pub pull: bool,
    /// Everything else.
    #[command(flatten)]
    pub settings: Settings,
    /// File with a signing secret to import (whsec_… or whsk_…), - for stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upsert", "pull_from"])]
    pub secret_file: Option<String>,
    /// Labels.
    #[command(flatten)]
    pub labels: Labels,
    /// What if it exists.
    #[command(flatten)]
    pub mode: CreateMode,
}

/// Options of `endpoint update`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpdateArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// Where deliveries are sent.
    #[arg(long)]
    pub url: Option<String>,
    /// Everything else.
    #[command(flatten)]
    pub settings: Settings,
    /// Removes all extra headers.
    #[arg(long, conflicts_with = "headers")]
    pub clear_headers: bool,
    /// Labels.
    #[command(flatten)]
    pub labels: LabelChange,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `endpoint disable`.
#[derive(Clone, Debug, clap::Args)]
pub struct DisableArgs {
    /// Which one.
    #[command(flatten)]
    pub target: GuardedTarget,
    /// Why, for whoever looks later.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub reason: String,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let dry_run = match &verb {
        Verb::Create(args) => args.mode.dry.dry_run,
        Verb::Update(args) => args.dry.dry_run,
        Verb::Undelete(args) => args.dry.dry_run,
        _ => false,
    };
    let mut endpoints = session.client.endpoints();
    let parent = session.parent.clone();
    let full = |given: &str| Collection::Endpoints.name(&parent, given);
    let endpoint = match verb {
        Verb::Create(args) if args.mode.upsert => {
            let request = upsert(create(parent, args)?)?;
            session.client.update_endpoint(request).await?
        }
        Verb::Create(args) => session.client.create_endpoint(create(parent, args)?).await?,
        Verb::Get(target) => {
            let (name, show_deleted) = (full(&target.name)?, target.show_deleted);
            let request = v1::GetEndpointRequest { name, show_deleted };
            endpoints.get_endpoint(request).await?.into_inner()
        }
        Verb::Update(args) => {
            let request = update(&parent, full(&args.target.name)?, args)?;
            endpoints.update_endpoint(request).await?.into_inner()
        }
        Verb::Enable(target) => {
            let (name, etag) = (full(&target.name)?, target.etag);
            endpoints.enable_endpoint(v1::EnableEndpointRequest { name, etag }).await?.into_inner()
        }
        Verb::Disable(args) => {
            let request = v1::DisableEndpointRequest {
                name: full(&args.target.name)?,
                etag: args.target.etag,
                reason: args.reason,
            };
            endpoints.disable_endpoint(request).await?.into_inner()
        }
        Verb::Undelete(args) => {
            let request = v1::UndeleteEndpointRequest {
                name: full(&args.target.name)?,
                uid: args.uid,
                etag: args.target.etag,
                validate_only: args.dry.dry_run,
            };
            endpoints.undelete_endpoint(request).await?.into_inner()
        }
        Verb::List(args) => return list(args, session).await,
        Verb::Delete(target) => {
            let name = full(&target.name)?;
            let request = v1::DeleteEndpointRequest { name: name.clone(), etag: target.etag };
            endpoints.delete_endpoint(request).await?;
            return session.output.removed(&name);
        }
    };
    session.output.one(&endpoint)?;
    session.output.note_dry_run(dry_run)?;
    session.output.note_secret(&endpoint.signing_secret)
}

async fn list(args: FindArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, show_deleted) = (session.parent.clone(), args.show_deleted);
    let mut service = session.client.endpoints();
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let parent = parent.clone();
        let request = v1::ListEndpointsRequest { parent, page_size, page_token, show_deleted };
        let page = service.list_endpoints(request).await?.into_inner();
        Ok((page.endpoints, page.next_page_token))
    })
    .await
}

fn create(parent: String, args: CreateArgs) -> anyhow::Result<v1::CreateEndpointRequest> {
    let mut mask = Mask::default();
    let mut endpoint = settings(&mut mask, &parent, args.url, args.settings, false)?;
    if args.pull && !matches!(endpoint.target, Some(v1::endpoint::Target::Pull(_))) {
        endpoint.target = Some(v1::endpoint::Target::Pull(v1::PullTarget::default()));
    }
    endpoint.labels = args.labels.map();
    Ok(v1::CreateEndpointRequest {
        parent,
        endpoint_id: args.id,
        endpoint: Some(endpoint),
        secret: read_secret(args.secret_file.as_deref())?,
        validate_only: args.mode.dry.dry_run,
        ..Default::default()
    })
}

/// The same as an update of everything, which creates what is missing.
fn upsert(request: v1::CreateEndpointRequest) -> Result<v1::UpdateEndpointRequest, Usage> {
    let v1::CreateEndpointRequest { parent, endpoint_id, endpoint, validate_only, .. } = request;
    let name = upsert_name(Collection::Endpoints, &parent, &endpoint_id)?;
    Ok(v1::UpdateEndpointRequest {
        endpoint: endpoint.map(|endpoint| v1::Endpoint { name, ..endpoint }),
        update_mask: everything(),
        allow_missing: true,
        validate_only,
        ..Default::default()
    })
}

fn update(
    parent: &str,
    name: String,
    args: UpdateArgs,
) -> anyhow::Result<v1::UpdateEndpointRequest> {
    let mut mask = Mask::default();
    let mut endpoint = settings(&mut mask, parent, args.url, args.settings, args.clear_headers)?;
    endpoint.name = name;
    endpoint.etag = args.target.etag;
    endpoint.labels = mask.labels(args.labels);
    Ok(v1::UpdateEndpointRequest {
        endpoint: Some(endpoint),
        update_mask: mask.finish()?,
        validate_only: args.dry.dry_run,
        ..Default::default()
    })
}

fn settings(
    mask: &mut Mask,
    parent: &str,
    url: Option<String>,
    settings: Settings,
    clear_headers: bool,
) -> anyhow::Result<v1::Endpoint> {
    let policy = settings
        .retry_policy
        .map(|given| match given.as_str() {
            // Back to the built-in policy.
            "" => Ok(given),
            _ => Collection::RetryPolicies.name(parent, &given),
        })
        .transpose()?;
    let target = match settings.pull.target(mask) {
        Some(pull) => v1::endpoint::Target::Pull(pull),
        None => {
            let timeout = settings.request_timeout.map(Span::to_proto);
            v1::endpoint::Target::Http(v1::HttpTarget {
                url: mask.take("http.url", url),
                timeout: mask.take("http.timeout", timeout.map(Some)),
                headers: mask.pairs("http.headers", settings.headers, clear_headers),
                header_prefix: mask.take("http.header_prefix", settings.header_prefix),
            })
        }
    };
    Ok(v1::Endpoint {
        display_name: mask.take("display_name", settings.display_name),
        target: Some(target),
        signature_profile: mask
            .take("signature_profile", settings.signature_profile.map(Profile::to_proto)),
        retry_policy: mask.take("retry_policy", policy),
        max_in_flight: mask.take("max_in_flight", settings.max_in_flight),
        ..Default::default()
    })
}

impl PullSettings {
    /// What is given for a pull endpoint, if anything is.
    fn target(&self, mask: &mut Mask) -> Option<v1::PullTarget> {
        if self.lease.is_none()
            && self.max_outstanding.is_none()
            && self.ordered_by_subject.is_none()
        {
            return None;
        }
        Some(v1::PullTarget {
            lease: mask.take("pull.lease", self.lease.map(|lease| Some(lease.to_proto()))),
            max_outstanding: mask.take("pull.max_outstanding", self.max_outstanding),
            ordered_by_subject: mask.take("pull.ordered_by_subject", self.ordered_by_subject),
        })
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

    fn parsed(line: &str) -> Verb {
        Root::try_parse_from(line.split(' ')).unwrap().verb
    }

    #[test]
    fn an_update_masks_exactly_what_was_given() {
        let Verb::Update(args) =
            parsed("x update orders --request-timeout 5s --retry-policy quick --clear-headers")
        else {
            panic!("not an update")
        };
        let name = "tenants/acme/endpoints/orders".to_owned();
        let request = update("tenants/acme", name, args).unwrap();
        assert_eq!(
            request.update_mask.unwrap().paths,
            ["http.timeout", "http.headers", "retry_policy"]
        );
        assert_eq!(request.endpoint.unwrap().retry_policy, "tenants/acme/retryPolicies/quick");
    }

    #[test]
    fn a_pull_endpoint_is_made_without_a_url_and_changed_by_its_own_options() {
        let Verb::Create(args) = parsed("x create jobs --pull --ordered-by-subject") else {
            panic!("not a create")
        };
        let endpoint = create("tenants/acme".into(), args).unwrap().endpoint.unwrap();
        let Some(v1::endpoint::Target::Pull(pull)) = endpoint.target else { panic!("no queue") };
        assert!(pull.ordered_by_subject && pull.lease.is_none());
        let Verb::Create(args) = parsed("x create jobs --pull") else { panic!("not a create") };
        let endpoint = create("tenants/acme".into(), args).unwrap().endpoint.unwrap();
        assert!(matches!(endpoint.target, Some(v1::endpoint::Target::Pull(_))));
        let Verb::Update(args) = parsed("x update jobs --lease 1m --ordered-by-subject=false")
        else {
            panic!("not an update")
        };
        let request = update("tenants/acme", "tenants/acme/endpoints/jobs".into(), args).unwrap();
        let paths = request.update_mask.unwrap().paths;
        assert_eq!(paths, ["pull.lease", "pull.ordered_by_subject"]);
        for wrong in ["x create jobs", "x create jobs --pull --url https://a.example"] {
            assert!(Root::try_parse_from(wrong.split(' ')).is_err(), "{wrong}");
        }
    }

    #[test]
    fn create_carries_url_headers_and_profile() {
        let Verb::Create(args) = parsed(
            "x create orders --url https://r.example/h --header a=b --signature-profile hub-sha256",
        ) else {
            panic!("not a create")
        };
        let request = create("tenants/acme".into(), args).unwrap();
        assert_eq!(request.endpoint_id, "orders");
        let endpoint = request.endpoint.unwrap();
        assert_eq!(endpoint.signature_profile(), v1::SignatureProfile::HubSha256);
        let Some(v1::endpoint::Target::Http(http)) = endpoint.target else { panic!("no target") };
        assert_eq!((http.url.as_str(), http.headers["a"].as_str()), ("https://r.example/h", "b"));
    }
}
