{{- define "espalier.name" -}}
{{- if eq .Release.Name .Chart.Name -}}{{ .Chart.Name }}{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "espalier.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "espalier.labels" -}}
{{ include "espalier.selector" . }}
app.kubernetes.io/component: api-server
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "espalier.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The flags of the map, sorted by name: true is the flag alone, a list is the flag once per item. */}}
{{- define "espalier.flags" -}}
{{- range $name, $value := .Values.flags }}
{{- if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%v" $name . | quote }}
{{- end }}
{{- else }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}
{{- end }}
