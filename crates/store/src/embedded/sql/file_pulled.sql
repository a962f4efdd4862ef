-- Files a leased delivery as finished, when the lease still holds.
insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                           finished_at_us)
select tenant_id, id, endpoint_id, event_uid, format, ?5, ?6, ?7, ?8
from delivery
where tenant_id = ?1 and id = ?2 and attempts = ?3 and lease_token = ?4 and leased_at_us is not null
