{{- /* The labels of Helm, on each object. */ -}}
{{- define "modelbox-operator.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The image of a process: list $ "controller". */ -}}
{{- define "modelbox-operator.image" -}}
{{- $root := index . 0 }}
{{- $image := (index $root.Values (index . 1)).image }}
{{- $tag := $image.tag | default (ternary $root.Chart.AppVersion "" (empty $image.digest)) }}
{{- $image.repository }}
{{- with $tag }}:{{ . }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The args of tracing as a list in YAML, or nothing. */ -}}
{{- define "modelbox-operator.tracingArgs" -}}
{{- with .Values.tracing.endpoint }}
{{- printf "- %s\n" (quote (printf "--tracing-endpoint=%s" .)) }}
{{- printf "- --tracing-sampling-rate-per-million=%d" (int64 $.Values.tracing.samplingRatePerMillion) }}
{{- end }}
{{- end }}

{{- /* The args of the webhook as a list in YAML, or nothing. */ -}}
{{- define "modelbox-operator.webhookArgs" -}}
{{- with concat (include "modelbox-operator.tracingArgs" . | fromYamlArray) .Values.webhook.extraArgs }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* The args of the controller as a list in YAML, or nothing. */ -}}
{{- define "modelbox-operator.controllerArgs" -}}
{{- $args := list }}
{{- if and (eq .Values.certs.mode "self-managed") (not .Values.rights.enabled) }}
{{- fail "certs.mode: self-managed needs rights.enabled=true: without its policy, the controller could change all fields of the webhook configurations, and not only caBundle. Enable the policies, or use another mode" }}
{{- end }}
{{- with .Values.namespaces }}
{{- if has $.Release.Namespace . }}
{{- printf "namespaces: the operator runs in namespace %q, so it cannot reconcile the objects there: their pods could use its service accounts and its certificate's key. Install the release in a namespace of its own" $.Release.Namespace | fail }}
{{- end }}
{{- $args = append $args (printf "--namespaces=%s" (join "," .)) }}
{{- end }}
{{- range .Values.controller.modelMirrors }}
{{- $args = append $args (printf "--model-mirror=%s" .) }}
{{- end }}
{{- with concat $args (include "modelbox-operator.tracingArgs" . | fromYamlArray) .Values.controller.extraArgs }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* The Secret with the certificate of the webhook. */ -}}
{{- define "modelbox-operator.certificate" -}}
{{- if eq .Values.certs.mode "provided" }}{{ .Values.certs.provided.secretName }}{{ else }}modelbox-webhook-tls{{ end }}
{{- end }}
