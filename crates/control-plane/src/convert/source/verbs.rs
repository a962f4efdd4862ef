//! Requests about a source as a whole.

use crate::{
    convert::{etag, finish, page, single, uid, value, with_deleted},
    kept::{Lookup, Undelete},
    names::{SourceName, TenantName},
    source::{ListSources, SourceVerb},
    source_state::DisableSource,
};
use turnbuckle_domain::{Error, SourceId, Violations};
use turnbuckle_proto::v1;

pub(crate) fn get(request: v1::GetSourceRequest) -> Result<Lookup<SourceName>, Error> {
    let name = single("name", SourceName::parse(&request.name))?;
    Ok(Lookup { name, show_deleted: request.show_deleted })
}

pub(crate) fn list(request: v1::ListSourcesRequest) -> Result<ListSources, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let show_deleted = request.show_deleted;
    let scope = format!("{}/sources{}", request.parent, with_deleted(show_deleted));
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListSources { tenant: parent?.0, page: page?, show_deleted });
    finish(violations, command())
}

fn verb(name: &str, sent_etag: &str) -> Result<SourceVerb, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SourceName::parse(name));
    let etag = etag(&mut violations, "etag", sent_etag);
    finish(violations, name.map(|name| SourceVerb { name, etag }))
}

pub(crate) fn delete(request: v1::DeleteSourceRequest) -> Result<SourceVerb, Error> {
    verb(&request.name, &request.etag)
}

pub(crate) fn enable(request: v1::EnableSourceRequest) -> Result<SourceVerb, Error> {
    verb(&request.name, &request.etag)
}

pub(crate) fn disable(request: v1::DisableSourceRequest) -> Result<DisableSource, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SourceName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    let reason = violations.take("reason", value::reason(request.reason));
    let command = || Some(DisableSource { name: name?, etag, reason: reason? });
    finish(violations, command())
}

pub(crate) fn undelete(
    request: v1::UndeleteSourceRequest,
) -> Result<Undelete<SourceName, SourceId>, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SourceName::parse(&request.name));
    let uid = uid(&mut violations, "uid", &request.uid);
    let etag = etag(&mut violations, "etag", &request.etag);
    let command = || Some(Undelete { name: name?, uid: uid?, etag });
    finish(violations, command())
}
