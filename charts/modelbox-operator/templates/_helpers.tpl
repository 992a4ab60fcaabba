{{- /* The labels of Helm, on each object. */ -}}
{{- define "modelbox-operator.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A reference of an image: list $ (the values of an image). */ -}}
{{- define "modelbox-operator.image" -}}
{{- $image := index . 1 }}
{{- $tag := $image.tag | default (ternary (index . 0).Chart.AppVersion "" (empty $image.digest)) }}
{{- $image.repository }}
{{- with $tag }}:{{ . }}{{ end }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The nodes that pods of the operator run on, and how their images are pulled: list $ (the values of a process). */ -}}
{{- define "modelbox-operator.scheduling" -}}
{{- $v := index . 1 }}
{{- range $field, $value := dict "imagePullSecrets" (index . 0).Values.imagePullSecrets "nodeSelector" $v.nodeSelector "tolerations" $v.tolerations }}
{{- with $value }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The args of tracing as a list in YAML, or nothing. */ -}}
{{- define "modelbox-operator.tracingArgs" -}}
{{- with .Values.tracing.endpoint }}
{{- printf "- %s\n" (quote (printf "--tracing-endpoint=%s" .)) }}
{{- printf "- --tracing-sampling-ratio=%v" $.Values.tracing.samplingRatio }}
{{- end }}
{{- end }}

{{- /* The args of the webhook as a list in YAML, or nothing. */ -}}
{{- define "modelbox-operator.webhookArgs" -}}
{{- $args := list }}
{{- range $name, $default := dict "health-probe" 8081 "metrics" 8080 "webhook" 9443 }}
{{- $port := index $.Values.webhook.ports (trimSuffix "-probe" $name) | int }}
{{- if ne $port $default }}{{ $args = append $args (printf "--%s-bind-address=:%d" $name $port) }}{{ end }}
{{- end }}
{{- with concat $args (include "modelbox-operator.tracingArgs" . | fromYamlArray) .Values.webhook.extraArgs }}
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

{{- /* The labels and annotations of what "helm test" makes. It stays if the test fails. */ -}}
{{- define "modelbox-operator.testHook" -}}
labels:
  app.kubernetes.io/name: modelbox-test
  {{- include "modelbox-operator.labels" . | nindent 2 }}
annotations:
  helm.sh/hook: test
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /* The Secret with the certificate of the webhook. */ -}}
{{- define "modelbox-operator.certificate" -}}
{{- if eq .Values.certs.mode "provided" }}{{ .Values.certs.provided.secretName }}{{ else }}modelbox-webhook-tls{{ end }}
{{- end }}

