//! Reports of nodes.

use super::{
    ConfigDb,
    cell::Malformed,
    entity::{config_revision, node},
    write::Write,
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    sea_query::{Expr, OnConflict},
};
use turnbuckle_domain::{
    ChangeContext, ConfigPosition, Epoch, Error, Fields, NodeId, NodeReport, NodeReports, PLATFORM,
    StoreError, node_limits,
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
        by: &ChangeContext,
    ) -> Result<bool, Error> {
        use node::Column;
        let mut write = Write::begin(&self.db).await?;
        let row = node::Entity::find_by_id(key(node)).one(&write.transaction).await;
        let Some(row) = row.map_err(store_error)? else { return Ok(false) };
        let accepted = |position: ConfigPosition| {
            let ConfigPosition { epoch, revision } = position;
            Fields::from([
                ("accepted.epoch".to_owned(), epoch.to_string()),
                ("accepted.revision".to_owned(), revision.0.to_string()),
            ])
        };
        let before = node::accepted(&row).map(accepted).unwrap_or_default();
        write.note((PLATFORM, format!("nodes/{node}")), before, accepted(snapshot));
        let update = node::Entity::update_many()
            .col_expr(Column::AcceptedEpoch, Expr::value(snapshot.epoch.uuid()))
            .col_expr(Column::AcceptedRevision, Expr::value(snapshot.revision.0))
            .filter(Column::Role.eq(node.role.as_str()))
            .filter(Column::Name.eq(node.name.as_str()));
        update.exec(&write.transaction).await.map_err(store_error)?;
        write.commit(by).await?;
        Ok(true)
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

/// One report that nobody can read, such as of a role that a newer program knows, hides no other (I13).
fn readable(row: node::Model) -> Option<NodeReport> {
    let id = format!("{}.{}", row.role, row.name);
    let tell = |error: &Malformed| {
        let error = error as &dyn std::error::Error;
        tracing::warn!(error, node = id, "the report of a node cannot be read");
    };
    node::decode(row).inspect_err(tell).ok()
}

fn key(node: &NodeId) -> (String, String) {
    (node.role.as_str().to_owned(), node.name.as_str().to_owned())
}
