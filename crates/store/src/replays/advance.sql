-- Writes where a replay stands, with the rows of its step: one row version.
update replay
set last_id = coalesce($4, last_id), waiting = $5, state = $6, failure = $7, finished_at_us = $8,
    updated_at_us = $9, lease_until_us = $10,
    looked_at = looked_at + $11, matched = matched + $12, reopened = reopened + $13,
    made = made + $14, skipped_pending = skipped_pending + $15, skipped_inactive = skipped_inactive + $16,
    skipped_gone = skipped_gone + $17, skipped_finished = skipped_finished + $18,
    skipped_unwanted = skipped_unwanted + $19
where tenant_id = $1 and id = $2 and lease_token = $3 and state = 'running'
