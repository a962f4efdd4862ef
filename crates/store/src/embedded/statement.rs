//! Statements that sea-orm built, run on the writer thread: there they share its transactions, where
//! another connection would have to wait for the write lock, and the writer for that one.

use super::EmbeddedQueue;
use rusqlite::{params_from_iter, types::Value as Bound};
use sea_orm::{Statement, Value};
use turnbuckle_domain::StoreError;

impl EmbeddedQueue {
    /// Runs statements in one transaction.
    pub(crate) async fn execute(&self, statements: Vec<Statement>) -> Result<(), StoreError> {
        let bound = |statement: Statement| {
            let values = statement.values.map(|values| values.0).unwrap_or_default();
            let values = values.into_iter().map(bound).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, StoreError>((statement.sql, values))
        };
        let statements = statements.into_iter().map(bound).collect::<Result<Vec<_>, _>>()?;
        let run = move |connection: &rusqlite::Connection| {
            for (sql, values) in &statements {
                connection.prepare(sql)?.execute(params_from_iter(values))?;
            }
            Ok(())
        };
        self.writer.run(run).await
    }
}

/// As the other connection binds it.
fn bound(value: Value) -> Result<Bound, StoreError> {
    Ok(match value {
        Value::Bool(value) => value.map_or(Bound::Null, |value| i64::from(value).into()),
        Value::Int(value) => value.map_or(Bound::Null, |value| i64::from(value).into()),
        Value::BigInt(value) => value.map_or(Bound::Null, Bound::from),
        Value::String(value) => value.map_or(Bound::Null, Bound::from),
        Value::Bytes(value) => value.map_or(Bound::Null, Bound::from),
        Value::Uuid(value) => {
            value.map_or(Bound::Null, |value| Bound::from(value.as_bytes().to_vec()))
        }
        other => {
            let kind = other.array_type();
            return Err(StoreError::Internal(format!("no way to bind a {kind:?}").into()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_bound_is_an_error_and_no_null() {
        assert_eq!(bound(Value::Int(Some(7))).unwrap(), Bound::Integer(7));
        assert_eq!(bound(Value::Bool(None)).unwrap(), Bound::Null);
        assert!(bound(Value::Double(Some(0.5))).is_err());
    }
}
