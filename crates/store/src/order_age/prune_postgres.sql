-- Forgets at most $2 subjects whose time ended before $1, the oldest first.
-- Cost: one walk of subject_order_age over the rows that go. By their places, since a join would be
-- planned for a tenth of the table and read all of it; the lock keeps them where they are. Rows that an
-- append holds are left: it is about to prolong them.
delete from subject_order where ctid = any (array(
  select ctid from subject_order where forget_at_us < $1
  order by forget_at_us limit $2 for update skip locked
))
