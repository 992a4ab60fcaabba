// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const exampleModel = "such as https://models.example.com/bert.tar.zst"

var sha256Text = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// maxModels and maxPatterns are the bounds of the schema.
const maxModels, maxPatterns = 8, 16

// validateModels returns the errors of spec.model, of its alias spec.modelFileURL, and of
// spec.models. With any of them no pod is built: it would start without its model, or with another
// one.
func validateModels(spec *modelv1.ModelBoxSpec) (errs field.ErrorList) {
	all := models.Of(spec)
	if spec.ModelFileURL != "" && spec.ModelFileURL != all[0].URI {
		errs = append(errs, field.Forbidden(modelFileURLPath, "is an alias of spec.model.uri, which has another value; remove one of them"))
	}
	if len(spec.Models) > maxModels {
		return rules.MarkUnbuildable(append(errs, field.TooMany(modelsPath, len(spec.Models), maxModels))...)
	}
	for i := range all {
		errs = append(errs, modelName(spec, all[:i], &all[i])...)
		errs = append(errs, model(spec, &all[i])...)
		errs = append(errs, modelBeside(all[:i], &all[i])...)
	}
	return rules.MarkUnbuildable(errs...)
}

// modelNamed matches the names of spec.models.
var modelNamed = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// modelName returns the errors of the name of one of spec.models.
func modelName(spec *modelv1.ModelBoxSpec, before []models.Model, m *models.Model) field.ErrorList {
	const maxName = 40
	at := m.At.Child("name")
	switch {
	case len(before) == 0 && (spec.Model != nil || spec.ModelFileURL != ""):
		return nil // It is spec.model.
	case m.Name == "":
		return field.ErrorList{field.Required(at, "the volume of the model is called by it")}
	case len(m.Name) > maxName || !modelNamed.MatchString(m.Name):
		return field.ErrorList{field.Invalid(at, m.Name, "must be 1 to 40 lower-case letters, digits and single dashes, such as draft or lora-1")}
	case slices.ContainsFunc(before, func(other models.Model) bool { return other.Name == m.Name }):
		return field.ErrorList{field.Duplicate(at, m.Name)}
	}
	return nil
}

// modelBeside returns the errors of a model that is where an earlier one is.
func modelBeside(before []models.Model, m *models.Model) (errs field.ErrorList) {
	below := func(a, b string) bool { return strings.HasPrefix(a+"/", b+"/") }
	for i := range before {
		other := &before[i]
		if below(m.MountPath, other.MountPath) || below(other.MountPath, m.MountPath) {
			errs = append(errs, field.Invalid(m.At.Child("mountPath"), m.MountPath,
				other.At.String()+" is mounted at "+other.MountPath+"; use a path that is neither that one, nor below or above it"))
		}
		if m.Claim != "" && m.Claim == other.Claim && m.Directory() == other.Directory() {
			errs = append(errs, field.Invalid(m.At.Child("claim"), m.Claim, "has the same model for "+other.At.String()+"; remove one of them"))
		}
	}
	return errs
}

// model returns the errors of one model.
func model(spec *modelv1.ModelBoxSpec, m *models.Model) (errs field.ErrorList) {
	if m.URI == "" {
		return field.ErrorList{field.Required(m.At.Child("uri"), exampleModel+"; set it, or remove "+m.At.String())}
	}
	if m.Err != nil {
		return field.ErrorList{field.Invalid(uriPath(spec, m), m.URI, m.Err.Error())}
	}
	errs = append(errs, modelHash(m)...)
	errs = append(errs, modelVolumeErrors(spec, m)...)
	errs = append(errs, modelNames(m)...)
	errs = append(errs, modelPatterns(m)...)
	if !m.From.IsFetched() {
		errs = append(errs, notFetched(m)...)
	}
	return errs
}

// modelPatterns returns the errors of include and exclude: the program that fetches reads patterns
// with the same function.
func modelPatterns(m *models.Model) (errs field.ErrorList) {
	for _, list := range [...]struct {
		name     string
		patterns []string
	}{{"include", m.Include}, {"exclude", m.Exclude}} {
		at := m.At.Child(list.name)
		switch {
		case len(list.patterns) > maxPatterns:
			errs = append(errs, field.TooMany(at, len(list.patterns), maxPatterns))
			continue
		case len(list.patterns) > 0 && m.From.Scheme != models.Hub && !m.From.Folder:
			errs = append(errs, field.Forbidden(at, "selects files of hf:// and of a folder of s3://, and here is nothing to select; remove it"))
			continue
		}
		for i, pattern := range list.patterns {
			if _, err := modeluri.ParsePattern(pattern); err != nil {
				errs = append(errs, field.Invalid(at.Index(i), pattern, err.Error()))
			}
		}
	}
	return errs
}

// uriPath returns the path of the field that has the URI.
func uriPath(spec *modelv1.ModelBoxSpec, m *models.Model) *field.Path {
	if m.Name == "" && spec.ModelFileURL != "" && (spec.Model == nil || spec.Model.URI == "") {
		return modelFileURLPath
	}
	return m.At.Child("uri")
}

