// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podrules

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

const (
	templatePrefix   = "spec.podTemplate."
	containersPrefix = templatePrefix + "spec.containers"
)

// places tells where in an object the fields of its pods are written.
type places struct {
	own   *Own
	known field.ErrorList
	// written is how many containers the template has as its user wrote it.
	written int
	// main are the indexes of the main container.
	main []int
}

// moved moves an error of the pods to the field that its user wrote. It says no if an
// error of that field is known already.
func (p *places) moved(err *field.Error) bool {
	err.Field = corrected(err.Field)
	index, of, ok := container(err.Field)
	if !ok || !slices.Contains(p.main, index) {
		return true
	}
	if of == "name" && err.Type != field.ErrorTypeDuplicate {
		return false // The name's own field has been judged.
	}
	for _, reserved := range p.own.Reserved {
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
func (p *places) ownField(reserved rules.Reserved, rest string) string {
	if reserved.Field == "ports" {
		return p.ownPort(reserved.Instead, rest)
	}
	return reserved.Instead + rest
}

// ownPort finds the port that a port of the main container was made of. Not each port
// declares one: rules.ContainerPorts.
func (p *places) ownPort(path, rest string) string {
	number, of, _ := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	declared, err := strconv.Atoi(number)
	if err != nil {
		return path
	}
	for i := range p.own.Ports {
		if len(rules.ContainerPorts(p.own.Ports[:i+1])) <= declared {
			continue
		}
		if of == ".containerPort" {
			of = ".port"
			if p.own.Ports[i].TargetPort != nil {
				of = ".targetPort"
			}
		}
		return fmt.Sprintf("%s[%d]%s", path, i, of)
	}
	return path
}

// isKnown says whether there is an error of the field, of something in it or of what it
// is in.
func (p *places) isKnown(path string) bool {
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
