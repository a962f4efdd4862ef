use super::*;
use crate::{
    ClientOptions, TokenSource,
    proto::{
        BatchPublishEventsRequest, BatchPublishEventsResponse, GetEventRequest, ListEventsRequest,
        ListEventsResponse,
        events_server::{Events, EventsServer},
    },
};
use std::sync::{Arc, Mutex};
use tonic::{Request, Response, transport::Server};
use tonic_types::ErrorDetails;

fn with_retry_info(code: Code, delay: Duration) -> Status {
    Status::with_error_details(code, "later", ErrorDetails::with_retry_info(Some(delay)))
}

#[test]
fn only_passing_failures_are_repeated() {
    assert!(is_retryable(&Status::unavailable("")));
    assert!(is_retryable(&Status::aborted("")));
    assert!(is_retryable(&Status::deadline_exceeded("")));
    assert!(is_retryable(&with_retry_info(Code::ResourceExhausted, Duration::ZERO)));
    assert!(!is_retryable(&Status::resource_exhausted("quota")));
    assert!(!is_retryable(&Status::already_exists("anomaly")));
    assert!(!is_retryable(&Status::invalid_argument("")));
    assert!(!is_retryable(&Status::unknown("from the server")));
}

#[test]
fn waits_grow_within_their_bounds_and_end() {
    let limits = RetryLimits::default();
    let status = Status::unavailable("");
    let shortest = |tries| limits.wait_after(tries, &status, 0);
    let longest = |tries| limits.wait_after(tries, &status, u32::MAX);
    assert_eq!(shortest(1), Some(Duration::from_millis(100)));
    assert_eq!(longest(1), Some(Duration::from_millis(200)));
    assert_eq!(shortest(3), Some(Duration::from_millis(400)));
    assert_eq!(longest(5), None);
    let patient = RetryLimits { tries: u32::MAX, ..limits };
    assert_eq!(patient.wait_after(4_000_000, &status, u32::MAX), Some(limits.max_delay));
}

#[test]
fn the_server_s_wait_is_honoured_but_never_beyond_the_bound() {
    let limits = RetryLimits::default();
    let asked = with_retry_info(Code::Unavailable, Duration::from_secs(2));
    assert_eq!(limits.wait_after(1, &asked, 0), Some(Duration::from_secs(2)));
    let too_long = with_retry_info(Code::Unavailable, Duration::from_secs(60));
    assert_eq!(limits.wait_after(1, &too_long, 0), None);
}

/// Answers from a list, the last one being success, and keeps the ids and tokens it saw.
#[derive(Clone, Default)]
struct Scripted {
    refusals: Arc<Mutex<Vec<Status>>>,
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

#[tonic::async_trait]
impl Events for Scripted {
    async fn publish_event(
        &self,
        request: Request<PublishEventRequest>,
    ) -> Result<Response<PublishEventResponse>, Status> {
        let token = request.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
        let event_id = request.into_inner().event.unwrap().event_id;
        self.seen.lock().unwrap().push((event_id.clone(), token));
        match self.refusals.lock().unwrap().pop() {
            Some(refusal) => Err(refusal),
            None => Ok(Response::new(PublishEventResponse { event_id, ..Default::default() })),
        }
    }

    async fn batch_publish_events(
        &self,
        _: Request<BatchPublishEventsRequest>,
    ) -> Result<Response<BatchPublishEventsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_event(&self, _: Request<GetEventRequest>) -> Result<Response<Event>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_events(
        &self,
        _: Request<ListEventsRequest>,
    ) -> Result<Response<ListEventsResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

async fn client_of(service: Scripted) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(
        Server::builder().add_service(EventsServer::new(service)).serve_with_incoming(incoming),
    );
    let retry = RetryLimits {
        first_delay: Duration::from_millis(2),
        max_delay: Duration::from_millis(4),
        ..RetryLimits::default()
    };
    let token = Some(TokenSource::Text("t".into()));
    Client::connect(ClientOptions { token, retry, ..ClientOptions::new(url) }).await.unwrap()
}

#[tokio::test]
async fn every_try_carries_the_same_made_up_event_id_and_the_token() {
    let service = Scripted::default();
    service
        .refusals
        .lock()
        .unwrap()
        .extend([Status::aborted("second"), Status::unavailable("first")]);
    let client = client_of(service.clone()).await;
    let answer = client.publish("tenants/acme", Event::default()).await.unwrap();
    let seen = service.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3);
    assert!(!answer.event_id.is_empty());
    assert!(seen.iter().all(|(id, token)| *id == answer.event_id && token == "Bearer t"));
}

#[tokio::test]
async fn a_final_refusal_is_not_repeated_and_a_given_id_stays() {
    let service = Scripted::default();
    service.refusals.lock().unwrap().push(Status::already_exists("other content"));
    let client = client_of(service.clone()).await;
    let event = Event { event_id: "ord-1".into(), ..Event::default() };
    let refused = client.publish("tenants/acme", event).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert_eq!(service.seen.lock().unwrap().as_slice(), [("ord-1".into(), "Bearer t".into())]);
}
