//! The Nodes service.

use super::{decode, decode_change, refuse};
use crate::{Dependencies, Distribution, convert::node as convert, node::Nodes};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    nodes_server::{Nodes as Contract, SERVICE_NAME},
};

/// Serves nodes.
pub(crate) struct Service(Nodes);

impl Service {
    pub(crate) fn new(distribution: Arc<Distribution>, dependencies: Arc<Dependencies>) -> Self {
        Self(Nodes(distribution, dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let (caller, only_live) = decode(request, |request| Ok(request.live))?;
        let answer = self.0.list(&caller, only_live).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn get_node(
        &self,
        request: Request<v1::GetNodeRequest>,
    ) -> Result<Response<v1::Node>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn accept_snapshot(
        &self,
        request: Request<v1::AcceptSnapshotRequest>,
    ) -> Result<Response<v1::Node>, Status> {
        let method = (SERVICE_NAME, "AcceptSnapshot");
        let (by, command) = decode_change(&self.0.1, method, request, convert::accept)?;
        let answer = self.0.accept(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }
}
