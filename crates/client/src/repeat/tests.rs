use super::*;
use crate::{
    ClientOptions, RetryLimits,
    proto::{
        DeleteTenantRequest, GetTenantRequest, ListTenantsRequest, ListTenantsResponse,
        UpdateTenantRequest,
        tenants_server::{Tenants, TenantsServer},
    },
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tonic::{Code, Request, transport::Server};

/// Answers from a list, the last one being success, and keeps the request ids it saw.
#[derive(Clone, Default)]
struct Scripted {
    refusals: Arc<Mutex<Vec<Status>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

#[tonic::async_trait]
impl Tenants for Scripted {
    async fn create_tenant(
        &self,
        request: Request<CreateTenantRequest>,
    ) -> Result<Response<Tenant>, Status> {
        let request = request.into_inner();
        self.seen.lock().unwrap().push(request.request_id);
        match self.refusals.lock().unwrap().pop() {
            Some(refusal) => Err(refusal),
            None => Ok(Response::new(Tenant { name: request.tenant_id, ..Tenant::default() })),
        }
    }

    async fn get_tenant(&self, _: Request<GetTenantRequest>) -> Result<Response<Tenant>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_tenants(
        &self,
        _: Request<ListTenantsRequest>,
    ) -> Result<Response<ListTenantsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn update_tenant(
        &self,
        _: Request<UpdateTenantRequest>,
    ) -> Result<Response<Tenant>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_tenant(&self, _: Request<DeleteTenantRequest>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented(""))
    }
}

async fn client_of(service: Scripted) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(
        Server::builder().add_service(TenantsServer::new(service)).serve_with_incoming(incoming),
    );
    let retry = RetryLimits {
        first_delay: Duration::from_millis(2),
        max_delay: Duration::from_millis(4),
        ..RetryLimits::default()
    };
    Client::connect(ClientOptions { retry, ..ClientOptions::new(url) }).await.unwrap()
}

fn request(request_id: &str) -> CreateTenantRequest {
    let (tenant_id, request_id) = ("acme".to_owned(), request_id.to_owned());
    CreateTenantRequest { tenant_id, request_id, ..CreateTenantRequest::default() }
}

#[tokio::test]
async fn every_try_carries_the_same_made_up_id_and_every_call_its_own() {
    let service = Scripted::default();
    let passing = [Status::deadline_exceeded("second"), Status::unavailable("first")];
    service.refusals.lock().unwrap().extend(passing);
    let client = client_of(service.clone()).await;
    assert_eq!(client.create_tenant(request("")).await.unwrap().name, "acme");
    client.create_tenant(request("")).await.unwrap();
    let seen = service.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 4);
    assert!(Uuid::try_parse(&seen[0]).is_ok());
    assert!(seen[1] == seen[0] && seen[2] == seen[0] && seen[3] != seen[0]);
}

#[tokio::test]
async fn a_final_refusal_is_not_repeated_and_a_given_id_stays() {
    for refusal in [Status::aborted("etag"), Status::already_exists("taken")] {
        let service = Scripted::default();
        let code: Code = refusal.code();
        service.refusals.lock().unwrap().push(refusal);
        let client = client_of(service.clone()).await;
        let refused = client.create_tenant(request("mine")).await.unwrap_err();
        assert_eq!(refused.code(), code);
        assert_eq!(service.seen.lock().unwrap().as_slice(), ["mine"]);
    }
}
