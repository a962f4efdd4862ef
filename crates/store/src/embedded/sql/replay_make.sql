-- Makes a delivery of an event that is still there. Cost as in insert_delivery.sql, and a probe of event.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7
where exists (select 1 from event where tenant_id = ?1 and uid = ?4)
