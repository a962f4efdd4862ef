//! What must be true of every render, whatever the values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::render::{Rendered, name};

/// Kinds that run containers, and where their pod is.
const WORKLOADS: [(&str, &str); 3] =
    [("Deployment", "/spec/template"), ("Job", "/spec/template"), ("Pod", "")];

/// Everything that is not as it must be.
pub(super) fn complaints(rendered: &Rendered, external: &BTreeSet<String>) -> Vec<String> {
    let mut all = Vec::new();
    for (kind, place) in WORKLOADS {
        for workload in rendered.of(kind) {
            let Some(pod) = workload.pointer(place) else { continue };
            let found = [pod_faults(pod), reference_faults(rendered, pod, external)].concat();
            all.extend(found.into_iter().map(|text| format!("{kind} {}: {text}", name(workload))));
        }
    }
    all.extend(selector_faults(rendered));
    all.extend(target_faults(rendered));
    all.extend(backend_faults(rendered));
    all.extend(rendered.of("Secret").map(|secret| {
        format!(
            "Secret {}: the chart makes no secrets; a new render would replace them",
            name(secret)
        )
    }));
    all.extend(duplicate_names(rendered));
    all
}

/// The restricted profile of the pod security standards, and what we ask beyond it.
fn pod_faults(pod: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let spec = &pod["spec"];
    let mut expect = |is: bool, what: &str| {
        if !is {
            faults.push(what.to_owned());
        }
    };
    expect(spec["automountServiceAccountToken"] == false, "mounts the token of its account");
    expect(spec["securityContext"]["runAsNonRoot"] == true, "may run as root");
    expect(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "has no seccomp");
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        expect(spec[host].is_null(), "uses a namespace of its host");
    }
    for container in containers(spec) {
        let security = &container["securityContext"];
        expect(security["allowPrivilegeEscalation"] == false, "may gain privileges");
        expect(security["readOnlyRootFilesystem"] == true, "may write to its image");
        expect(security["capabilities"]["drop"] == serde_json::json!(["ALL"]), "has capabilities");
        expect(container["resources"]["limits"]["memory"].is_string(), "has no memory limit");
        expect(container["resources"]["requests"]["cpu"].is_string(), "asks for no CPU");
        expect(!container["image"].as_str().unwrap_or_default().ends_with(":latest"), "is latest");
    }
    faults
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let of = |field: &str| spec[field].as_array().into_iter().flatten();
    of("containers").chain(of("initContainers"))
}

/// Every Secret, ConfigMap and account that a pod names is in the render, or named by the values.
fn reference_faults(rendered: &Rendered, pod: &Value, external: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let has = |kind: &str, wanted: &str| {
        rendered.of(kind).any(|object| name(object) == wanted) || external.contains(wanted)
    };
    let mut look = |kind: &str, wanted: &Value| {
        if let Some(wanted) = wanted.as_str()
            && !has(kind, wanted)
        {
            faults.push(format!("{kind} {wanted} is nowhere"));
        }
    };
    let spec = &pod["spec"];
    look("ServiceAccount", &spec["serviceAccountName"]);
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        look("Secret", &volume["secret"]["secretName"]);
        look("ConfigMap", &volume["configMap"]["name"]);
    }
    for container in containers(spec) {
        for variable in container["env"].as_array().into_iter().flatten() {
            look("Secret", &variable["valueFrom"]["secretKeyRef"]["name"]);
            look("ConfigMap", &variable["valueFrom"]["configMapKeyRef"]["name"]);
        }
    }
    let volumes: BTreeSet<&str> = spec["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v["name"].as_str())
        .collect();
    for mount in containers(spec).flat_map(|c| c["volumeMounts"].as_array().into_iter().flatten()) {
        let wanted = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(wanted) {
            faults.push(format!("volume {wanted} is nowhere"));
        }
    }
    faults
}

