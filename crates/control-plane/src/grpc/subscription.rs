//! The Subscriptions service.

use super::{decode, decode_change, decode_once, refuse};
use crate::{Dependencies, convert::subscription as convert, subscription::Subscriptions};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    subscriptions_server::{SERVICE_NAME, Subscriptions as Contract},
};

/// Serves subscriptions.
pub(crate) struct Service(Subscriptions);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Subscriptions(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn create_subscription(
        &self,
        request: Request<v1::CreateSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        let method = (SERVICE_NAME, "CreateSubscription");
        let (by, command) = decode_once(&self.0.0, method, request, convert::create)?;
        let answer = self.0.create(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn get_subscription(
        &self,
        request: Request<v1::GetSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn list_subscriptions(
        &self,
        request: Request<v1::ListSubscriptionsRequest>,
    ) -> Result<Response<v1::ListSubscriptionsResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn update_subscription(
        &self,
        request: Request<v1::UpdateSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        let method = (SERVICE_NAME, "UpdateSubscription");
        let (by, command) = decode_change(&self.0.0, method, request, convert::upsert)?;
        let answer = self.0.upsert(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn delete_subscription(
        &self,
        request: Request<v1::DeleteSubscriptionRequest>,
    ) -> Result<Response<()>, Status> {
        let method = (SERVICE_NAME, "DeleteSubscription");
        let (by, command) = decode_change(&self.0.0, method, request, convert::delete)?;
        self.0.delete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(()))
    }

    async fn undelete_subscription(
        &self,
        request: Request<v1::UndeleteSubscriptionRequest>,
    ) -> Result<Response<v1::Subscription>, Status> {
        let method = (SERVICE_NAME, "UndeleteSubscription");
        let (by, command) = decode_change(&self.0.0, method, request, convert::undelete)?;
        let answer = self.0.undelete(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }
}
