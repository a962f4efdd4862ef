use super::*;
use turnbuckle_domain::{NodeRole, ResourceId};

fn caller(role: Role, subject: &str, tenant: Option<&str>) -> Caller {
    let tenant = tenant.map(|tenant| ResourceId::new(tenant).unwrap());
    Caller { issuer: String::new(), subject: subject.to_owned(), role, tenant }
}

fn node(role: NodeRole, name: &str) -> NodeId {
    NodeId { role, name: ResourceId::new(name).unwrap() }
}

#[test]
fn the_subject_of_the_token_names_the_role_and_may_name_the_node() {
    let web = node(NodeRole::Delivery, "web-1");
    let account = "system:serviceaccount:turnbuckle:delivery";
    for subject in ["delivery", "delivery/web-1", account] {
        assert!(identify(&caller(Role::Node, subject, None), &web).is_ok(), "{subject}");
    }
    for subject in
        ["", "ingress", "delivery/", "delivery/web-2", "delivery/web-1/x", "web-1", "delivery:x"]
    {
        assert!(identify(&caller(Role::Node, subject, None), &web).is_err(), "{subject}");
    }
    let door = node(NodeRole::Ingress, "web-1");
    assert!(identify(&caller(Role::Node, "delivery/web-1", None), &door).is_err());
    assert!(identify(&caller(Role::Node, "ingress", None), &door).is_ok());
}

#[test]
fn no_other_role_and_no_tenant_makes_a_node() {
    let web = node(NodeRole::Delivery, "web-1");
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Node) {
        assert!(identify(&caller(role, "delivery", None), &web).is_err(), "{role:?}");
    }
    assert!(identify(&caller(Role::Node, "delivery", Some("acme")), &web).is_err());
}
