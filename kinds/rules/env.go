// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxEnv is the maximum number of environment variables of an object.
	MaxEnv = 1024
	// MaxEnvFrom is the maximum number of sources of environment variables.
	MaxEnvFrom = 64
)

const envName = "must consist of printable ASCII characters other than '='"

// Env validates the environment variables of a container. Their names may have any
// characters that Kubernetes allows since 1.34 (KEP-4369). They must be unique: a
// Deployment with a repeated name could be created, but not be applied afterwards. A list
// of more than MaxEnv is refused as a whole.
func Env(path *field.Path, vars []corev1.EnvVar) field.ErrorList {
	if len(vars) > MaxEnv {
		return field.ErrorList{field.TooMany(path, len(vars), MaxEnv)}
	}
	var errs field.ErrorList
	for i := range vars {
		v := &vars[i]
		if v.Name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), "a name is required"))
		} else if len(validation.IsRelaxedEnvVarName(v.Name)) > 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), v.Name, envName))
		}
		if v.ValueFrom != nil {
			errs = append(errs, valueFrom(path.Index(i), v)...)
		}
	}
	return append(errs, UniqueEnv(path, vars)...)
}

// UniqueEnv refuses repeated names of environment variables.
func UniqueEnv(path *field.Path, vars []corev1.EnvVar) field.ErrorList {
	return Unique(path, "name", vars, func(v *corev1.EnvVar) string { return v.Name })
}

// FileKeys refuses variables from a file of a volume if there is no pod template, because
// the pod has no volumes then. With a template, package podvalidation validates them.
func FileKeys(path *field.Path, vars []corev1.EnvVar, template *corev1.PodTemplateSpec) field.ErrorList {
	if template != nil {
		return nil
	}
	var errs field.ErrorList
	for i := range vars {
		if from := vars[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			errs = append(errs, field.NotFound(path.Index(i).Child("valueFrom", "fileKeyRef", "volumeName"), from.FileKeyRef.VolumeName))
		}
	}
	return errs
}

// EnvFrom validates the ConfigMaps and Secrets whose keys become environment variables.
func EnvFrom(path *field.Path, list []corev1.EnvFromSource) field.ErrorList {
	if len(list) > MaxEnvFrom {
		return field.ErrorList{field.TooMany(path, len(list), MaxEnvFrom)}
	}
	var errs field.ErrorList
	for i := range list {
		from, at := &list[i], path.Index(i)
		if from.Prefix != "" && len(validation.IsRelaxedEnvVarName(from.Prefix)) > 0 {
			errs = append(errs, field.Invalid(at.Child("prefix"), from.Prefix, envName))
		}
		if from.ConfigMapRef != nil {
			errs = append(errs, objectRef(at.Child("configMapRef"), from.ConfigMapRef.Name, true)...)
		}
		if from.SecretRef != nil {
			errs = append(errs, objectRef(at.Child("secretRef"), from.SecretRef.Name, true)...)
		}
		if (from.ConfigMapRef == nil) == (from.SecretRef == nil) {
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must specify exactly one of configMapRef and secretRef"))
		}
	}
	return errs
}
