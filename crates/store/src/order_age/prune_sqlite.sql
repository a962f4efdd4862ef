-- Forgets at most $2 subjects whose time ended before $1, the oldest first.
-- Cost: one walk of subject_order_age over the rows that go, and their primary keys.
delete from subject_order where (tenant_id, source, subject) in (
  select tenant_id, source, subject from subject_order where forget_at_us < $1
  order by forget_at_us limit $2
)