// modelHash returns the errors of sha256: whether there must be one, depends on the scheme.
func modelHash(of *models.Model) field.ErrorList {
	at, uri := of.At.Child("sha256"), &of.From
	if uri.Folder {
		return modelFolder(of, at)
	}
	switch {
	case of.SHA256 != "" && !sha256Text.MatchString(of.SHA256):
		return field.ErrorList{field.Invalid(at, of.SHA256, "must be a SHA-256 of 64 hexadecimal digits, as sha256sum prints it")}
	case of.SHA256 != "" && uri.Scheme == models.Hub:
		return field.ErrorList{field.Forbidden(at, "may not be set for hf://, whose files are verified by the hashes that the hub publishes; remove it")}
	case of.SHA256 != "":
		return nil
	case uri.Scheme == models.HTTP:
		return field.ErrorList{field.Required(at, "http:// has nothing else that protects what is fetched; set it, or use https://")}
	case of.Claim != "" && (uri.Scheme == models.HTTPS || uri.Scheme == models.S3):
		return field.ErrorList{field.Required(at, "pods find the model in spec.model.claim by its hash; set it, or remove the claim")}
	}
	return nil
}

// modelFolder returns the errors of a folder of a bucket, which has several files, and can change.
func modelFolder(of *models.Model, sha256 *field.Path) (errs field.ErrorList) {
	if of.SHA256 != "" {
		errs = append(errs, field.Forbidden(sha256, "may not be set for a folder of a bucket, whose files are verified by the checksums that the bucket has; remove it"))
	}
	if of.Claim != "" {
		errs = append(errs, field.Forbidden(of.At.Child("claim"), "may not be set for a folder of a bucket, which can change; remove it, or use one archive with spec.model.sha256"))
	}
	return errs
}

// modelVolumeErrors returns the errors of mountPath and sizeLimit.
func modelVolumeErrors(spec *modelv1.ModelBoxSpec, of *models.Model) field.ErrorList {
	const maxPath = 1024
	var errs field.ErrorList
	at := of.At.Child("mountPath")
	switch {
	case len(of.MountPath) > maxPath:
		errs = append(errs, field.TooLong(at, "", maxPath))
	case !path.IsAbs(of.MountPath) || path.Clean(of.MountPath) != of.MountPath || of.MountPath == "/" || strings.Contains(of.MountPath, ":"):
		errs = append(errs, field.Invalid(at, of.MountPath, `must be an absolute path such as /models, without a colon, an empty segment, "." and ".."`))
	case spec.SharedMemory != nil && of.MountPath == rules.SharedMemoryPath:
		errs = append(errs, field.Invalid(at, of.MountPath, "spec.sharedMemory is mounted there; use another path"))
	}
	if of.SizeLimit.Sign() <= 0 {
		errs = append(errs, field.Invalid(of.At.Child("sizeLimit"), of.SizeLimit.String(), "must be greater than 0"))
	}
	return errs
}

// modelNames returns the errors of the names of the Secret and of the claim.
func modelNames(of *models.Model) field.ErrorList {
	var errs field.ErrorList
	if of.Credentials != nil {
		errs = append(errs, rules.ObjectOf("Secret", of.At.Child("credentials", "name"), of.Credentials.Name)...)
	}
	if of.Claim != "" {
		errs = append(errs, rules.ObjectOf("PersistentVolumeClaim", of.At.Child("claim"), of.Claim)...)
	}
	return errs
}

// notFetched returns the errors of fields that have no effect for an image or a claim.
func notFetched(of *models.Model) field.ErrorList {
	scheme := of.From.Scheme
	remove := "may not be set for " + scheme + "://, which is mounted as it is; remove it"
	if scheme == models.Image {
		remove += " (the digest in the URI is verified, and spec.imagePullSecrets has the credentials)"
	}
	var errs field.ErrorList
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"claim", of.Claim != ""},
		{"credentials", of.Credentials != nil},
		{"sha256", of.SHA256 != ""},
		{"sizeLimit", of.SizeLimit.Cmp(resource.MustParse(modelv1.DefaultModelSizeLimit)) != 0},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(of.At.Child(f.name), remove))
		}
	}
	return errs
}

// modelWarnings returns warnings on models that can change without a change of the object, or
// whose credentials can be read on the network.
func modelWarnings(spec *modelv1.ModelBoxSpec) (out []string) {
	all := models.Of(spec)
	for i := range all {
		m := &all[i]
		switch {
		case m.Err != nil:
		case m.SHA256 == "" && !m.From.Folder && (m.From.Scheme == models.HTTPS || m.From.Scheme == models.S3):
			out = append(out, uriPath(spec, m).String()+": what it refers to can change; set "+m.At.String()+".sha256")
		case m.Credentials != nil && m.From.Scheme == models.HTTP:
			out = append(out, uriPath(spec, m).String()+": http:// sends the credentials unencrypted; use https://")
		}
	}
	return out
}
