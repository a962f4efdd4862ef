-- Takes away receipts with ids below $1 that are in no day partition, at most $2, the oldest first:
-- those of before there were partitions, and of clocks that were far off. Days are dropped whole.
-- Cost: one walk of receipt_age over the rows that go, and their primary keys.
delete from receipt_default where (tenant_id, id) in (
  select tenant_id, id from receipt_default where id < $1 order by id limit $2
)
