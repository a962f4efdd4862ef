{{/* Settings file of one component. Order: what the pod needs, then yours for all, then yours for the role. */}}
{{- define "turnbuckle.settings" -}}
{{- $root := .root -}}
{{- $base := dict
  "roles" .component.roles
  "api_listen" "0.0.0.0:7420"
  "ingress_listen" "0.0.0.0:7421"
  "admin_listen" "0.0.0.0:7422"
  "data_dir" "/var/lib/turnbuckle"
  "keyring_file" "/etc/turnbuckle/keyring/keyring.json"
  "log_format" "json"
-}}
{{- if $root.Values.auth.tokenKey.existingSecret -}}
{{- $_ := set $base "token_key_file" "/etc/turnbuckle/token-key/token.key" -}}
{{- end -}}
{{- if $root.Values.auth.config -}}
{{- $_ := set $base "auth_config" "/etc/turnbuckle/auth.toml" -}}
{{- end -}}
{{- if $root.Values.tls.extraCaSecret -}}
{{- $_ := set $base "extra_ca_file" "/etc/turnbuckle/extra-ca/ca.crt" -}}
{{- end -}}
{{- if $root.Values.tls.existingSecret -}}
{{- $_ := set $base "tls_cert_file" "/etc/turnbuckle/tls/tls.crt" -}}
{{- $_ := set $base "tls_key_file" "/etc/turnbuckle/tls/tls.key" -}}
{{- end -}}
{{- if has .component.name (list "delivery" "ingress") -}}
{{- $_ := set $base "control_plane_url" (printf "%s://%s:7420" (include "turnbuckle.scheme" $root) (include "turnbuckle.apiService" $root)) -}}
{{- $_ := set $base "node_token_file" "/etc/turnbuckle/node-token/node.token" -}}
{{- end -}}
{{- $own := (index $root.Values .component.key).settings -}}
{{- mergeOverwrite $base (deepCopy $root.Values.settings) (deepCopy $own) | toYaml -}}
{{- end -}}

{{/* The restricted profile of the pod security standards. */}}
{{- define "turnbuckle.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "turnbuckle.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "turnbuckle.databaseEnv" -}}
- name: TURNBUCKLE_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- end -}}

{{/* A node keeps its name over restarts of the container, but not of the pod: it is a new node then. */}}
{{- define "turnbuckle.env" -}}
{{ include "turnbuckle.databaseEnv" .root }}
- name: TURNBUCKLE_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- with (index .root.Values .component.key).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "turnbuckle.mounts" -}}
- {name: scratch, mountPath: /var/lib/turnbuckle}
- {name: settings, mountPath: /etc/turnbuckle/turnbuckle.yaml, subPath: turnbuckle.yaml, readOnly: true}
- {name: keyring, mountPath: /etc/turnbuckle/keyring, readOnly: true}
{{- if .root.Values.auth.tokenKey.existingSecret }}
- {name: token-key, mountPath: /etc/turnbuckle/token-key, readOnly: true}
{{- end }}
{{- if .root.Values.auth.config }}
- {name: settings, mountPath: /etc/turnbuckle/auth.toml, subPath: auth.toml, readOnly: true}
{{- end }}
{{- if .root.Values.auth.jwksSecret }}
- {name: jwks, mountPath: /etc/turnbuckle/jwks, readOnly: true}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- {name: tls, mountPath: /etc/turnbuckle/tls, readOnly: true}
{{- end }}
{{- if .root.Values.tls.extraCaSecret }}
- {name: extra-ca, mountPath: /etc/turnbuckle/extra-ca, readOnly: true}
{{- end }}
{{- if has .component.name (list "delivery" "ingress") }}
- {name: node-token, mountPath: /etc/turnbuckle/node-token, readOnly: true}
{{- end }}
{{- with (index .root.Values .component.key).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Secret files are readable by the pod's group, which is the process' own. */}}
{{- define "turnbuckle.volumes" -}}
- name: scratch
  emptyDir: {sizeLimit: {{ .root.Values.scratchSize }}}
- name: settings
  configMap: {name: {{ include "turnbuckle.fullname" .root }}-{{ .component.name }}}
- name: keyring
  secret:
    secretName: {{ .root.Values.keyring.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .root.Values.keyring.key }}, path: keyring.json}]
{{- if .root.Values.auth.tokenKey.existingSecret }}
- name: token-key
  secret:
    secretName: {{ .root.Values.auth.tokenKey.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .root.Values.auth.tokenKey.key }}, path: token.key}]
{{- end }}
{{- if .root.Values.auth.jwksSecret }}
- name: jwks
  secret: {secretName: {{ .root.Values.auth.jwksSecret }}, defaultMode: 0440}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- name: tls
  secret: {secretName: {{ .root.Values.tls.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- if .root.Values.tls.extraCaSecret }}
- name: extra-ca
  secret: {secretName: {{ .root.Values.tls.extraCaSecret }}, defaultMode: 0440}
{{- end }}
{{- if has .component.name (list "delivery" "ingress") }}
- name: node-token
  secret:
    secretName: {{ .root.Values.nodeTokens.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .component.name }}.token, path: node.token}]
{{- end }}
{{- with (index .root.Values .component.key).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
