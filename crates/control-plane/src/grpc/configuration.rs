//! The Configuration service.

use super::{decode, refuse};
use crate::{
    Distribution,
    configuration::Watcher,
    convert::configuration::{self as convert, Watch},
};
use futures_util::{Stream, stream};
use std::{pin::Pin, sync::Arc};
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{self, configuration_server::Configuration as Contract};

/// Serves the configuration stream.
pub(crate) struct Service(Arc<Distribution>);

impl Service {
    pub(crate) fn new(distribution: Arc<Distribution>) -> Self {
        Self(distribution)
    }
}

/// The messages of a stream, made as they are asked for.
fn messages(watcher: Watcher) -> impl Stream<Item = Result<v1::WatchResponse, Status>> {
    stream::try_unfold(watcher, |mut watcher| async {
        let message = watcher.next().await.map_err(refuse)?;
        Ok(message.map(|message| (message, watcher)))
    })
}

#[tonic::async_trait]
impl Contract for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (caller, Watch { node, known }) = decode(request, convert::watch)?;
        let watcher = self.0.watch(&caller, &node, known).map_err(refuse)?;
        Ok(Response::new(Box::pin(messages(watcher))))
    }

    async fn get_revision(
        &self,
        request: Request<v1::GetRevisionRequest>,
    ) -> Result<Response<v1::GetRevisionResponse>, Status> {
        let (caller, node) = decode(request, convert::get_revision)?;
        let answer = self.0.newest(&caller, &node).await.map_err(refuse)?;
        Ok(Response::new(convert::revision_message(&answer)))
    }

    async fn report_applied(
        &self,
        request: Request<v1::ReportAppliedRequest>,
    ) -> Result<Response<v1::ReportAppliedResponse>, Status> {
        let (caller, report) = decode(request, convert::report)?;
        let accepted = self.0.report(&caller, &report).await.map_err(refuse)?;
        Ok(Response::new(convert::report_message(accepted.as_ref())))
    }
}
