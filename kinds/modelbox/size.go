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
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Sizes are the sizes of a cluster by their names, without the built-in ones. Of each spec, only
// the fields that a size defines are set, all of which are in sizeFields. It must not be changed.
type Sizes map[modelv1.ResourceType]*modelv1.ModelBoxSpec

// Admit sets the defaults of box as Default does, and the fields that its size defines. It returns
// the errors that only the sizes of the cluster show, which are judged here and nowhere else:
// admission stores the values of a size in the object, and a later change of the size is none of
// the object.
//
// A field that the size defines has its stored value or the size's current one. An update that
// changes no field of the pod template keeps the stored values, and one that does writes all
// current ones, except for the image: another one comes only with ResizeAnnotation, or with another
// resourceType. scheduling as a whole belongs to the size: what users may set there decides it.
func Admit(box, old *modelv1.ModelBox, sizes Sizes, ops *patch.Ops) field.ErrorList {
	d := newDefaults(box, old, ops)
	d.sizes, d.admits = sizes, true
	d.all()
	return append(d.contradictions(), d.serverless()...)
}

// IsSize reports whether a resource type can be the name of a size of the cluster, of which only
// admission knows the values.
func IsSize(name modelv1.ResourceType) bool {
	return !slices.Contains(resourceTypes, name) && len(rules.Label(nil, string(name))) == 0
}

// isOfSizes reports whether sizes define the field that a value is in.
func isOfSizes(at string) bool { return slices.Contains(sizeFields[:], namesOf(at)[1]) }

// sameSize reports whether the object names the size that it is stored with, and keepsSize whether
// it is stored with its values too, which it is not if admission has never seen it.
func (d *defaults) sameSize() bool {
	return d.old != nil && IsSize(d.old.ResourceType) && d.old.ResourceType == d.spec.ResourceType
}

func (d *defaults) keepsSize() bool { return d.sameSize() && !isUnseen(d.stored) }

// resizes reports whether the update is to write all current values of the size.
func (d *defaults) resizes() bool {
	return d.old != nil && d.box.Annotations[modelv1.ResizeAnnotation] == strconv.FormatInt(d.box.Generation, 10)
}

// current returns the values of the object's size now, and false if there is no such size.
func (d *defaults) current() (now values, known bool) {
	size, known := d.sizes[d.spec.ResourceType]
	if !known {
		return values{}, false
	}
	return d.valuesOf(forModel(size, d.spec)), true
}

// size sets the values of the object's size. Without the sizes, in the controller and in the
// validating webhook, an object has those that are stored.
func (d *defaults) size() {
	if !d.admits || !IsSize(d.spec.ResourceType) {
		return
	}
	now, known := d.current()
	switch {
	case d.keepsSize() && (!known || !d.changes):
		d.fill(d.stayed())
	case d.keepsSize() && !d.resizes() && now.has(imagePointer) && d.old.Image != "":
		now[imagePointer] = d.old.Image
		fallthrough
	default:
		d.fill(now)
	}
	if d.spec.Resources == nil && known {
		d.spec.Resources = &corev1.ResourceRequirements{}
	}
}

// fill sets the values that are not set.
func (d *defaults) fill(from values) {
	is, next := d.valuesOf(d.spec), maps.Clone(from)
	maps.Copy(next, is)
	d.write(is, next)
}

// stayed returns the stored values of the size that the client did not send. Those of a probe are
// not merged with one that the client sent, and the defaults of probes, whose action no size has,
// are derived.
func (d *defaults) stayed() values {
	now, known := d.current()
	out := d.valuesOf(d.old)
	maps.DeleteFunc(out, func(at string, _ any) bool {
		switch in := pointerOf(at); {
		case in == readinessPointer && (d.spec.ReadinessProbe != nil || !hasOtherAction(d.old.ReadinessProbe)), in == startupPointer && d.spec.StartupProbe != nil:
			return true
		case in == startupPointer && isDefaultStartupProbe(d.old.StartupProbe):
			return d.changes
		case in == startupPointer && !hasOtherAction(d.old.StartupProbe), strings.Contains(at, "/tcpSocket/"):
			return true
		case in == schedulingPointer:
			return false
		}
		_, defined := now[at]
		return known && !defined || !isOfSizes(at)
	})
	return out
}

// restored returns the spec that the client sent with the stored values of its size, so that it
// differs from the stored one in what the client changed.
func (d *defaults) restored() *modelv1.ModelBoxSpec {
	if !d.admits || !d.keepsSize() {
		return d.spec
	}
	box := &modelv1.ModelBox{Spec: *d.spec.DeepCopy()}
	(&defaults{box: box, spec: &box.Spec}).fill(d.stayed())
	return &box.Spec
}

// contradictions returns the errors of values that the object may not have under its size.
func (d *defaults) contradictions() field.ErrorList {
	if !IsSize(d.spec.ResourceType) {
		return nil
	}
	now, known := d.current()
	errs := d.modelless()
	var was values
	switch {
	case d.keepsSize():
		was = d.valuesOf(d.old)
	case !known && !d.sameSize():
		names := append(slices.Sorted(maps.Keys(d.sizes)), resourceTypes...)
		return field.ErrorList{field.NotSupported(resourceTypePath, d.spec.ResourceType, names)}
	}
	is := d.valuesOf(d.spec)
	for _, at := range slices.Sorted(maps.Keys(is)) {
		if !isFree(at, now, known) && !now.equals(at, is[at]) && !was.equals(at, is[at]) {
			errs = append(errs, d.another(at, is[at], now[at]))
		}
	}
	return errs
}

// another returns the error of a value that is not the one of the size, nil if the size has none.
func (d *defaults) another(at string, value, ofSize any) *field.Error {
	as := ""
	if text, err := json.Marshal(ofSize); err == nil && ofSize != nil {
		as = " as " + string(text)
	}
	return field.Invalid(fieldOf(at), value, "resourceType "+string(d.spec.ResourceType)+" defines it"+as+
		"; remove it, or set resourceType: custom to use other values")
}

// ofSize reports whether a value is one of a size, or none that a client may add to them: of
// scheduling, and of a strategy beside that of the size.
func ofSize(at string, size values) bool {
	_, defined := size[at]
	in := pointerOf(at)
	return defined || in == schedulingPointer || in == strategyPointer && size.has(strategyPointer)
}

// isFree reports whether users may set a value: one that the size, if it is known, does not define.
func isFree(at string, size values, known bool) bool {
	return known && !ofSize(at, size) || !known && ofServer(at)
}

// ofServer reports whether a value is of a field that a server defines, which users without sizes
// may set.
func ofServer(at string) bool {
	return !slices.Contains([]string{resourcesPointer, schedulingPointer, memoryPointer, strategyPointer}, pointerOf(at))
}

// fieldOf returns the path of a field at a pointer.
func fieldOf(at string) *field.Path {
	names := namesOf(at)
	path := field.NewPath(names[0])
	for i, name := range names[1:] {
		if i == 2 && names[1] == "resources" {
			path = path.Key(name)
		} else {
			path = path.Child(name)
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
