// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
)

// What the arguments and the environment variables of a size's server may name of the object's model.
const (
	// ModelPath is the directory in which the main container sees spec.model.
	ModelPath = "${model.path}"
	// ModelFile is the one file in it: that of https://, http:// and s3://, and that of hf:// if the URI has a path,
	// or include is one name without wildcards.
	ModelFile = "${model.file}"
)

// ReplaceInServer returns a copy of a spec in whose arguments and values of environment variables the texts are
// replaced, which are pairs of old and new ones.
func ReplaceInServer(spec *modelv1.ModelBoxSpec, pairs ...string) *modelv1.ModelBoxSpec {
	out, replace := spec.DeepCopy(), strings.NewReplacer(pairs...).Replace
	for i := range out.Args {
		out.Args[i] = replace(out.Args[i])
	}
	for i := range out.Envs {
		out.Envs[i].Value = replace(out.Envs[i].Value)
	}
	return out
}

// names reports whether the server of a size names a text.
func names(size *modelv1.ModelBoxSpec, text string) bool {
	return slices.ContainsFunc(size.Args, func(arg string) bool { return strings.Contains(arg, text) }) ||
		slices.ContainsFunc(size.Envs, func(env corev1.EnvVar) bool { return strings.Contains(env.Value, text) })
}

// forModel returns the spec of a size with the paths of an object's model.
func forModel(size, spec *modelv1.ModelBoxSpec) *modelv1.ModelBoxSpec {
	model := mainModel(spec)
	if model == nil || !names(size, ModelPath) && !names(size, ModelFile) {
		return size
	}
	pairs := []string{ModelPath, model.MountPath}
	if file := fileOf(model); file != "" {
		pairs = append(pairs, ModelFile, model.MountPath+"/"+file)
	}
	return ReplaceInServer(size, pairs...)
}

// mainModel returns spec.model, nil if there is none.
func mainModel(spec *modelv1.ModelBoxSpec) *modelsource.Model {
	if models := modelsource.Of(spec); len(models) > 0 && models[0].Name == "" {
		return &models[0]
	}
	return nil
}

// fileOf returns the name of a model's only file, "" if it is not known.
func fileOf(model *modelsource.Model) string {
	if len(model.Include) == 1 && !strings.ContainsAny(model.Include[0], `*?[\`) {
		return model.Include[0]
	}
	if uri, err := modeluri.Parse(model.URI); err == nil && uri.Path != "" {
		return uri.Path
	}
	return model.From.File
}

// modelless returns an error if the server of the object's size names a model that the object does not have.
func (d *defaults) modelless() field.ErrorList {
	size, known := d.sizes[d.spec.ResourceType]
	if !known {
		return nil
	}
	of := "the server of resourceType " + string(d.spec.ResourceType)
	model := mainModel(d.spec)
	switch {
	case model == nil && (names(size, ModelPath) || names(size, ModelFile)):
		return field.ErrorList{field.Required(modelPath, of+" needs a model; set it")}
	case model != nil && names(size, ModelFile) && fileOf(model) == "":
		return field.ErrorList{field.Invalid(modelPath.Child("uri"), model.URI, of+" reads one file; "+
			"use the URI of a file, such as hf://org/name@commit/file")}
	}
	return nil
}

// serverless returns an error that names the sizes with a server if the object has no image.
func (d *defaults) serverless() field.ErrorList {
	if d.spec.Image != "" || d.old != nil && d.old.Image == "" {
		return nil
	}
	var servers []string
	for _, name := range slices.Sorted(maps.Keys(d.sizes)) {
		if d.sizes[name].Image != "" {
			servers = append(servers, string(name))
		}
	}
	if len(servers) == 0 {
		return nil
	}
	return field.ErrorList{field.Required(imagePath, "specify an image such as registry.example.com/team/server:1.2, "+
		"or a resourceType that has a server: "+strings.Join(servers, ", "))}
}
