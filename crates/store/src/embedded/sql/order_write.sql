-- The state of one subject; an entry in subject_order_age only when its hour of forgetting changed.
insert into subject_order (tenant_id, source, subject, last_sequence, is_final, held, forget_at_us,
                           last_due_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (tenant_id, source, subject)
do update set last_sequence = excluded.last_sequence, last_due_us = excluded.last_due_us,
              is_final = excluded.is_final,
              held = excluded.held, forget_at_us = excluded.forget_at_us
