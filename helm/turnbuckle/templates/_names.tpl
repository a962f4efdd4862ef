{{- define "turnbuckle.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Room for "-control-plane-headless" behind it in 63 characters. */}}
{{- define "turnbuckle.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "turnbuckle.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change: Deployments find their pods by them. Takes root and component. */}}
{{- define "turnbuckle.selector" -}}
app.kubernetes.io/name: {{ include "turnbuckle.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "turnbuckle.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "turnbuckle.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: turnbuckle
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "turnbuckle.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry -}}
{{- $name := .Values.image.repository -}}
{{- if $registry -}}{{- $name = printf "%s/%s" $registry $name -}}{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The components of the chosen topology, as YAML: name, key in the values, roles, what they open. */}}
{{- define "turnbuckle.components" -}}
{{- if eq .Values.topology "all" }}
- {name: all, key: all, roles: [all], api: true, hooks: true}
{{- else }}
- {name: control-plane, key: controlPlane, roles: [control-plane], api: true, hooks: false}
- {name: delivery, key: delivery, roles: [delivery], api: true, hooks: false}
- {name: ingress, key: ingress, roles: [ingress], api: false, hooks: true}
{{- end }}
{{- end -}}

{{/* Service of the control plane, of publishers, and of third parties. */}}
{{- define "turnbuckle.apiService" -}}
{{- printf "%s-%s" (include "turnbuckle.fullname" .) (ternary "all" "control-plane" (eq .Values.topology "all")) -}}
{{- end -}}
{{- define "turnbuckle.publishService" -}}
{{- printf "%s-%s" (include "turnbuckle.fullname" .) (ternary "all" "delivery" (eq .Values.topology "all")) -}}
{{- end -}}
{{- define "turnbuckle.hookService" -}}
{{- printf "%s-%s" (include "turnbuckle.fullname" .) (ternary "all" "ingress" (eq .Values.topology "all")) -}}
{{- end -}}

{{- define "turnbuckle.scheme" -}}
{{- ternary "https" "http" (not (empty .Values.tls.existingSecret)) -}}
{{- end -}}
