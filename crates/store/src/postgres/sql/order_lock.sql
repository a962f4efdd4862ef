-- The state of these subjects, locked until the end of the transaction; a subject that is not known yet
-- gets a row that counts as forgotten. $1 tenants, $2 sources, $3 subjects, each subject once.
-- An upsert and not a `select for update`: it waits for a row that another transaction is making, and
-- then sees it. It writes what is there, which touches no index.
-- Senders sort the subjects, so that two batches with the same ones cannot dead-lock.
-- Cost: per subject one index probe and one new row version.
insert into subject_order (tenant_id, source, subject)
select tenant_id, source, subject
from unnest($1::uuid[], $2::text[], $3::text[]) as s (tenant_id, source, subject)
on conflict (tenant_id, source, subject) do update set is_final = subject_order.is_final
returning tenant_id, source, subject, last_sequence, last_due_us, is_final, held, forget_at_us
