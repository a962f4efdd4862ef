-- One entry in the table's tree and one in delivery_due.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
