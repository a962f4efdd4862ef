//! Versions of retry policies on the wire.

use super::{finish, page, retry_policy::message};
use crate::{
    kept::Listed,
    names::RetryPolicyName,
    page::Page,
    retry_policy::{ListRetryPolicyVersions, RetryPolicyView},
};
use turnbuckle_domain::{Error, Violations};
use turnbuckle_proto::v1;

pub(crate) fn list(
    request: v1::ListRetryPolicyVersionsRequest,
) -> Result<ListRetryPolicyVersions, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", RetryPolicyName::parse(&request.name));
    let scope = format!("{}/versions", request.name);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListRetryPolicyVersions { name: name?, page: page? });
    finish(violations, command())
}

pub(crate) fn messages(
    page: &Page<Listed<RetryPolicyView>>,
) -> v1::ListRetryPolicyVersionsResponse {
    let (versions, next_page_token) =
        super::page::messages(page, |listed| listed.place.as_str(), |listed| message(&listed.row));
    v1::ListRetryPolicyVersionsResponse { versions, next_page_token }
}
