//! A tenant with what most scenarios need, and short words for what they do.

use crate::{Server, eventually};
use anyhow::Context as _;
use bytes::Bytes;
use prost_types::Duration as ProtoDuration;
use std::time::Duration;
use tonic::Status;
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    Attempt, CreateEndpointRequest, CreateEventTypeRequest, CreateRetryPolicyRequest,
    CreateSubscriptionRequest, CreateTenantRequest, DelayList, Delivery, DeliveryState,
    DisableEndpointRequest, EnableEndpointRequest, Endpoint, Event, GetKeyRingRequest, HttpTarget,
    Jitter, KeyRing, ListAttemptsRequest, ListDeliveriesRequest, PayloadFormat,
    PublishEventRequest, PublishEventResponse, RetryPolicy, Subscription, endpoint::Target,
    retry_policy::Backoff,
};

/// The one event type of a scene.
pub const EVENT_TYPE: &str = "order.paid";

/// One tenant, seen by an administrator. Cloning shares the connection.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Calls the server.
    pub client: Client,
    /// `tenants/acme`.
    pub tenant: String,
}

/// An endpoint at a URL with every other field at its default.
#[must_use]
pub fn http_endpoint(url: &str) -> Endpoint {
    let http = HttpTarget { url: url.to_owned(), ..HttpTarget::default() };
    Endpoint { target: Some(Target::Http(http)), ..Endpoint::default() }
}