{{- /* The names in the singular of the kinds that the release does not have, as a list in YAML. */ -}}
{{- define "modelbox-operator.leftOut" -}}
{{- $kinds := join "," .Values.kinds | lower | splitList "," }}
{{- range $path, $crd := ternary dict (.Files.Glob "files/crds/*.yaml") (empty .Values.kinds) }}
{{- $kind := regexFind "singular: .*" (toString $crd) | trimPrefix "singular: " }}
{{- if not (has $kind $kinds) }}
- {{ $kind }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The objects of the files in a directory of files/, with more labels: list $ "network" (dict ...). */ -}}
{{- define "modelbox-operator.copy" -}}
{{- $root := index . 0 }}
{{- $more := index . 2 }}
{{- $leftOut := include "modelbox-operator.leftOut" $root | fromYamlArray }}
{{- range $path, $_ := $root.Files.Glob (printf "files/%s/*.yaml" (index . 1)) }}
{{- range splitList "\n---\n" ($root.Files.Get $path) }}
{{- with fromYaml . }}
{{- $kind := "" }}
{{- if eq .kind "CustomResourceDefinition" }}{{ $kind = .spec.names.singular }}{{ end }}
{{- if hasPrefix "ClusterRole" .kind }}{{ $kind = splitList "-" .metadata.name | last }}{{ end }}
{{- $webhooks := list }}
{{- range .webhooks }}{{ if not (has (index (splitList "." .name) 1) $leftOut) }}{{ $webhooks = append $webhooks . }}{{ end }}{{ end }}
{{- if .webhooks }}{{ $_ := set . "webhooks" $webhooks }}{{ end }}
{{- if not (has $kind $leftOut) }}
{{- $labels := merge dict (.metadata.labels | default dict) $more (include "modelbox-operator.labels" $root | fromYaml) }}
{{- $_ := set .metadata "labels" $labels }}
{{- include "modelbox-operator.configured" (list $root .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* An object as the values want it: list $ object. */ -}}
{{- define "modelbox-operator.configured" -}}
{{- $root := index . 0 }}
{{- $v := $root.Values }}
{{- $o := index . 1 }}
{{- $name := $o.metadata.name }}
{{- if eq $o.kind "CustomResourceDefinition" }}
{{- $_ := set $o.metadata.annotations "helm.sh/resource-policy" "keep" }}
{{- else if eq $o.kind "ResourceQuota" }}
{{- $_ := set (first $o.spec.scopeSelector.matchExpressions) "values" (list $v.priorityClassName) }}
{{- else if eq $o.kind "NetworkPolicy" }}
{{- if eq $name "modelbox-controller" }}{{ $_ := set $o.spec "egress" $v.network.controllerEgress }}{{ end }}
{{- if eq $name "modelbox-tracing" }}{{ $_ := set $o.spec "egress" $v.tracing.egress }}{{ end }}
{{- else if and (eq $o.kind "ValidatingAdmissionPolicy") (eq $name "modelbox-controller") }}
{{- $_ := set (first $o.spec.variables) "expression" (eq $v.certs.mode "self-managed" | toString) }}
{{- else if hasSuffix "WebhookConfiguration" $o.kind }}
{{- if eq $v.certs.mode "cert-manager" }}
{{- $_ := set $o.metadata "annotations" (dict "cert-manager.io/inject-ca-from" "modelbox-system/modelbox-webhook") }}
{{- end }}
{{- if eq $v.certs.mode "provided" }}
{{- range $o.webhooks }}{{ $_ := set .clientConfig "caBundle" (b64enc $v.certs.provided.caBundle) }}{{ end }}
{{- end }}
{{- else if hasPrefix "monitoring.coreos.com/" $o.apiVersion }}
{{- $_ := set $o.metadata "labels" (merge dict $v.monitoring.labels $o.metadata.labels) }}
{{- end }}
{{- if $v.namespaces }}
{{- include "modelbox-operator.limited" . }}
{{- else }}
{{- include "modelbox-operator.print" . }}
{{- end }}
{{- end }}

{{- /* An object of a release that is limited to namespaces, as hack/namespaced writes it: list $ object.
       Names of what is in no namespace, or not in that of the release, end in the release's. */ -}}
{{- define "modelbox-operator.limited" -}}
{{- $root := index . 0 }}
{{- $o := index . 1 }}
{{- $name := $o.metadata.name }}
{{- $selector := dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $root.Values.namespaces)) }}
{{- $suffix := printf "-%s" $root.Release.Namespace }}
{{- if hasPrefix "ClusterRole" $o.kind }}
{{- if hasKey $o.metadata.labels "rbac.authorization.k8s.io/aggregate-to-admin" }}
{{- include "modelbox-operator.print" . }}
{{- else }}
{{- $_ := set $o.metadata "name" (print $name $suffix) }}
{{- if $o.roleRef }}{{ $_ := set $o.roleRef "name" (print $name $suffix) }}{{ end }}
{{- if eq $name "modelbox-controller-certificate" }}
{{- range $o.rules }}{{ $_ := set . "resourceNames" (list (print "modelbox-webhook" $suffix)) }}{{ end }}
{{- include "modelbox-operator.print" . }}
{{- else }}
{{- $_ := set $o "kind" (trimPrefix "Cluster" $o.kind) }}
{{- if $o.roleRef }}{{ $_ := set $o.roleRef "kind" "Role" }}{{ end }}
{{- range $root.Values.namespaces }}
{{- $_ := set $o.metadata "namespace" . }}
{{- include "modelbox-operator.print" (list $root $o) }}
{{- end }}
{{- end }}
{{- end }}
{{- else }}
{{- if and (eq $o.kind "Role") (eq $name "modelbox-controller") }}
{{- range (first (splitList "\n---\n" ($root.Files.Get "files/controller/role.yaml")) | fromYaml).rules }}
{{- if has "events.k8s.io" .apiGroups }}{{ $_ := set $o "rules" (append $o.rules .) }}{{ end }}
{{- end }}
{{- else if hasPrefix "admissionregistration.k8s.io/" $o.apiVersion }}
{{- $_ := set $o.metadata "name" (print $name $suffix) }}
{{- range $o.webhooks }}{{ $_ := set . "namespaceSelector" $selector }}{{ end }}
{{- if hasSuffix "PolicyBinding" $o.kind }}
{{- /* The controller's policy bounds it in all namespaces. */ -}}
{{- if ne $o.spec.policyName "modelbox-controller" }}{{ $_ := set $o.spec "matchResources" (dict "namespaceSelector" $selector) }}{{ end }}
{{- $_ := set $o.spec "policyName" (print $o.spec.policyName $suffix) }}
{{- end }}
{{- end }}
{{- include "modelbox-operator.print" . }}
{{- end }}
{{- end }}

{{- /* An object, with the namespace of the release wherever config/ has modelbox-system: list $ object. */ -}}
{{- define "modelbox-operator.print" -}}
{{- $own := (index . 0).Release.Namespace }}
{{- $text := print (toYaml (index . 1)) "\n" }}
---
{{ regexReplaceAll "([:-] )modelbox-system\n" $text (printf "${1}%q\n" $own) | replace "modelbox-system" $own }}
{{- end }}
