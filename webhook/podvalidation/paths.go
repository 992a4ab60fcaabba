// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

const (
	templatePrefix   = "spec.podTemplate."
	containersPrefix = templatePrefix + "spec.containers"
)

// paths tells where in an object the fields of its pods are written.
type paths struct {
	main  *MainContainer
	known field.ErrorList
	// written is the number of containers in the template, before the main one is added.
	written int
	// indexes are those of the main container.
	indexes []int
}

// moved moves an error of the pods to the field that its user wrote. It says no if an
// error of that field is known already.
func (p *paths) moved(err *field.Error) bool {
	err.Field = corrected(err.Field)
	index, of, ok := container(err.Field)
	if !ok || !slices.Contains(p.indexes, index) {
		return true
	}
	if of == "name" && err.Type != field.ErrorTypeDuplicate {
		return false // The name's own field has been judged.
	}
	for _, reserved := range p.main.Reserved {
		if rest, ok := below(of, reserved.Field); ok {
			err.Field = p.ownField(reserved, rest)
			return !p.isKnown(err.Field)
		}
	}
	if index >= p.written {
		err.Field = containersPrefix
	}
	return true
}

// limitOfContainer is how Kubernetes calls the limit of a container that is above the
// limit of the pod.
var limitOfContainer = regexp.MustCompile(`^spec\.podTemplate\.spec\.resources\.containers(\[\d+\])(\[.*\])\.limits$`)

// corrected corrects the few paths of the API server that lead to no field.
func corrected(path string) string {
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

// container takes the path of a container's field apart.
func container(path string) (index int, of string, ok bool) {
	rest, ok := strings.CutPrefix(path, containersPrefix+"[")
	if !ok {
		return 0, "", false
	}
	number, of, ok := strings.Cut(rest, "].")
	index, err := strconv.Atoi(number)
	return index, of, ok && err == nil
}

// below says whether a path is that of a field or leads into it, and what follows then.
func below(path, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, name)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// ownField is where in the object the rest of a reserved field's path leads.
func (p *paths) ownField(reserved ReservedField, rest string) string {
	if reserved.Field == "ports" {
		return p.ownPort(reserved.Instead, rest)
	}
	return reserved.Instead + rest
}

// ownPort finds the port that a port of the main container was made of. Not each port
// declares one: modelv1.ContainerPorts.
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

// isKnown says whether there is an error of the field, of something in it or of what it
// is in.
func (p *paths) isKnown(path string) bool {
	for _, err := range p.known {
		if _, in := below(err.Field, path); in {
			return true
		}
		if _, around := below(path, err.Field); around {
			return true
		}
	}
	return false
}