/// A duration as the contract writes it.
#[must_use]
pub fn proto(duration: Duration) -> ProtoDuration {
    ProtoDuration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

impl Scene {
    /// Makes the tenant and its event type.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn set(server: &Server) -> anyhow::Result<Self> {
        let scene = Self::of(server).await?;
        let tenant =
            CreateTenantRequest { tenant_id: "acme".into(), tenant: None, ..Default::default() };
        scene.client.tenants().create_tenant(tenant).await?;
        let event_type = CreateEventTypeRequest {
            parent: scene.tenant.clone(),
            event_type_id: EVENT_TYPE.into(),
            event_type: None,
            ..Default::default()
        };
        scene.client.event_types().create_event_type(event_type).await?;
        Ok(scene)
    }

    /// The same tenant through another server, or the same one restarted.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn of(server: &Server) -> anyhow::Result<Self> {
        Ok(Self { client: server.client().await?, tenant: "tenants/acme".into() })
    }

    /// Makes a policy with these delays exactly and no jitter, and gives its name.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn delays(
        &self,
        id: &str,
        delays: &[Duration],
        tries: i32,
    ) -> anyhow::Result<String> {
        let delays = DelayList { delays: delays.iter().copied().map(proto).collect() };
        let policy = RetryPolicy {
            backoff: Some(Backoff::Delays(delays)),
            jitter: Jitter::None.into(),
            max_attempts: tries,
            ..RetryPolicy::default()
        };
        self.policy(id, policy).await
    }

    /// Makes a policy and gives its name.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn policy(&self, id: &str, policy: RetryPolicy) -> anyhow::Result<String> {
        let request = CreateRetryPolicyRequest {
            parent: self.tenant.clone(),
            retry_policy_id: id.into(),
            retry_policy: Some(policy),
            ..Default::default()
        };
        Ok(self.client.retry_policies().create_retry_policy(request).await?.into_inner().name)
    }

    /// Makes an endpoint that wants every event in this format. The answer has its secret.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn subscriber(
        &self,
        id: &str,
        endpoint: Endpoint,
        format: PayloadFormat,
    ) -> anyhow::Result<Endpoint> {
        let made = self.create_endpoint(id, endpoint).await?;
        let subscription = Subscription {
            endpoint: made.name.clone(),
            event_types: vec!["*".into()],
            payload_format: format.into(),
            ..Subscription::default()
        };
        let request = CreateSubscriptionRequest {
            parent: self.tenant.clone(),
            subscription_id: String::new(),
            subscription: Some(subscription),
            ..Default::default()
        };
        self.client.subscriptions().create_subscription(request).await?;
        Ok(made)
    }

    /// Makes an endpoint that gets the published bytes and nothing around them.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn raw(&self, id: &str, endpoint: Endpoint) -> anyhow::Result<Endpoint> {
        self.subscriber(id, endpoint, PayloadFormat::Raw).await
    }

    /// Makes an endpoint.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create_endpoint(&self, id: &str, endpoint: Endpoint) -> Result<Endpoint, Status> {
        let request = CreateEndpointRequest {
            parent: self.tenant.clone(),
            endpoint_id: id.into(),
            endpoint: Some(endpoint),
            secret: String::new(),
            ..Default::default()
        };
        Ok(self.client.endpoints().create_endpoint(request).await?.into_inner())
    }

    /// Disables an endpoint.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn disable(&self, endpoint: &Endpoint) -> anyhow::Result<()> {
        let request = DisableEndpointRequest {
            name: endpoint.name.clone(),
            reason: "the scenario says so".into(),
            ..DisableEndpointRequest::default()
        };
        self.client.endpoints().disable_endpoint(request).await?;
        Ok(())
    }

    /// Enables an endpoint.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn enable(&self, endpoint: &Endpoint) -> anyhow::Result<()> {
        let request = EnableEndpointRequest { name: endpoint.name.clone(), etag: String::new() };
        self.client.endpoints().enable_endpoint(request).await?;
        Ok(())
    }

    /// The key ring of an endpoint.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn ring(&self, endpoint: &Endpoint) -> anyhow::Result<KeyRing> {
        let request = GetKeyRingRequest { name: format!("{}/keyRing", endpoint.name) };
        Ok(self.client.keys().get_key_ring(request).await?.into_inner())
    }

    /// Publishes once: what the server says is the answer, whatever it is.
    ///
    /// # Errors
    /// The server's.
    pub async fn publish(
        &self,
        id: &str,
        data: impl Into<Bytes>,
    ) -> Result<PublishEventResponse, Status> {
        let event = Event {
            event_id: id.into(),
            event_type: EVENT_TYPE.into(),
            data: data.into(),
            ..Event::default()
        };
        self.publish_event(event).await
    }

    /// Publishes any event once.
    ///
    /// # Errors
    /// The server's.
    pub async fn publish_event(&self, event: Event) -> Result<PublishEventResponse, Status> {
        let request = PublishEventRequest { parent: self.tenant.clone(), event: Some(event) };
        Ok(self.client.events().publish_event(request).await?.into_inner())
    }

    /// One page of deliveries.
    ///
    /// # Errors
    /// The server's.
    pub async fn deliveries(&self, filter: ListDeliveriesRequest) -> anyhow::Result<Vec<Delivery>> {
        let request =
            ListDeliveriesRequest { parent: self.tenant.clone(), page_size: 1000, ..filter };
        Ok(self.client.deliveries().list_deliveries(request).await?.into_inner().deliveries)
    }

    /// The deliveries of an event.
    ///
    /// # Errors
    /// The server's.
    pub async fn deliveries_of(&self, event: &str) -> anyhow::Result<Vec<Delivery>> {
        let filter = ListDeliveriesRequest { event: event.into(), ..Default::default() };
        self.deliveries(filter).await
    }

    /// The one delivery of an event, as it stands.
    ///
    /// # Errors
    /// When there is not exactly one.
    pub async fn delivery_of(&self, event: &str) -> anyhow::Result<Delivery> {
        let [delivery] = <[Delivery; 1]>::try_from(self.deliveries_of(event).await?)
            .map_err(|found| anyhow::anyhow!("{} deliveries instead of one", found.len()))?;
        Ok(delivery)
    }

    /// The one delivery of an event, once it is in this state.
    ///
    /// # Errors
    /// When it ends otherwise, or not in time.
    pub async fn ended(&self, event: &str, state: DeliveryState) -> anyhow::Result<Delivery> {
        eventually(&format!("a delivery becomes {}", state.as_str_name()), async || {
            let delivery = self.delivery_of(event).await?;
            if delivery.state() == state {
                return Ok(Some(delivery));
            }
            anyhow::ensure!(delivery.state() == DeliveryState::Pending, "it became {delivery:?}");
            Ok(None)
        })
        .await
    }

    /// The one delivery of an event, once it has been tried this often.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn tried(&self, event: &str, attempts: i32) -> anyhow::Result<Delivery> {
        eventually(&format!("a delivery is tried {attempts} times"), async || {
            let delivery = self.delivery_of(event).await?;
            Ok((delivery.attempts >= attempts).then_some(delivery))
        })
        .await
    }

    /// Number of deliveries in a state, up to 1,000.
    ///
    /// # Errors
    /// The server's.
    pub async fn count(&self, state: DeliveryState) -> anyhow::Result<usize> {
        let filter = ListDeliveriesRequest { state: state.into(), ..Default::default() };
        Ok(self.deliveries(filter).await?.len())
    }

    /// Waits until no delivery is pending.
    ///
    /// # Errors
    /// When some still are after a long time.
    pub async fn drained(&self) -> anyhow::Result<()> {
        let drained = eventually("no delivery is pending", async || {
            Ok((self.count(DeliveryState::Pending).await? == 0).then_some(()))
        });
        let Err(error) = drained.await else { return Ok(()) };
        let filter = ListDeliveriesRequest {
            state: DeliveryState::Pending.into(),
            ..ListDeliveriesRequest::default()
        };
        let pending = self.deliveries(filter).await?;
        Err(error).with_context(|| {
            format!("{} are pending, such as {:?}", pending.len(), pending.first())
        })
    }

    /// The attempts of a delivery.
    ///
    /// # Errors
    /// The server's.
    pub async fn attempts(&self, delivery: &Delivery) -> anyhow::Result<Vec<Attempt>> {
        let request = ListAttemptsRequest {
            parent: delivery.name.clone(),
            page_size: 1000,
            ..ListAttemptsRequest::default()
        };
        Ok(self.client.deliveries().list_attempts(request).await?.into_inner().attempts)
    }
}
