-- Files a delivery that was just removed from the queue as cancelled.
insert into delivery_done (tenant_id, id, finished_at_us, endpoint_id, event_uid, format, attempts,
                           reason, state)
values ($1, $2, $3, $4, $5, $6, $7, $8, 3)
