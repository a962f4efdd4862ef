-- Attempts of a delivery after a number: one range of the primary key.
select number, started_at_us, duration_us, outcome, status, detail, retry_delay_us,
       cast(retry_after_honoured as integer) as retry_after_honoured
from attempt where delivery_id = $2 and tenant_id = $1 and number > $3
order by number limit $4
