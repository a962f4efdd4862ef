-- A delivery of a watched event, due at a time of its own. Cost as in insert_delivery.sql.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
