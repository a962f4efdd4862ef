-- Makes a pending delivery due now. Moving the round's start by one leaves its automatic attempts
-- whole. One that is due already is left as it is: asking twice before the attempt is asking once.
update delivery set due_at_us = case when due_at_us > $3 then $3 else due_at_us end,
                    round_start = case when due_at_us > $3 and round_start <= attempts
                                       then round_start + 1 else round_start end
where tenant_id = $1 and id = $2
