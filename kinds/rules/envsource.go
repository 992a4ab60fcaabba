// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// valueFrom validates the source of a variable, which must be exactly one.
func valueFrom(path *field.Path, v *corev1.EnvVar) field.ErrorList {
	var errs field.ErrorList
	path = path.Child("valueFrom")
	switch sources := countSources(v.ValueFrom); {
	case sources == 0:
		errs = append(errs, field.Required(path,
			"must specify one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef"))
	case sources > 1:
		errs = append(errs, field.Forbidden(path, "may not have more than one source; use several variables"))
	case v.Value != "":
		errs = append(errs, field.Forbidden(path, "may not be set together with value; remove one of them"))
	}
	errs = append(errs, keySources(path, v.ValueFrom)...)
	return append(errs, downwardAPISources(path, v.ValueFrom)...)
}

func countSources(from *corev1.EnvVarSource) int {
	n := 0
	for _, set := range [...]bool{
		from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil,
		from.SecretKeyRef != nil, from.FileKeyRef != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// keySources validates the sources that refer to a key.
func keySources(path *field.Path, from *corev1.EnvVarSource) field.ErrorList {
	var errs field.ErrorList
	if ref := from.ConfigMapKeyRef; ref != nil {
		errs = append(errs, keyRef(path.Child("configMapKeyRef"), ref.Name, ref.Key)...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		errs = append(errs, keyRef(path.Child("secretKeyRef"), ref.Name, ref.Key)...)
	}
	if ref := from.FileKeyRef; ref != nil {
		errs = append(errs, fileKey(path.Child("fileKeyRef"), ref)...)
	}
	return errs
}

func keyRef(path *field.Path, name, key string) field.ErrorList {
	errs := objectRef(path, name, false)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), "a key is required"))
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		errs = append(errs, field.Invalid(path.Child("key"), key,
			"must be 1 to 253 letters, digits, dashes, underscores and dots, and not start with two dots"))
	}
	return errs
}

// ObjectReference validates the name in a reference to a ConfigMap or a Secret.
func ObjectReference(path *field.Path, name string) field.ErrorList {
	return objectRef(path, name, false)
}

// objectRef is ObjectReference. In envFrom, Kubernetes accepts names that end with a dash, as a
// prefix may.
func objectRef(path *field.Path, name string, prefix bool) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "a name is required")}
	}
	if len(apivalidation.NameIsDNSSubdomain(name, prefix)) > 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), name,
			"must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots")}
	}
	return nil
}

func fileKey(path *field.Path, ref *corev1.FileKeySelector) field.ErrorList {
	errs := Label(path.Child("volumeName"), ref.VolumeName)
	if len(validation.IsRelaxedEnvVarName(ref.Key)) > 0 {
		errs = append(errs, field.Invalid(path.Child("key"), ref.Key, envName))
	}
	if ref.Path == "" || slices.Contains(strings.Split(ref.Path, "/"), "..") {
		errs = append(errs, field.Invalid(path.Child("path"), ref.Path, "must be a path in the volume that does not contain '..'"))
	}
	return errs
}

// The fields and resources that the downward API supports in environment variables:
// https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
var (
	podFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	containerResources = []string{
		"limits.cpu", "limits.memory", "limits.ephemeral-storage",
		"requests.cpu", "requests.memory", "requests.ephemeral-storage",
	}
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

// downwardAPISources validates the sources of the downward API.
func downwardAPISources(path *field.Path, from *corev1.EnvVarSource) field.ErrorList {
	var errs field.ErrorList
	if ref := from.FieldRef; ref != nil {
		if ref.APIVersion != "" && ref.APIVersion != "v1" {
			errs = append(errs, field.NotSupported(path.Child("fieldRef", "apiVersion"), ref.APIVersion, []string{"v1"}))
		}
		if !isPodField(ref.FieldPath) {
			errs = append(errs, field.NotSupported(path.Child("fieldRef", "fieldPath"), ref.FieldPath,
				append([]string{"metadata.labels['key']", "metadata.annotations['key']"}, podFields...)))
		}
	}
	if ref := from.ResourceFieldRef; ref != nil {
		errs = append(errs, containerResource(path.Child("resourceFieldRef"), ref)...)
	}
	return errs
}

func containerResource(path *field.Path, ref *corev1.ResourceFieldSelector) field.ErrorList {
	if !isContainerResource(ref.Resource) {
		return field.ErrorList{field.NotSupported(path.Child("resource"), ref.Resource, containerResources)}
	}
	known := byteDivisors
	if strings.HasSuffix(ref.Resource, ".cpu") {
		known = cpuDivisors
	}
	if divisor := ref.Divisor.String(); !ref.Divisor.IsZero() && !slices.Contains(known, divisor) {
		return field.ErrorList{field.NotSupported(path.Child("divisor"), divisor, known)}
	}
	return nil
}

func isPodField(fieldPath string) bool {
	of, key, subscript := strings.Cut(fieldPath, "['")
	key, closed := strings.CutSuffix(key, "']")
	switch {
	case !subscript:
		return slices.Contains(podFields, fieldPath)
	case of == "metadata.annotations":
		// The keys of annotations may be in upper case, prefix and all.
		key = strings.ToLower(key)
	case of != "metadata.labels":
		return false
	}
	return closed && len(validation.IsQualifiedName(key)) == 0
}

func isContainerResource(name string) bool {
	return strings.HasPrefix(name, "limits.hugepages-") || strings.HasPrefix(name, "requests.hugepages-") ||
		slices.Contains(containerResources, name)
}
