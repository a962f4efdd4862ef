insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                           finished_at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
