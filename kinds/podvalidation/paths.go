// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

const (
	templatePrefix   = "spec.podTemplate."
	containersPrefix = templatePrefix + "spec.containers"
	volumesPrefix    = templatePrefix + "spec.volumes["
)

// paths maps the paths of the pods' fields to those of the object's fields.
type paths struct {
	main  *MainContainer
	known field.ErrorList
	// written, volumes and mounts are the numbers of containers, of volumes and of mounts of
	// the main container in the template, before those of the object's own fields are added.
	written, volumes, mounts int
	// indexes are those of the main container.
	indexes []int
}

// pathsOf returns the paths of a template that main is not merged into yet.
func pathsOf(spec *corev1.PodSpec, main *MainContainer, known field.ErrorList) paths {
	p := paths{main: main, known: known, written: len(spec.Containers), volumes: len(spec.Volumes)}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name == main.Container.Name {
			p.mounts = len(c.VolumeMounts)
		}
	}
	return p
}

// relocate changes the path of an error to that of the field in the object. It returns
// false if there is an error of that field already.
func (p *paths) relocate(err *field.Error) bool {
	err.Field = correctPath(err.Field)
	index, of, ok := container(err.Field)
	if !ok || !slices.Contains(p.indexes, index) {
		return p.relocateVolume(err)
	}
	if of == "name" && err.Type != field.ErrorTypeDuplicate {
		return false // The rules of spec.name and metadata.name have validated it.
	}
	if own := p.ownOf(of); own != "" {
		err.Field = own
		return !p.isKnown(own)
	}
	if index >= p.written {
		err.Field = containersPrefix
	}
	return true
}

// relocateVolume is relocate for an error outside of the main container.
func (p *paths) relocateVolume(err *field.Error) bool {
	if volume, _, ok := item(err.Field, volumesPrefix); ok && volume >= p.volumes {
		err.Field = p.fieldOf(volume - p.volumes)
		return !p.isKnown(err.Field)
	}
	return true
}

// fieldOf returns the path of the object's field that defines an added volume, or its mount. If
// the template has one of the volumes, which is refused, it may be that of another volume.
func (p *paths) fieldOf(added int) string {
	return p.main.Volumes[min(added, len(p.main.Volumes)-1)].Field
}

// ownOf returns the path in the object of a field of the main container, "" if the field is
// in the template.
func (p *paths) ownOf(of string) string {
	for _, reserved := range p.main.Reserved {
		if rest, ok := cutField(of, reserved.Field); ok && (!reserved.Either || reserved.In(&p.main.Container)) {
			return p.ownField(reserved, rest)
		}
	}
	if mount, _, ok := item(of, "volumeMounts["); ok && mount >= p.mounts {
		return p.fieldOf(mount - p.mounts)
	}
	return ""
}

// limitOfContainer is the path in Kubernetes' errors of a container's limit that exceeds
// the limit of the pod.
var limitOfContainer = regexp.MustCompile(`^spec\.podTemplate\.spec\.resources\.containers(\[\d+\])(\[.*\])\.limits$`)

// correctPath corrects the few paths in the API server's errors that are not paths of
// fields.
func correctPath(path string) string {
	for _, list := range [...]string{"labels", "annotations"} {
		if rest, ok := strings.CutPrefix(path, templatePrefix+list); ok {
			return templatePrefix + "metadata." + list + rest
		}
	}
	if strings.HasSuffix(path, ".limits") {
		return limitOfContainer.ReplaceAllString(path, containersPrefix+"$1.resources.limits$2")
	}
	return path
}

// container splits the path of a container's field.
func container(path string) (index int, of string, ok bool) {
	return item(path, containersPrefix+"[")
}

// item splits the path of a field of an item in the list with a prefix.
func item(path, list string) (index int, of string, ok bool) {
	rest, ok := strings.CutPrefix(path, list)
	if !ok {
		return 0, "", false
	}
	number, of, ok := strings.Cut(rest, "].")
	index, err := strconv.Atoi(number)
	return index, of, ok && err == nil
}

// cutField returns the rest of path after the field name. ok is false if path is neither
// name nor a field in it.
func cutField(path, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, name)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// ownField returns the path in the object of a reserved field of the main container.
func (p *paths) ownField(reserved ReservedField, rest string) string {
	if reserved.Field == "ports" {
		return p.ownPort(reserved.Instead, rest)
	}
	return reserved.Instead + rest
}

// ownPort returns the path of the port from which a port of the main container was made.
// Not each port makes one: see modelv1.ContainerPorts.
func (p *paths) ownPort(path, rest string) string {
	number, of, _ := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	declared, err := strconv.Atoi(number)
	if err != nil {
		return path
	}
	for i := range p.main.ServicePorts {
		if len(modelv1.ContainerPorts(p.main.ServicePorts[:i+1])) <= declared {
			continue
		}
		if of == ".containerPort" {
			of = ".port"
			if p.main.ServicePorts[i].TargetPort != nil {
				of = ".targetPort"
			}
		}
		return fmt.Sprintf("%s[%d]%s", path, i, of)
	}
	return path
}

// isKnown reports whether there is an error of the field, of a field in it or of a field
// that contains it.
func (p *paths) isKnown(path string) bool {
	for _, err := range p.known {
		if _, in := cutField(err.Field, path); in {
			return true
		}
		if _, around := cutField(path, err.Field); around {
			return true
		}
	}
	return false
}
