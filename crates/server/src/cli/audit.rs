//! `turnbuckle audit …`

use super::{
    common::{ListArgs, show_pages},
    global::Session,
    values::Span,
};
use anyhow::Context as _;
use data_encoding::HEXLOWER_PERMISSIVE;
use tonic::Status;
use turnbuckle_domain::{
    AuditEntry, AuditHead, AuditOutcome, ChainCheck, Clock as _, FieldChange, Revision,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::{
    SystemClock,
    grpc::{from_timestamp, timestamp},
};

/// Entries of one page: the most the server gives.
const PAGE: i32 = 1000;

/// What can be done with the record of configuration changes.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Lists changes and denied calls, newest first. -o json shows the changed fields.
    List(ListVerb),
    /// Writes all of them as JSON, one a line, newest first.
    Export(FilterArgs),
    /// Computes the chain of hashes anew over the whole record. Exit code 1 when it is broken.
    Verify(VerifyArgs),
}

/// Which changes.
#[derive(Clone, Debug, clap::Args)]
pub struct FilterArgs {
    /// Only changes of this resource and what is below it, such as endpoints/orders-hook.
    #[arg(long, value_name = "NAME")]
    pub resource: Option<String>,
    /// Only changes by this subject.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub subject: String,
    /// Only changes of the last while, such as 24h.
    #[arg(long, value_name = "DURATION")]
    pub since: Option<Span>,
    /// Only changes older than this.
    #[arg(long, value_name = "DURATION")]
    pub until: Option<Span>,
    /// Only calls that were denied.
    #[arg(long)]
    pub denied: bool,
    /// Whose record.
    #[command(flatten)]
    pub trail: Trail,
}

/// Whose record.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Trail {
    /// The platform's own record instead of the tenant's: tokens for every tenant, and calls denied to
    /// callers that are bound to none.
    #[arg(long)]
    pub platform: bool,
}

impl Trail {
    /// The parent of its entries.
    fn parent(self, tenant: &str) -> String {
        if self.platform { String::new() } else { tenant.to_owned() }
    }

    fn head(self, tenant: &str) -> String {
        if self.platform { "auditHead".to_owned() } else { format!("{tenant}/auditHead") }
    }

    fn shown(self, tenant: &str) -> &str {
        if self.platform { "the platform" } else { tenant }
    }
}

/// Options of `audit list`.
#[derive(Clone, Debug, clap::Args)]
pub struct ListVerb {
    /// Which ones.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Options of `audit verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct VerifyArgs {
    /// Count and hash that an earlier `audit verify` showed: the record must still hold them.
    #[arg(long, value_name = "COUNT:HASH", value_parser = parse_anchor)]
    pub anchor: Option<Anchor>,
    /// Whose record.
    #[command(flatten)]
    pub trail: Trail,
}

/// An entry that was noted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    count: i64,
    hash: [u8; 32],
}

