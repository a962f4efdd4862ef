-- Append-only; a second writing of the same attempt changes nothing.
insert into attempt (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status,
                     detail, retry_delay_us, retry_after_honoured)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) on conflict do nothing
