-- Bytes of one tenant's live configuration, in the columns whose length its owner decides. $1: the tenant.
-- The same on both backends.
--
-- Cost: reads the tenant's rows once, by the unique index (tenant_id, …) of each table; of a long value only
-- its length is read, not the value. Some ten milliseconds at the default quotas. Asked only by writers of
-- long rows (`rules::room`), which take turns.
select cast(
    coalesce((select sum(octet_length(display_name) + octet_length(url) + octet_length(headers) + octet_length(labels))
              from endpoint where tenant_id = $1 and deleted_at_us is null), 0)
  + coalesce((select sum(octet_length(patterns) + coalesce(octet_length(filter), 0) + coalesce(octet_length(channels), 0)
                         + octet_length(labels))
              from subscription where tenant_id = $1 and deleted_at_us is null), 0)
  + coalesce((select sum(octet_length(description) + octet_length(labels))
              from event_type where tenant_id = $1 and deleted_at_us is null), 0)
  + coalesce((select sum(octet_length(schema) + octet_length(description))
              from event_type_version where tenant_id = $1 and deleted_at_us is null), 0)
  + coalesce((select sum(octet_length(rule) + octet_length(labels))
              from retry_policy where tenant_id = $1 and deleted_at_us is null), 0)
  + coalesce((select sum(octet_length(display_name) + coalesce(octet_length(scheme), 0) + octet_length(scheme_settings)
                         + octet_length(settings) + octet_length(labels))
              from source where tenant_id = $1 and deleted_at_us is null), 0)
  as bigint)