fn parse_anchor(text: &str) -> Result<Anchor, String> {
    let parts = text.split_once(':').and_then(|(count, hash)| {
        let count = count.parse().ok().filter(|count| *count > 0)?;
        Some(Anchor { count, hash: parse_hash(hash)? })
    });
    parts.ok_or_else(|| "use COUNT:HASH as `turnbuckle audit verify` shows them".to_owned())
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

impl FilterArgs {
    fn request(&self, parent: &str) -> v1::ListAuditEventsRequest {
        let resource = self.resource.as_deref().map(|given| match given {
            full if full == parent || full.starts_with("tenants/") => full.to_owned(),
            short => format!("{parent}/{short}"),
        });
        let now = SystemClock.now();
        let ago = |span: Option<Span>| span.map(|span| timestamp(now - span.0));
        v1::ListAuditEventsRequest {
            parent: self.trail.parent(parent),
            resource: resource.unwrap_or_default(),
            subject: self.subject.clone(),
            start_time: ago(self.since),
            end_time: ago(self.until),
            outcome: match self.denied {
                true => v1::AuditOutcome::Denied.into(),
                false => v1::AuditOutcome::Unspecified.into(),
            },
            ..Default::default()
        }
    }
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    match verb {
        Verb::List(args) => list(args, session).await,
        Verb::Export(filter) => {
            let request = filter.request(&session.parent);
            let mut pages = Pages::new(session, request);
            while let Some(events) = pages.next().await? {
                for event in events {
                    session.output.line(&event)?;
                }
            }
            Ok(())
        }
        Verb::Verify(args) => verify(args, session).await,
    }
}

async fn list(args: ListVerb, session: &mut Session) -> anyhow::Result<()> {
    let mut audit = session.client.audit();
    let request = args.filter.request(&session.parent);
    show_pages(&mut session.output, args.list.limit, async |page_size, page_token| {
        let request = v1::ListAuditEventsRequest { page_size, page_token, ..request.clone() };
        let page = audit.list_audit_events(request).await?.into_inner();
        Ok((page.audit_events, page.next_page_token))
    })
    .await
}

async fn verify(args: VerifyArgs, session: &mut Session) -> anyhow::Result<()> {
    let tenant = session.parent.clone();
    let parent = args.trail.shown(&tenant);
    let request = v1::GetAuditHeadRequest { name: args.trail.head(&tenant) };
    let head = session.client.audit().get_audit_head(request).await?.into_inner();
    let Some(newest) = domain_head(&head)? else {
        if let Some(anchor) = args.anchor {
            anyhow::bail!(
                "the audit record of {parent} is empty, but had {} entries",
                anchor.count
            );
        }
        return session.output.note(&format!("the audit record of {parent} is empty"));
    };
    let mut check = ChainCheck::new(newest);
    if let Some(anchor) = args.anchor {
        check = check.with_anchor(anchor.count, anchor.hash);
    }
    let request =
        v1::ListAuditEventsRequest { parent: args.trail.parent(&tenant), ..Default::default() };
    let mut pages = Pages::new(session, request);
    while let Some(events) = pages.next().await? {
        for event in events {
            check.step(domain_entry(event)?);
        }
    }
    let entries =
        check.finish().with_context(|| format!("the audit record of {parent} is broken"))?;
    session.output.one(&head)?;
    session.output.note(&format!(
        "the audit record of {parent} is whole: {entries} entries. Keep {}:{} elsewhere, and give \
         it to --anchor next time",
        head.count, head.hash
    ))
}

/// All pages of a list, one after the other.
struct Pages {
    audit: v1::audit_client::AuditClient<turnbuckle_client::Transport>,
    request: Option<v1::ListAuditEventsRequest>,
}

impl Pages {
    fn new(session: &Session, mut request: v1::ListAuditEventsRequest) -> Self {
        request.page_size = PAGE;
        Self { audit: session.client.audit(), request: Some(request) }
    }

    async fn next(&mut self) -> Result<Option<Vec<v1::AuditEvent>>, Status> {
        let Some(request) = self.request.take() else {
            return Ok(None);
        };
        let page = self.audit.list_audit_events(request.clone()).await?.into_inner();
        if !page.next_page_token.is_empty() {
            let page_token = page.next_page_token;
            self.request = Some(v1::ListAuditEventsRequest { page_token, ..request });
        }
        Ok(Some(page.audit_events))
    }
}

/// None before the first entry.
fn domain_head(head: &v1::AuditHead) -> anyhow::Result<Option<AuditHead>> {
    if head.count == 0 {
        return Ok(None);
    }
    let parse = || {
        let id = last_part(&head.audit_event).parse().ok()?;
        Some(AuditHead { id, sequence: head.count, hash: parse_hash(&head.hash)? })
    };
    parse().map(Some).ok_or_else(|| unreadable(&head.name))
}

/// The entry as its hash covers it.
fn domain_entry(event: v1::AuditEvent) -> anyhow::Result<AuditEntry> {
    let name = event.name.clone();
    let parse = || {
        let changes = event.changes.into_iter().map(|change| FieldChange {
            field: change.field,
            before: change.before,
            after: change.after,
        });
        Some(AuditEntry {
            id: last_part(&event.name).parse().ok()?,
            tenant: event.tenant_uid.parse().ok()?,
            sequence: event.sequence,
            at: from_timestamp(event.time.as_ref()?)?,
            subject: event.subject,
            role: event.role,
            method: event.method,
            resource: event.resource,
            request_id: event.request_id,
            reason: event.reason,
            revision: Revision(event.revision),
            outcome: match v1::AuditOutcome::try_from(event.outcome).ok()? {
                v1::AuditOutcome::Applied => AuditOutcome::Applied,
                v1::AuditOutcome::Denied => AuditOutcome::Denied,
                v1::AuditOutcome::Unspecified => return None,
            },
            changes: changes.collect(),
            hash: parse_hash(&event.hash)?,
        })
    };
    parse().ok_or_else(|| unreadable(&name))
}

fn unreadable(name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{name} is not readable: it is broken, or the server is newer than this command"
    )
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use turnbuckle_domain::{chain_hash, verify_chain};

    #[derive(clap::Parser)]
    struct Root {
        #[command(subcommand)]
        verb: Verb,
    }

    fn event(sequence: i64) -> v1::AuditEvent {
        v1::AuditEvent {
            name: "tenants/acme/auditEvents/aud_00000000000000000000000000".into(),
            sequence,
            tenant_uid: "ten_00000000000000000000000000".into(),
            time: Some(prost_types::Timestamp { seconds: 1, nanos: 5_000 }),
            subject: "alice".into(),
            outcome: v1::AuditOutcome::Applied.into(),
            changes: vec![v1::AuditFieldChange {
                field: "labels.a".into(),
                before: None,
                after: Some(String::new()),
            }],
            hash: "00".repeat(32),
            ..Default::default()
        }
    }

    #[test]
    fn an_entry_from_the_wire_has_the_hash_it_was_stored_with() {
        let mut stored = domain_entry(event(1)).unwrap();
        stored.hash = chain_hash(None, &stored);
        let hash = HEXLOWER_PERMISSIVE.encode(&stored.hash);
        let sent = domain_entry(v1::AuditEvent { hash: hash.clone(), ..event(1) }).unwrap();
        let head =
            v1::AuditHead { audit_event: event(1).name, count: 1, hash, ..Default::default() };
        let head = domain_head(&head).unwrap().unwrap();
        assert_eq!(verify_chain(&head, [sent]), Ok(1));
        assert_eq!(domain_head(&v1::AuditHead::default()).unwrap(), None);
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_named() {
        let broken = v1::AuditEvent { hash: "xyz".into(), ..event(1) };
        let error = domain_entry(broken).unwrap_err().to_string();
        assert!(error.contains("auditEvents/aud_"), "{error}");
    }

    #[test]
    fn an_anchor_is_a_count_and_a_hash() {
        let hash = "ab".repeat(32);
        let anchor = parse_anchor(&format!("12:{hash}")).unwrap();
        assert_eq!(anchor, Anchor { count: 12, hash: [0xab; 32] });
        for bad in ["12", "0:ab", "-1:ab", "12:ab", ":", &format!("x:{hash}")] {
            assert!(parse_anchor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_resource_may_be_named_without_its_tenant() {
        let line = "x list --resource endpoints/orders --since 1h --subject bob";
        let Ok(Root { verb: Verb::List(args) }) = Root::try_parse_from(line.split(' ')) else {
            panic!("not a list")
        };
        let request = args.filter.request("tenants/acme");
        assert_eq!(request.resource, "tenants/acme/endpoints/orders");
        assert_eq!(request.subject, "bob");
        assert!(request.start_time.is_some() && request.end_time.is_none());
        let full = FilterArgs { resource: Some("tenants/acme".into()), ..args.filter };
        assert_eq!(full.request("tenants/acme").resource, "tenants/acme");
    }

    #[test]
    fn the_platforms_record_has_no_parent() {
        let line = "x list --platform --subject bob";
        let Ok(Root { verb: Verb::List(args) }) = Root::try_parse_from(line.split(' ')) else {
            panic!("not a list")
        };
        assert_eq!(args.filter.request("tenants/acme").parent, "");
        assert_eq!(args.filter.trail.head("tenants/acme"), "auditHead");
    }
}
