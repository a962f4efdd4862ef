//! Reports of nodes.

use super::{
    ConfigDb,
    entity::{config_revision, node},
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    sea_query::{Expr, OnConflict},
};
use turnbuckle_domain::{
    ConfigPosition, Epoch, NodeId, NodeReport, NodeReports, StoreError, node_limits,
};

#[async_trait]
impl NodeReports for ConfigDb {
    /// Three statements without a transaction around them: each is whole, and what comes between
    /// is another report of the same node, or an operator's word that the next answer carries.
    async fn report_node(&self, report: &NodeReport) -> Result<Option<ConfigPosition>, StoreError> {
        use node::Column;
        let replace = OnConflict::columns([Column::Role, Column::Name])
            .update_columns(node::REPORTED)
            .to_owned();
        let insert = node::Entity::insert(node::encode(report)).on_conflict(replace);
        insert.exec_without_returning(&self.db).await.map_err(store_error)?;
        let forgotten = report.reported_at - node_limits::FORGOTTEN_AFTER;
        let forget =
            node::Entity::delete_many().filter(Column::ReportedAtUs.lt(forgotten.micros()));
        forget.exec(&self.db).await.map_err(store_error)?;
        let row = node::Entity::find_by_id(key(&report.id())).one(&self.db).await;
        Ok(row.map_err(store_error)?.as_ref().and_then(node::accepted))
    }

    async fn nodes(
        &self,
        alive_since: turnbuckle_domain::Timestamp,
    ) -> Result<Vec<NodeReport>, StoreError> {
        use node::Column;
        let rows = node::Entity::find()
            .filter(Column::ReportedAtUs.gte(alive_since.micros()))
            .order_by_asc(Column::Role)
            .order_by_asc(Column::Name);
        let rows = rows.all(&self.db).await.map_err(store_error)?;
        Ok(rows.into_iter().filter_map(readable).collect())
    }

    async fn accept_snapshot(
        &self,
        node: &NodeId,
        snapshot: ConfigPosition,
    ) -> Result<bool, StoreError> {
        use node::Column;
        let update = node::Entity::update_many()
            .col_expr(Column::AcceptedEpoch, Expr::value(snapshot.epoch.uuid()))
            .col_expr(Column::AcceptedRevision, Expr::value(snapshot.revision.0))
            .filter(Column::Role.eq(node.role.as_str()))
            .filter(Column::Name.eq(node.name.as_str()));
        let done = update.exec(&self.db).await.map_err(store_error)?;
        Ok(done.rows_affected > 0)
    }

    async fn begin_epoch(&self, after: Epoch, next: Epoch) -> Result<(), StoreError> {
        use config_revision::Column;
        let update = config_revision::Entity::update_many()
            .col_expr(Column::Epoch, Expr::value(next.uuid()))
            .filter(Column::Epoch.eq(after.uuid()));
        update.exec(&self.db).await.map_err(store_error)?;
        Ok(())
    }
}

/// What a row says. One that cannot be read, such as one of a newer control plane, must not hide the
/// other nodes: no key could be activated then (I13).
fn readable(row: node::Model) -> Option<NodeReport> {
    let (role, name) = (row.role.clone(), row.name.clone());
    match node::decode(row) {
        Ok(report) => Some(report),
        Err(error) => {
            tracing::error!(node.role = role, node.name = name, %error, "a node's report is left out");
            None
        }
    }
}

fn key(node: &NodeId) -> (String, String) {
    (node.role.as_str().to_owned(), node.name.as_str().to_owned())
}
