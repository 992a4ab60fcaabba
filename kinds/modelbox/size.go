// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Sizes are the sizes of a cluster by their names, without the built-in ones. Of each spec, only
// the fields that a size defines are set, all of which are in sizeFields. It must not be changed.
type Sizes map[modelv1.ResourceType]*modelv1.ModelBoxSpec

// sizeFields are the fields of a spec that a size may define, but for the lists with keys.
var (
	sizeFields = kinds.NewFields(
		"args", "command", "image", "sharedMemory", "terminationGracePeriodSeconds", "resources.limits.*", "resources.requests.*",
		"scheduling.*", "strategy.*", "strategy.rollingUpdate.*",
		"readinessProbe.*", "readinessProbe.httpGet.*", "readinessProbe.tcpSocket.*",
		"startupProbe.*", "startupProbe.httpGet.*", "startupProbe.tcpSocket.*",
	)
	sizeValues = slices.Concat(sizeFields, kinds.NewFields("envs", "ports"))
)

// sized encodes and decodes all fields that have defaults.
var sized = kinds.Codec[modelv1.ModelBox](others)

func encoded(spec *modelv1.ModelBoxSpec) map[string]any {
	return sized.Spec(&modelv1.ModelBox{Spec: *spec})
}

func valuesOf(spec *modelv1.ModelBoxSpec) kinds.Leaves { return sizeValues.Of(encoded(spec)) }

// IsSize reports whether a resource type can be the name of a size of the cluster, of which only
// admission knows the values.
func IsSize(name modelv1.ResourceType) bool {
	return !slices.Contains(resourceTypes, name) && len(rules.Label(nil, string(name))) == 0
}

// size returns the current values of the size of a spec, nil if there is no such size.
func (d defaults) size(spec *modelv1.ModelBoxSpec) *modelv1.ModelBoxSpec {
	return d.sizes[spec.ResourceType]
}

// fill sets the values of a spec that are not set to those of another one which a size may define.
func fill(spec, from *modelv1.ModelBoxSpec) {
	box := &modelv1.ModelBox{Spec: *spec}
	tree := sized.Spec(box)
	sizeValues.Fill(tree, encoded(from))
	*spec = sized.With(box, tree).Spec
}

// setSize sets the values of the object's size. A size without resources has none.
func (d defaults) setSize(spec *modelv1.ModelBoxSpec) {
	size := d.size(spec)
	if size == nil {
		return
	}
	fill(spec, forModel(size, spec))
	if spec.Resources == nil {
		spec.Resources = &corev1.ResourceRequirements{}
	}
}

// keepsSize reports whether an object has the name of the size that it is stored with, and is stored
// with the values of it, as each one that admission has seen.
func keepsSize(box, stored *modelv1.ModelBox) bool {
	return sameSize(box, stored) && !isUnseen(stored) && stored.Spec.Resources != nil
}

func sameSize(box, stored *modelv1.ModelBox) bool {
	return stored != nil && IsSize(stored.Spec.ResourceType) && stored.Spec.ResourceType == box.Spec.ResourceType
}

// resizes reports whether an update is to write all current values of the size.
func resizes(box *modelv1.ModelBox) bool {
	return box.Annotations[modelv1.ResizeAnnotation] == strconv.FormatInt(box.Generation, 10)
}

// withoutDefaultProbes returns a stored spec without the probes that are set already, and without
// the default ones, which are derived.
func withoutDefaultProbes(stored, spec *modelv1.ModelBoxSpec) *modelv1.ModelBoxSpec {
	out := *stored
	out.ReadinessProbe = probeOfServer(stored.ReadinessProbe, spec.ReadinessProbe)
	out.StartupProbe = probeOfServer(stored.StartupProbe, spec.StartupProbe)
	return &out
}

func probeOfServer(stored, set *corev1.Probe) *corev1.Probe {
	if set != nil || !hasOtherAction(stored) {
		return nil
	}
	out := stored.DeepCopy()
	out.TCPSocket = nil
	return out
}

// Refuse returns the errors of an object with its defaults that only the sizes of the cluster show.
// They are judged here and nowhere else: admission stores the values of a size in the object, and a
// later change of the size is none of the object.
//
// A field that the size defines has its stored value or the size's current one. An update that
// changes no field of the pod template keeps the stored values, and one that does writes all
// current ones, except for the image: another one comes only with ResizeAnnotation, or with another
// resourceType. scheduling as a whole belongs to the size: what users may set there decides it.
func (s Sizes) Refuse(box, old *modelv1.ModelBox) field.ErrorList {
	return append(s.contradictions(box, old), s.serverless(box, old)...)
}

