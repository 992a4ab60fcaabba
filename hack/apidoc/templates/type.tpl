{{- define "type" -}}
{{- $type := . -}}
{{- /* The fields of an embedded type are shown where it is embedded. */ -}}
{{- if and (markdownShouldRenderType $type) (ne $type.Name "WorkloadStatus") }}
### {{ $type.Name }}

{{ $type.Doc }}
{{ if $type.References }}
{{- $separator := "" }}
Appears in {{ range $type.SortedReferences }}{{ if ne .Name "WorkloadStatus" }}{{ $separator }}{{ markdownRenderTypeLink . }}{{ $separator = ", " }}{{ end }}{{ end }}.
{{ end }}
{{- with index $type.Markers "kubebuilder:validation:XValidation" }}
Validation rules:
{{ range . }}
- {{ .Message }}
{{- end }}
{{ end }}
{{- if $type.Members }}
Fields:
{{ range $type.Members }}{{ if not (has .Name (list "kind" "apiVersion")) }}
- **`{{ .Name }}`** ({{ template "fieldType" . }}{{ with .Default }}; default `{{ . }}`{{ end }}{{ template "bounds" . }}):
  {{ if eq .Name "metadata" }}Standard metadata of an object.{{ else }}{{ template "text" .Doc }}{{ end }}
{{- end }}{{ end }}
{{ end }}
{{- if $type.EnumValues }}
| Value | Description |
|---|---|
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ template "text" (regexReplaceAll "^[A-Z]\\w* (means (that )?)?" .Doc "") }} |
{{- end }}
{{ end }}
{{- end -}}
{{- end -}}

{{- define "text" -}}
{{ markdownRenderFieldDoc (regexReplaceAll "\\s+" . " " | trim) }}
{{- end -}}

{{- /* The Kubernetes documentation has no section for some types. */ -}}
{{- define "fieldType" -}}
{{- $name := .Type.Name -}}
{{- if eq .Name "podTemplate" -}}
PodTemplateSpec
{{- else if eq $name "IntOrString" -}}
integer or string
{{- else if has $name (list "ServiceType" "Protocol") -}}
string
{{- else -}}
{{ markdownRenderType .Type }}
{{- end -}}
{{- end -}}
