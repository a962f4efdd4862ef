-- Writes where a replay stands, with the rows of its step: one row version.
update replay
set last_id = coalesce($4, last_id), waiting = $5, state = $6, failure = $7, finished_at_us = $8,
    updated_at_us = $9, lease_until_us = $10,
    looked_at = looked_at + $11, matched = matched + $12, reopened = reopened + $13,
    made = made + $14, left_pending = left_pending + $15, left_inactive = left_inactive + $16,
    left_gone = left_gone + $17, left_unchosen = left_unchosen + $18,
    left_unwanted = left_unwanted + $19
where tenant_id = $1 and id = $2 and lease_token = $3 and state = 'running'
