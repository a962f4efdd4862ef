-- Takes away at most $2 payloads whose time ended before $1.
-- Cost: one walk of receipt_payload_age over the rows that go, and their primary keys.
delete from receipt_payload where (tenant_id, id) in (
  select tenant_id, id from receipt_payload where until_us < $1 order by until_us limit $2
)
