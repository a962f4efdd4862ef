-- Files a live delivery as finished under its lease, when it still stands where the turn began.
insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                           finished_at_us)
select tenant_id, id, endpoint_id, event_uid, format, ?4, ?5, ?6, ?7
from delivery
where tenant_id = ?1 and id = ?2 and attempts = ?3
