// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models says what spec.model becomes in a pod: it reads the URI, and builds the
// volume, its mount, and the container that fetches. It does no I/O.
package models

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Model is a model of a ModelBox with its URI and its defaults.
type Model struct {
	// NamedModel has no name if it is spec.model.
	modelv1.NamedModel
	// At is its path in the object.
	At *field.Path
	// From is what its URI stands for, and Err why it stands for nothing.
	From URI
	Err  error
}

// Of returns the models of a ModelBox: first spec.model, also where only spec.modelFileURL is set,
// and then spec.models.
func Of(spec *modelv1.ModelBoxSpec) []Model {
	root := field.NewPath("spec")
	var all []Model
	if spec.Model != nil || spec.ModelFileURL != "" {
		first := modelv1.NamedModel{}
		if spec.Model != nil {
			first.Model = *spec.Model
		}
		first.URI = spec.ModelURI()
		all = append(all, Model{NamedModel: first, At: root.Child("model")})
	}
	for i := range spec.Models {
		all = append(all, Model{NamedModel: spec.Models[i], At: root.Child("models").Index(i)})
	}
	for i := range all {
		all[i].complete()
	}
	return all
}

func (m *Model) complete() {
	m.MountPath = cmp.Or(m.MountPath, modelv1.DefaultModelMountPath)
	if m.SizeLimit == nil {
		m.SizeLimit = new(resource.MustParse(modelv1.DefaultModelSizeLimit))
	}
	m.From, m.Err = Parse(m.URI)
}

// CanChange reports whether a pod that fetches the model later may get other bytes: neither a hash nor
// the commit of a hub says which ones they are.
func (m *Model) CanChange() bool {
	return m.From.IsFetched() && m.From.Scheme != Hub && m.SHA256 == ""
}

// VolumeName returns the name of the volume with the model.
func (m *Model) VolumeName() string {
	if m.Name == "" {
		return Volume
	}
	return Volume + "-" + m.Name
}

func (m *Model) volumeSource() corev1.VolumeSource {
	switch {
	case m.From.Scheme == Image:
		return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: m.From.Image, PullPolicy: corev1.PullIfNotPresent}}
	case m.From.Scheme == Claim:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.From.Claim, ReadOnly: true}}
	case m.Claim != "":
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Claim}}
	}
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: m.SizeLimit}}
}

// Directory returns the name of a fetched model's directory in its volume. In a claim, models that
// differ have different names, and equal ones have the same: the hash of what is fetched, with
// that of the file's name, which decides whether it is unpacked and what it is called; or that of
// the URI, and of the patterns, which decide the files.
func (m *Model) Directory() string {
	switch {
	case m.Claim == "":
		return ownDirectory
	case m.From.Scheme == Hub && len(m.Include)+len(m.Exclude) == 0:
		return hexOf(m.URI)
	case m.From.Scheme == Hub: // No URI and no pattern has a control character.
		return hexOf(m.URI + "\n" + strings.Join(m.Include, "\n") + "\n\n" + strings.Join(m.Exclude, "\n"))
	}
	const nameDigits = 8
	return strings.ToLower(m.SHA256) + "-" + hexOf(m.From.File)[:nameDigits]
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// envPrefix begins the variables of a model's Secret, so that no model gets those of another one.
// Without a name, as spec.model, there is none.
func (m *Model) envPrefix() string {
	if m.Name == "" {
		return ""
	}
	return "MODEL_" + strings.ToUpper(strings.ReplaceAll(m.Name, "-", "_")) + "__"
}
