-- Files the deliveries of an event that waited and whose turn never comes; order_withdraw.sql removes
-- them then. Cost: a narrow range of the primary key.
insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                           finished_at_us)
select tenant_id, id, endpoint_id, event_uid, format, 3, 'AFTER_FINAL', attempts, ?6
from delivery
where tenant_id = ?1 and id >= ?2 and id <= ?3 and event_uid = ?4 and due_at_us = ?5 and attempts = 0
