// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const exampleModel = "such as https://models.example.com/bert.tar.zst"

var sha256Text = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// model returns the errors of spec.model and of its alias spec.modelFileURL. With any of them
// no pod is built: it would start without its model, or with another one.
func model(spec *modelv1.ModelBoxSpec) field.ErrorList {
	of := spec.ModelOrDefault()
	if of == nil {
		return nil
	}
	var errs field.ErrorList
	if spec.ModelFileURL != "" && spec.ModelFileURL != of.URI {
		errs = append(errs, field.Forbidden(modelFileURLPath, "is an alias of spec.model.uri, which has another value; remove one of them"))
	}
	if of.URI == "" {
		return rules.MarkUnbuildable(append(errs, field.Required(modelPath.Child("uri"), exampleModel+"; set it, or remove spec.model"))...)
	}
	uri, err := modelsource.Parse(of.URI)
	if err != nil {
		return rules.MarkUnbuildable(append(errs, field.Invalid(uriPath(spec), of.URI, err.Error()))...)
	}
	errs = append(errs, modelHash(of, uri)...)
	errs = append(errs, modelVolumeErrors(spec, of)...)
	errs = append(errs, modelNames(of)...)
	if !uri.IsFetched() {
		errs = append(errs, notFetched(of, uri.Scheme)...)
	}
	return rules.MarkUnbuildable(errs...)
}

// uriPath returns the path of the field that has the URI.
func uriPath(spec *modelv1.ModelBoxSpec) *field.Path {
	if spec.Model != nil && spec.Model.URI != "" {
		return modelPath.Child("uri")
	}
	return modelFileURLPath
}

// modelHash returns the errors of sha256: whether there must be one, depends on the scheme.
func modelHash(of *modelv1.Model, uri modelsource.URI) field.ErrorList {
	at := modelPath.Child("sha256")
	switch {
	case of.SHA256 != "" && !sha256Text.MatchString(of.SHA256):
		return field.ErrorList{field.Invalid(at, of.SHA256, "must be a SHA-256 of 64 hexadecimal digits, as sha256sum prints it")}
	case of.SHA256 != "" && uri.Scheme == modelsource.Hub:
		return field.ErrorList{field.Forbidden(at, "may not be set for hf://, whose files are verified by the hashes that the hub publishes; remove it")}
	case of.SHA256 != "":
		return nil
	case uri.Scheme == modelsource.HTTP:
		return field.ErrorList{field.Required(at, "http:// has nothing else that protects what is fetched; set it, or use https://")}
	case of.Claim != "" && (uri.Scheme == modelsource.HTTPS || uri.Scheme == modelsource.S3):
		return field.ErrorList{field.Required(at, "pods find the model in spec.model.claim by its hash; set it, or remove the claim")}
	}
	return nil
}

// modelVolumeErrors returns the errors of mountPath and sizeLimit.
func modelVolumeErrors(spec *modelv1.ModelBoxSpec, of *modelv1.Model) field.ErrorList {
	const maxPath = 1024
	var errs field.ErrorList
	at := modelPath.Child("mountPath")
	switch {
	case len(of.MountPath) > maxPath:
		errs = append(errs, field.TooLong(at, "", maxPath))
	case !path.IsAbs(of.MountPath) || path.Clean(of.MountPath) != of.MountPath || of.MountPath == "/" || strings.Contains(of.MountPath, ":"):
		errs = append(errs, field.Invalid(at, of.MountPath, `must be an absolute path such as /models, without a colon, an empty segment, "." and ".."`))
	case spec.SharedMemory != nil && of.MountPath == rules.SharedMemoryPath:
		errs = append(errs, field.Invalid(at, of.MountPath, "spec.sharedMemory is mounted there; use another path"))
	}
	if of.SizeLimit.Sign() <= 0 {
		errs = append(errs, field.Invalid(modelPath.Child("sizeLimit"), of.SizeLimit.String(), "must be greater than 0"))
	}
	return errs
}

// modelNames returns the errors of the names of the Secret and of the claim.
func modelNames(of *modelv1.Model) field.ErrorList {
	var errs field.ErrorList
	if of.Credentials != nil {
		errs = append(errs, objectName(modelPath.Child("credentials", "name"), of.Credentials.Name)...)
	}
	if of.Claim != "" {
		errs = append(errs, objectName(modelPath.Child("claim"), of.Claim)...)
	}
	return errs
}

func objectName(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "a name is required")}
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return field.ErrorList{field.Invalid(path, name, "must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots")}
	}
	return nil
}

// notFetched returns the errors of fields that have no effect for an image or a claim.
func notFetched(of *modelv1.Model, scheme string) field.ErrorList {
	remove := "may not be set for " + scheme + "://, which is mounted as it is; remove it"
	if scheme == modelsource.Image {
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
			errs = append(errs, field.Forbidden(modelPath.Child(f.name), remove))
		}
	}
	return errs
}

// modelWarnings returns warnings on a model that can change without a change of the object, or
// whose credentials can be read on the network.
func modelWarnings(spec *modelv1.ModelBoxSpec) []string {
	of := spec.ModelOrDefault()
	if of == nil {
		return nil
	}
	uri, err := modelsource.Parse(of.URI)
	switch {
	case err != nil:
	case of.SHA256 == "" && (uri.Scheme == modelsource.HTTPS || uri.Scheme == modelsource.S3):
		return []string{uriPath(spec).String() + ": what it refers to can change; set spec.model.sha256"}
	case of.Credentials != nil && uri.Scheme == modelsource.HTTP:
		return []string{uriPath(spec).String() + ": http:// sends the credentials unencrypted; use https://"}
	}
	return nil
}
