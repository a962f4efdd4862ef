-- Makes a pending delivery due now. Moving the round's start by one leaves its automatic attempts
-- whole. One that is due already is left as it is: asking twice before the attempt is asking once. So is
-- one that a consumer has: it is being tried.
update delivery set due_at_us = case when due_at_us > $3 and leased_at_us is null
                                     then $3 else due_at_us end,
                    round_start = case when due_at_us > $3 and leased_at_us is null
                                        and round_start <= attempts
                                       then round_start + 1 else round_start end
where tenant_id = $1 and id = $2
