//! Tenants on the wire.

use super::{
    etag, finish,
    mask::{Fields, Mask},
    page, single,
    value::{self, WireMeta},
};
use crate::{
    names::TenantName,
    page::{Page, PageRequest},
    tenant::{CreateTenant, DeleteTenant, UpdateTenant},
};
use turnbuckle_domain::{Error, ResourceId, Tenant, Violations};
use turnbuckle_proto::v1;

/// What a list of tenants is a list of.
const SCOPE: &str = "tenants";

/// An id of a tenant has no `_`: it is used in host names.
fn tenant_id(text: String) -> Result<ResourceId, String> {
    if text.is_empty() {
        return Err("is required".to_owned());
    }
    if text.contains('_') {
        return Err("has an underscore; use a-z, 0-9 and -, starting with a letter".to_owned());
    }
    ResourceId::new(text).map_err(|error| error.to_string())
}

pub(crate) fn create(request: v1::CreateTenantRequest) -> Result<CreateTenant, Error> {
    let mut violations = Violations::new();
    let tenant = request.tenant.unwrap_or_default();
    let slug = violations.take("tenant_id", tenant_id(request.tenant_id));
    let display_name =
        violations.take("tenant.display_name", value::display_name(tenant.display_name));
    let labels = value::labels(&mut violations, "tenant.labels", tenant.labels);
    let command =
        || Some(CreateTenant { slug: slug?, display_name: display_name?, labels: labels? });
    finish(violations, command())
}

pub(crate) fn get(request: v1::GetTenantRequest) -> Result<TenantName, Error> {
    single("name", TenantName::parse(&request.name))
}

pub(crate) fn list(request: v1::ListTenantsRequest) -> Result<PageRequest, Error> {
    let mut violations = Violations::new();
    let page = page(&mut violations, SCOPE.to_owned(), request.page_size, &request.page_token);
    finish(violations, page)
}

pub(crate) fn update(request: v1::UpdateTenantRequest) -> Result<UpdateTenant, Error> {
    let mut violations = Violations::new();
    let Some(tenant) = request.tenant else {
        return Err(Error::invalid("tenant", "is required"));
    };
    let fields = Fields {
        changeable: &[
            ("display_name", !tenant.display_name.is_empty()),
            ("labels", !tenant.labels.is_empty()),
        ],
        output_only: &[],
        fixed: &[],
    };
    let mask = Mask::read(request.update_mask, &fields, &mut violations);
    let name = violations.take("tenant.name", TenantName::parse(&tenant.name));
    let etag = etag(&mut violations, "tenant.etag", &tenant.etag);
    let display_name = mask
        .has("display_name")
        .then(|| violations.take("tenant.display_name", value::display_name(tenant.display_name)))
        .flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, "tenant.labels", tenant.labels))
        .flatten();
    finish(violations, name.map(|name| UpdateTenant { name, etag, display_name, labels }))
}

pub(crate) fn delete(request: v1::DeleteTenantRequest) -> Result<DeleteTenant, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", TenantName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteTenant { name, etag }))
}

pub(crate) fn message(tenant: &Tenant) -> v1::Tenant {
    let meta = WireMeta::from(&tenant.meta);
    v1::Tenant {
        name: TenantName(tenant.slug.clone()).to_string(),
        uid: value::uid(&tenant.meta, tenant.id),
        display_name: tenant.display_name.clone(),
        labels: value::label_map(&tenant.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
    }
}

pub(crate) fn messages(page: &Page<Tenant>) -> v1::ListTenantsResponse {
    let (tenants, next_page_token) =
        super::page::messages(page, |tenant| tenant.slug.as_str(), message);
    v1::ListTenantsResponse { tenants, next_page_token }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::Revision;

    #[test]
    fn ids_of_tenants_are_required_and_have_no_underscore() {
        for bad in ["", "a_b", "A", "1a", "-a"] {
            let request = v1::CreateTenantRequest {
                tenant_id: bad.to_owned(),
                tenant: None,
                ..Default::default()
            };
            let error = create(request).unwrap_err().to_string();
            assert!(error.contains("tenant_id: "), "{bad}: {error}");
        }
        let request = v1::CreateTenantRequest {
            tenant_id: "acme-2".to_owned(),
            tenant: None,
            ..Default::default()
        };
        assert_eq!(create(request).unwrap().slug.as_str(), "acme-2");
    }

    #[test]
    fn all_violations_come_at_once() {
        let labels = [("bad key".to_owned(), String::new())].into();
        let tenant = v1::Tenant { display_name: "x".repeat(201), labels, ..Default::default() };
        let request = v1::CreateTenantRequest {
            tenant_id: "A".to_owned(),
            tenant: Some(tenant),
            ..Default::default()
        };
        let Err(Error::Invalid(list)) = create(request) else { panic!("accepted") };
        let fields: Vec<&str> = list.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["tenant_id", "tenant.display_name", "tenant.labels"]);
    }

    #[test]
    fn an_update_means_what_its_mask_says() {
        let request = |paths: &[&str]| v1::UpdateTenantRequest {
            tenant: Some(v1::Tenant {
                name: "tenants/acme".to_owned(),
                display_name: "Acme".to_owned(),
                etag: "\"3\"".to_owned(),
                ..Default::default()
            }),
            update_mask: Some(prost_types::FieldMask {
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            }),
            ..Default::default()
        };
        let set = update(request(&[])).unwrap();
        assert_eq!((set.display_name.as_deref(), set.labels.is_some()), (Some("Acme"), false));
        assert_eq!(set.etag, Some(Revision(3)));
        let labels = update(request(&["labels"])).unwrap();
        assert_eq!((labels.display_name, labels.labels.is_some()), (None, true));
        let all = update(request(&["*"])).unwrap();
        assert!(all.display_name.is_some() && all.labels.is_some());
    }
}
