{{- define "sluice.fullname" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- define "sluice.account" -}}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}
{{- define "sluice.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}
{{- /* Cluster-wide names have the namespace in them, so that releases of one name in two namespaces don't meet. */ -}}
{{- define "sluice.clusterwide" -}}
{{ .Release.Namespace }}-{{ include "sluice.fullname" . }}
{{- end -}}

{{/* cpu=100m,memory=128Mi of a map of them. */}}
{{- define "sluice.amounts" -}}
{{- $list := list -}}
{{- range $name, $amount := . }}{{ $list = append $list (printf "%s=%v" $name $amount) }}{{ end -}}
{{- join "," $list -}}
{{- end }}