// contradictions returns the errors of values that the object may not have under its size.
func (s Sizes) contradictions(box, old *modelv1.ModelBox) (errs field.ErrorList) {
	spec := &box.Spec
	if !IsSize(spec.ResourceType) {
		return nil
	}
	var now, was kinds.Leaves
	size := s[spec.ResourceType]
	switch {
	case size != nil:
		errs, now = modelless(size, spec), valuesOf(forModel(size, spec))
	case !sameSize(box, old):
		names := append(slices.Sorted(maps.Keys(s)), resourceTypes...)
		return field.ErrorList{field.NotSupported(resourceTypePath, spec.ResourceType, names)}
	}
	if keepsSize(box, old) {
		was = valuesOf(&old.Spec)
	}
	is := valuesOf(spec).All
	slices.SortFunc(is, func(a, b *kinds.Leaf) int { return a.Path.Compare(b.Path) })
	for _, leaf := range is {
		if !isFree(leaf, &now, size) && !now.HasEqual(leaf) && !was.HasEqual(leaf) {
			errs = append(errs, another(leaf, &now, spec.ResourceType))
		}
	}
	return errs
}

// another returns the error of a value that is not the one of the size, if that has one.
func another(leaf *kinds.Leaf, size *kinds.Leaves, name modelv1.ResourceType) *field.Error {
	as := ""
	if of := size.At(leaf); of != nil {
		text, err := json.Marshal(of.Value)
		if err == nil { // It was decoded from JSON.
			as = " as " + string(text)
		}
	}
	return field.Invalid(pathOf(leaf), leaf.Value, "resourceType "+string(name)+" defines it"+as+
		"; remove it, or set resourceType: custom to use other values")
}

// isFree reports whether users may set a value: one that the size does not define. scheduling is the
// size's, and so is a strategy of which the size has a part. Of a size that the cluster does not have,
// these are what a server defines, which users without sizes may set.
func isFree(leaf *kinds.Leaf, values *kinds.Leaves, size *modelv1.ModelBoxSpec) bool {
	if size == nil {
		return !slices.Contains([]string{"resources", "scheduling", "sharedMemory", "strategy"}, leaf.Top())
	}
	return values.At(leaf) == nil && leaf.Top() != "scheduling" && (leaf.Top() != "strategy" || size.Strategy == nil)
}

// pathOf returns the path of a value's field.
func pathOf(leaf *kinds.Leaf) *field.Path {
	path := spec
	for i, element := range leaf.Path {
		if i == 2 && leaf.Top() == "resources" {
			path = path.Key(*element.FieldName)
		} else {
			path = path.Child(*element.FieldName)
		}
	}
	return path
}

// What the arguments and the environment variables of a size's server may name of the object's
// model.
const (
	// ModelPath is the directory in which the main container sees spec.model.
	ModelPath = "${model.path}"
	// ModelFile is the one file in it: that of https://, http:// and s3://, and that of hf:// if the URI has a path,
	// or include is one name without wildcards.
	ModelFile = "${model.file}"
)

// ReplaceInServer returns a copy of a spec in whose arguments and values of environment variables
// the texts are replaced, which are pairs of old and new ones.
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
func mainModel(spec *modelv1.ModelBoxSpec) *models.Model {
	if all := models.Of(spec); len(all) > 0 && all[0].Name == "" {
		return &all[0]
	}
	return nil
}

// fileOf returns the name of a model's only file, "" if it is not known.
func fileOf(model *models.Model) string {
	if len(model.Include) == 1 && !strings.ContainsAny(model.Include[0], `*?[\`) {
		return model.Include[0]
	}
	if uri, err := modeluri.Parse(model.URI); err == nil && uri.Path != "" {
		return uri.Path
	}
	return model.From.File
}

// modelless returns an error if the server of the object's size names a model that the object does
// not have.
func modelless(size, spec *modelv1.ModelBoxSpec) field.ErrorList {
	of := "the server of resourceType " + string(spec.ResourceType)
	model := mainModel(spec)
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
func (s Sizes) serverless(box, old *modelv1.ModelBox) field.ErrorList {
	if box.Spec.Image != "" || old != nil && old.Spec.Image == "" {
		return nil
	}
	var servers []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name].Image != "" {
			servers = append(servers, string(name))
		}
	}
	if len(servers) == 0 {
		return nil
	}
	return field.ErrorList{field.Required(imagePath, "specify an image such as registry.example.com/team/server:1.2, "+
		"or a resourceType that has a server: "+strings.Join(servers, ", "))}
}
