-- Opens a finished delivery for a new round, if its event is still there.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, attempts, round_start,
                      round_at_us, due_at_us)
select $1, $2, $4, $5, $6, $7, $8, $8, $3, $3
where exists (select 1 from event where tenant_id = $1 and uid = $5)