/// Deployments select their own pods; Services, budgets and policies select pods that there are, and
/// Services send to ports that those open.
fn selector_faults(rendered: &Rendered) -> Vec<String> {
    let mut faults = Vec::new();
    for deployment in rendered.of("Deployment") {
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        if !selects(&deployment["spec"]["selector"]["matchLabels"], labels) {
            faults.push(format!("Deployment {}: does not select its pods", name(deployment)));
        }
    }
    for (kind, place) in [
        ("Service", "/spec/selector"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
    ] {
        for object in rendered.of(kind) {
            let selector = object.pointer(place).unwrap_or(&Value::Null);
            let pods = selected(rendered, selector);
            if pods.is_empty() {
                faults.push(format!("{kind} {}: selects no pod", name(object)));
            }
            if kind == "Service" {
                faults.extend(port_faults(object, &pods));
            }
        }
    }
    faults
}

/// Pods of Deployments and Jobs that have these labels.
fn selected<'a>(rendered: &'a Rendered, selector: &Value) -> Vec<&'a Value> {
    let pods = rendered.of("Deployment").chain(rendered.of("Job"));
    let pods = pods.map(|workload| &workload["spec"]["template"]);
    pods.filter(|pod| selects(selector, &pod["metadata"]["labels"])).collect()
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted: Option<&Map<String, Value>> = selector.as_object();
    wanted.is_some_and(|wanted| {
        !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

fn port_faults(service: &Value, pods: &[&Value]) -> Vec<String> {
    let open = |wanted: &str| {
        pods.iter().flat_map(|pod| containers(&pod["spec"])).any(|container| {
            let ports = container["ports"].as_array().into_iter().flatten();
            ports.filter_map(|port| port["name"].as_str()).any(|port| port == wanted)
        })
    };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let missing = ports.filter_map(|port| port["targetPort"].as_str()).filter(|port| !open(port));
    missing.map(|port| format!("Service {}: nobody opens {port}", name(service))).collect()
}

/// Scalers scale what there is.
fn target_faults(rendered: &Rendered) -> Vec<String> {
    let scalers = rendered.of("HorizontalPodAutoscaler").chain(rendered.of("ScaledObject"));
    let missing = scalers.filter(|scaler| {
        let wanted = &scaler["spec"]["scaleTargetRef"]["name"];
        !rendered.of("Deployment").any(|deployment| deployment["metadata"]["name"] == *wanted)
    });
    missing.map(|scaler| format!("{}: scales nothing", name(scaler))).collect()
}

/// Ingresses and routes lead to Services that there are, and to ports of theirs.
fn backend_faults(rendered: &Rendered) -> Vec<String> {
    let mut faults = Vec::new();
    let mut look = |from: &Value, service: &Value, port: &Value| {
        let is_there = rendered.of("Service").any(|object| {
            let ports = object["spec"]["ports"].as_array().into_iter().flatten();
            object["metadata"]["name"] == *service
                && ports.into_iter().any(|own| own["name"] == *port || own["port"] == *port)
        });
        if !is_there {
            faults.push(format!("{}: leads to {service} {port}, which is nowhere", name(from)));
        }
    };
    for ingress in rendered.of("Ingress") {
        let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
        for path in rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten()) {
            let service = &path["backend"]["service"];
            look(ingress, &service["name"], &service["port"]["name"]);
        }
    }
    for route in rendered.of("GRPCRoute").chain(rendered.of("HTTPRoute")) {
        let rules = route["spec"]["rules"].as_array().into_iter().flatten();
        for backend in rules.flat_map(|rule| rule["backendRefs"].as_array().into_iter().flatten()) {
            look(route, &backend["name"], &backend["port"]);
        }
    }
    faults
}

fn duplicate_names(rendered: &Rendered) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let objects = rendered.objects.iter();
    let again = objects
        .filter(|object| !seen.insert((object["kind"].as_str().unwrap_or_default(), name(object))));
    again.map(|object| format!("{} {} is there twice", object["kind"], name(object))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(objects: Vec<Value>) -> Rendered {
        Rendered { text: String::new(), objects }
    }

    #[test]
    fn an_open_pod_has_every_fault() {
        let pod = json!({"spec": {"hostNetwork": true, "containers": [{"image": "x:latest"}]}});
        assert_eq!(pod_faults(&pod).len(), 10);
    }

    #[test]
    fn a_secret_that_nobody_has_is_named() {
        let pod = json!({"spec": {"volumes": [{"name": "a", "secret": {"secretName": "lost"}}]}});
        let none = BTreeSet::new();
        let faults = reference_faults(&rendered(vec![]), &pod, &none);
        assert_eq!(faults, ["Secret lost is nowhere"]);
        let known = BTreeSet::from(["lost".to_owned()]);
        assert!(reference_faults(&rendered(vec![]), &pod, &known).is_empty());
    }

    #[test]
    fn a_service_without_pods_and_a_selector_of_everything_are_faults() {
        let service = json!({"kind": "Service", "metadata": {"name": "s"},
            "spec": {"selector": {"a": "b"}}});
        let faults = selector_faults(&rendered(vec![service]));
        assert_eq!(faults, ["Service s: selects no pod"]);
        assert!(!selects(&json!({}), &json!({"a": "b"})));
    }

    #[test]
    fn a_route_to_nowhere_is_a_fault() {
        let route = json!({"kind": "HTTPRoute", "metadata": {"name": "r"},
            "spec": {"rules": [{"backendRefs": [{"name": "s", "port": 1}]}]}});
        assert_eq!(backend_faults(&rendered(vec![route])).len(), 1);
    }
}
