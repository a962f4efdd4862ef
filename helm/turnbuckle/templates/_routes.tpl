{{/* gRPC services that the delivery role answers; the control plane answers the others. */}}
{{- define "turnbuckle.publishing" -}}
- turnbuckle.v1.Events
- turnbuckle.v1.Deliveries
- turnbuckle.v1.Replays
- turnbuckle.v1.Pull
- turnbuckle.v1.KeyTests
{{- end -}}
