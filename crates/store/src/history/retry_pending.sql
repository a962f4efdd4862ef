-- Makes a pending delivery due now. Moving the round's start by one leaves its automatic attempts
-- whole; asking twice before the attempt is asking once.
update delivery set due_at_us = $3,
                    round_start = case when round_start <= attempts then round_start + 1 else round_start end
where tenant_id = $1 and id = $2
