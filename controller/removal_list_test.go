// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
)

// removals returns the edits of all owners' specs, and of the values that these edits add. An
// edit of the same field of a type is listed once, however many owners have it.
func removals(all schemas) ([]removal, error) {
	owners, err := readOwners()
	if err != nil {
		return nil, err
	}
	values, err := readSamples("testdata/samples.yaml")
	if err != nil {
		return nil, err
	}
	all.useCoreTypes()
	l := &removalLister{all: all, samples: values, seen: map[string]bool{}}
	for _, of := range owners {
		l.list(of, where{of: all.typeOf(of.manifest)}.key(all, "spec"))
	}
	// An added value is as deep as its type.
	for len(l.grown) > 0 {
		next := l.grown[0]
		l.grown = l.grown[1:]
		l.list(next.owner, next.where)
	}
	return l.found, nil
}

type removalLister struct {
	all     schemas
	samples samples
	seen    map[string]bool
	found   []removal
	grown   []grown
}

// grown is an owner with a value that no manifest has.
type grown struct {
	owner
	where
}

func (l *removalLister) list(of owner, at where) {
	e := &editor{schemas: l.all, samples: l.samples}
	e.walk(at, valueAt(of.manifest, at.at))
	for _, edit := range e.found {
		if l.seen[edit.place] {
			continue
		}
		l.seen[edit.place] = true
		l.found = append(l.found, removal{of, edit})
		if edit.new != nil {
			with := owner{name: strings.Fields(of.name)[0] + " with " + edit.new.field, manifest: edit.to(of.manifest, 0)}
			l.grown = append(l.grown, grown{with, *edit.new})
		}
	}
}

// coreTypes are the fields of a spec that have types of Kubernetes. The schema of a custom
// resource has these types without their names.
var coreTypes = map[string]string{
	"podTemplate": "PodTemplateSpec", "resources": "ResourceRequirements",
	"readinessProbe": "Probe", "livenessProbe": "Probe", "startupProbe": "Probe",
}

func (s schemas) useCoreTypes() {
	const core = "#/components/schemas/io.k8s.api.core.v1."
	container := s["io.k8s.api.core.v1.Container"].Properties
	for _, name := range []string{"com.github.model.v1.ModelBox", "cn.huolala.app.v1.App", "com.mydomain.v1beta1.Genericdaemon"} {
		spec := s[name].Properties["spec"]
		spec.name = s[name].name + "Spec"
		for field := range spec.Properties {
			switch {
			case coreTypes[field] != "":
				spec.Properties[field] = &typeSchema{Ref: core + coreTypes[field]}
			case field == "strategy":
				spec.Properties[field] = &typeSchema{Ref: "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}
			case field == "model":
				spec.Properties[field].name = "Model"
				spec.Properties[field].Properties["credentials"] = &typeSchema{Ref: core + "LocalObjectReference"}
			case field == "ports":
				spec.Properties[field].Items.name = "Port"
			case field == "envs":
				spec.Properties[field] = container["env"]
			case field == "envFrom", field == "command", field == "args":
				spec.Properties[field] = container[field]
			case field == "imagePullSecrets":
				spec.Properties[field] = s["io.k8s.api.core.v1.PodSpec"].Properties[field]
			}
		}
	}
}
