//! Reflection and health: open to everyone, and telling nothing that needs a role.

use crate::server::Server;
use tonic::{Code, Request, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use turnbuckle_proto::v1::{ListTenantsRequest, tenants_client::TenantsClient};

async fn channel(server: &Server) -> Channel {
    let url = format!("http://{}", server.address);
    Channel::from_shared(url).unwrap().connect().await.unwrap()
}

async fn reflect(channel: Channel, question: MessageRequest) -> MessageResponse {
    let question = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = ServerReflectionClient::new(channel);
    let answers = client.server_reflection_info(tokio_stream::once(question)).await.unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap();
    answer.message_response.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_needs_no_token_and_shows_the_contract_only() {
    let server = Server::start(&[]).await.with_tenant().await;
    let channel = channel(&server).await;
    let services = reflect(channel.clone(), MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(services) = services else {
        unreachable!("{services:?}")
    };
    let names: Vec<String> = services.service.into_iter().map(|service| service.name).collect();
    for known in ["turnbuckle.v1.Endpoints", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|name| name == known), "{names:?}");
    }
    let symbol = MessageRequest::FileContainingSymbol("turnbuckle.v1.Tenants".into());
    let file = reflect(channel.clone(), symbol).await;
    let MessageResponse::FileDescriptorResponse(file) = file else { unreachable!("{file:?}") };
    let text = String::from_utf8_lossy(&file.file_descriptor_proto.concat()).into_owned();
    assert!(text.contains("CreateTenant"), "{text}");

    // The same connection without a token gets no further.
    let list = Request::new(ListTenantsRequest::default());
    let refused = TenantsClient::new(channel).list_tenants(list).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_needs_no_token_and_knows_no_tenants() {
    let server = Server::start(&[]).await.with_tenant().await;
    let mut client = HealthClient::new(channel(&server).await);
    let whole = HealthCheckRequest { service: String::new() };
    client.check(whole).await.unwrap();
    let tenant = HealthCheckRequest { service: "tenants/a".into() };
    assert_eq!(client.check(tenant).await.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}
