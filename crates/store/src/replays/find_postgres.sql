-- The deliveries that events have at endpoints, pending or finished.
-- $1 tenant; $2..$5 one array per column: event, endpoint, first and last id of the event's deliveries.
-- Answers place in the arrays, from 1, with id and state. Cost: for each event one narrow range of the
-- primary key in either table.
select w.place, d.id, d.state
from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[]) with ordinality
  as w (event_uid, endpoint_id, first_id, last_id, place)
cross join lateral (
  select id, 0::smallint as state from delivery
  where tenant_id = $1 and id >= w.first_id and id <= w.last_id
    and event_uid = w.event_uid and endpoint_id = w.endpoint_id
  union all
  select id, state from delivery_done
  where tenant_id = $1 and id >= w.first_id and id <= w.last_id
    and event_uid = w.event_uid and endpoint_id = w.endpoint_id
) d
