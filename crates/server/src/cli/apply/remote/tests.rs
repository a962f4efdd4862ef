use super::*;
use crate::cli::apply::manifest;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response as HttpResponse};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    collections::HashSet,
    convert::Infallible,
    sync::{Arc, Mutex},
};
use tokio::net::TcpListener;
use turnbuckle_client::ClientOptions;
use turnbuckle_proto::v1;

const UPDATE: &str = "/turnbuckle.v1.Endpoints/UpdateEndpoint";

/// A server that makes an endpoint, and whose first answer is lost on the way.
#[derive(Default)]
struct Lossy {
    made: Mutex<HashSet<String>>,
    calls: Mutex<u32>,
}

impl Lossy {
    /// The secret is shown to whoever made the endpoint, and to a repeat of that request.
    fn answer(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, Code> {
        if path != UPDATE {
            return Err(Code::Unimplemented);
        }
        let request = v1::UpdateEndpointRequest::decode(&body[5..]).unwrap();
        assert!(Uuid::parse_str(&request.request_id).is_ok(), "a request without an id");
        let (mut made, mut calls) = (self.made.lock().unwrap(), self.calls.lock().unwrap());
        let is_maker = made.is_empty() || made.contains(&request.request_id);
        made.insert(request.request_id);
        *calls += 1;
        if *calls == 1 {
            return Err(Code::Unavailable);
        }
        let signing_secret = if is_maker { "whsec_once".to_owned() } else { String::new() };
        Ok(v1::Endpoint { signing_secret, ..Default::default() }.encode_to_vec())
    }
}

fn response(
    answer: Result<Vec<u8>, Code>,
) -> HttpResponse<impl hyper::body::Body<Data = Bytes, Error = Infallible>> {
    let (body, code) = match answer {
        Ok(message) => {
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            ([&[0], &length[..], &message[..]].concat(), Code::Ok)
        }
        Err(code) => (Vec::new(), code),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(code as i32));
    let body = Full::new(Bytes::from(body)).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = HttpResponse::new(Box::pin(body));
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", grpc);
    response
}

async fn served(lossy: Arc<Lossy>) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let lossy = Arc::clone(&lossy);
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let lossy = Arc::clone(&lossy);
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    Ok::<_, Infallible>(response(lossy.answer(&path, &body)))
                }
            });
            let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
        }
    });
    Client::connect(ClientOptions::new(url)).await.unwrap()
}

#[tokio::test]
async fn the_secret_of_a_new_endpoint_outlives_a_lost_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, "kind: Endpoint\nname: shop\nhttp: {url: https://a.example.org/}\n")
        .unwrap();
    let files = [file.to_str().unwrap().to_owned()];
    let documents = manifest::read(&files, "tenants/default").unwrap();
    let lossy = Arc::new(Lossy::default());
    let mut remote = Remote::new(&served(Arc::clone(&lossy)).await).unwrap();
    let update = Update { exists: false, partial: false, validate_only: false };
    let made = remote.update(&documents[0], update).await.unwrap();
    assert_eq!(made.get("signingSecret"), Some(&Value::from("whsec_once")));
    assert_eq!((lossy.made.lock().unwrap().len(), *lossy.calls.lock().unwrap()), (1, 2));
    // Another application is another request.
    let again = remote.update(&documents[0], update).await.unwrap();
    assert_eq!(again.get("signingSecret"), None);
}

/// Every call that makes something and takes an id gets one; the others change nothing when repeated.
#[test]
fn whoever_makes_a_secret_takes_an_id() {
    let pool = DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS).unwrap();
    for (service, method) in [("Endpoints", "UpdateEndpoint"), ("Tenants", "CreateTenant")] {
        let service = pool.get_service_by_name(&format!("turnbuckle.v1.{service}")).unwrap();
        let method = service.methods().find(|it| it.name() == method).unwrap();
        assert!(method.input().get_field_by_json_name(REQUEST_ID).is_some());
    }
}
