{{- /* The bounds of a field, from its markers, each after a semicolon. The rules of a spec are
      shown with its type. */ -}}
{{- define "bounds" -}}
{{- $m := .Markers -}}
{{- $all := list -}}
{{- if or (index $m "required") (index $m "k8s:required") (index $m "kubebuilder:validation:Required") }}{{ $all = append $all "required" }}{{ end -}}
{{- range index $m "kubebuilder:validation:Enum" -}}
  {{- $values := list -}}
  {{- range . }}{{ if . }}{{ $values = append $values (printf "`%v`" .) }}{{ end }}{{ end -}}
  {{- $all = append $all (printf "one of %s" (join ", " $values)) -}}
{{- end -}}
{{- $range := "" -}}
{{- range index $m "kubebuilder:validation:Minimum" }}{{ $range = printf "%.0f or more" . }}{{ end -}}
{{- range index $m "kubebuilder:validation:Maximum" -}}
  {{- $max := . -}}
  {{- $range = printf "at most %.0f" . -}}
  {{- range index $m "kubebuilder:validation:Minimum" }}{{ $range = printf "%.0f to %.0f" . $max }}{{ end -}}
{{- end -}}
{{- with $range }}{{ $all = append $all . }}{{ end -}}
{{- $length := "" -}}
{{- range index $m "kubebuilder:validation:MaxLength" -}}
  {{- $max := . -}}
  {{- $length = printf "at most %v characters" . -}}
  {{- range index $m "kubebuilder:validation:MinLength" }}{{ $length = printf "%v to %v characters" . $max }}{{ end -}}
{{- end -}}
{{- with $length }}{{ $all = append $all . }}{{ end -}}
{{- range index $m "kubebuilder:validation:MaxItems" }}{{ $all = append $all (printf "at most %v items" .) }}{{ end -}}
{{- with index $m "listMapKey" }}{{ $all = append $all (printf "unique by %s" (join ", " .)) }}{{ end -}}
{{- range index $m "kubebuilder:validation:Pattern" }}{{ $all = append $all (printf "`%v`" .) }}{{ end -}}
{{- if ne .Name "spec" -}}
  {{- range index $m "kubebuilder:validation:XValidation" }}{{ $all = append $all .Message }}{{ end -}}
{{- end -}}
{{- range $all }}; {{ . }}{{ end -}}
{{- end -}}
