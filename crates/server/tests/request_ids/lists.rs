//! Lists with deleted resources, and pages that end before they are too large to send.

use crate::api::{ACME, Api, endpoint, refusal};
use std::collections::BTreeSet;
use tonic::Code;
use turnbuckle_client::proto as v1;

/// What a gRPC client reads unless told otherwise.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

async fn pages(api: &Api, page_size: i32, show_deleted: bool) -> Vec<Vec<v1::Endpoint>> {
    let mut pages = Vec::new();
    let mut page_token = String::new();
    loop {
        let parent = ACME.to_owned();
        let request = v1::ListEndpointsRequest { parent, page_size, page_token, show_deleted };
        let answer = api.client.endpoints().list_endpoints(request).await.unwrap().into_inner();
        assert!(prost::Message::encoded_len(&answer) < ANSWER_BYTES);
        pages.push(answer.endpoints);
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            return pages;
        }
    }
}

#[tokio::test]
async fn deleted_ones_are_listed_once_each_whatever_the_page_size() {
    let api = Api::start().await;
    for id in ["b", "a", "b", "b", "c"] {
        api.create(id).await;
        if id == "b" {
            api.delete(id).await;
        }
    }
    api.create("b").await;
    for page_size in [1, 2, 3, 100] {
        let all: Vec<_> = pages(&api, page_size, true).await.concat();
        let uids: BTreeSet<_> = all.iter().map(|endpoint| &endpoint.uid).collect();
        assert_eq!((all.len(), uids.len()), (6, 6), "{page_size}");
        let deleted = all.iter().filter(|endpoint| endpoint.delete_time.is_some()).count();
        assert_eq!(deleted, 3);
        assert_eq!(pages(&api, page_size, false).await.concat().len(), 3);
    }
}

#[tokio::test]
async fn a_token_of_one_list_does_not_open_the_other() {
    let api = Api::start().await;
    api.create("a").await;
    api.create("b").await;
    let request = |show_deleted, page_token| v1::ListEndpointsRequest {
        parent: ACME.to_owned(),
        page_size: 1,
        page_token,
        show_deleted,
    };
    let mut endpoints = api.client.endpoints();
    for show_deleted in [true, false] {
        let first = endpoints.list_endpoints(request(show_deleted, String::new())).await.unwrap();
        let token = first.into_inner().next_page_token;
        let crossed = endpoints.list_endpoints(request(!show_deleted, token)).await;
        assert_eq!(refusal(crossed).0, Code::InvalidArgument);
    }
}

#[tokio::test]
async fn pages_of_large_rows_fit_an_answer() {
    let api = Api::start().await;
    // Close to the largest endpoint there is: labels are what an answer shows in full.
    let labels = (0..64).map(|number| (format!("l{number:062}"), "v".repeat(63))).collect();
    let mut large = endpoint("");
    large.labels = labels;
    large.display_name = "ü".repeat(200);
    for number in 0..400 {
        let request = v1::CreateEndpointRequest {
            endpoint: Some(large.clone()),
            ..crate::api::endpoint_request(&format!("e{number}"), "")
        };
        api.client.create_endpoint(request).await.unwrap();
    }
    for show_deleted in [false, true] {
        let pages = pages(&api, 1000, show_deleted).await;
        assert!(pages.len() > 1, "{}", pages.len());
        assert_eq!(pages.concat().len(), 400);
    }
}
