-- Takes away receipts with ids below $1, at most $2, the oldest first.
-- Cost: one walk of receipt_age over the rows that go, and their primary keys.
delete from receipt where (tenant_id, id) in (
  select tenant_id, id from receipt where id < $1 order by id limit $2
)
