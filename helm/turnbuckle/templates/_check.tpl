{{/* What a schema cannot say. Every fault names the value and what to do. */}}
{{- define "turnbuckle.check" -}}
{{- $faults := list -}}
{{- if not .Values.database.existingSecret -}}
{{- $faults = append $faults "database.existingSecret: name the Secret that has the database URL (kubectl create secret generic turnbuckle-database --from-literal=database-url=postgres://…)" -}}
{{- end -}}
{{- if not .Values.keyring.existingSecret -}}
{{- $faults = append $faults "keyring.existingSecret: name the Secret that has the keyring (turnbuckle keyring create keyring.json; kubectl create secret generic turnbuckle-keyring --from-file=keyring.json)" -}}
{{- end -}}
{{- if not (or .Values.auth.tokenKey.existingSecret .Values.auth.config) -}}
{{- $faults = append $faults "auth.tokenKey.existingSecret or auth.config: nobody could call the API without one (turnbuckle token create-key token.key; kubectl create secret generic turnbuckle-token-key --from-file=token.key)" -}}
{{- end -}}
{{- if and (eq .Values.topology "roles") (not .Values.nodeTokens.existingSecret) -}}
{{- $faults = append $faults "nodeTokens.existingSecret: delivery and ingress need tokens for the control plane (turnbuckle token issue --role node --subject delivery …; keys delivery.token and ingress.token)" -}}
{{- end -}}
{{- if and .Values.delivery.keda.enabled .Values.delivery.autoscaling.enabled -}}
{{- $faults = append $faults "delivery.keda.enabled and delivery.autoscaling.enabled: two scalers would fight over one Deployment; choose one" -}}
{{- end -}}
{{- if and .Values.delivery.keda.enabled (eq .Values.topology "all") -}}
{{- $faults = append $faults "delivery.keda.enabled: there is no delivery Deployment with topology all" -}}
{{- end -}}
{{- if and .Values.apiIngress.enabled (not .Values.apiIngress.host) -}}
{{- $faults = append $faults "apiIngress.host: an Ingress without a host would take every request of its controller" -}}
{{- end -}}
{{- if and .Values.hookIngress.enabled (not .Values.hookIngress.host) -}}
{{- $faults = append $faults "hookIngress.host: an Ingress without a host would take every request of its controller" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- $faults = append $faults "gateway.parentRefs: routes need a Gateway" -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\nThese values need a look:\n- %s\n" (join "\n- " $faults)) -}}
{{- end -}}
{{- end -}}
