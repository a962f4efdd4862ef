-- The next endpoint of a shard that has pending deliveries, with its first one. Called until it
-- answers nothing: a skip scan, independent of the backlog.
select endpoint_id, due_at_us, id from delivery
where shard = ?1 and endpoint_id > ?2
order by endpoint_id, due_at_us, id
limit 1
