-- Keeps a retry policy as it is before a change. $1: the policy. The same on both backends.
--
-- Cost: one row by its primary key, one row added. Asked once for each change of a policy, in the turn of
-- its writer. A version that is there already was kept by a change of the same number.
insert into retry_policy_version
  (tenant_id, retry_policy_id, version, rule, labels, updated_at_us, revision)
select tenant_id, id, version, rule, labels, updated_at_us, revision
from retry_policy where id = $1 and deleted_at_us is null
on conflict (retry_policy_id, version) do nothing
