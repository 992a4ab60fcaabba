// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

const (
	// system is the operator's namespace in config/. Every occurrence becomes the namespace of
	// the release.
	system = "modelbox-system"
	// anyNamespace stands for each namespace that an install is limited to.
	anyNamespace = "each-namespace"
)

// source is what the chart is made of.
type source struct {
	// install is the whole install.
	install []*unstructured.Unstructured
	// options are what can be added to it, by the names of their templates.
	options map[string][]*unstructured.Unstructured
	// limited is the install that is limited to anyNamespace, with those of the options that patch it.
	limited []*unstructured.Unstructured
}

// option is a template of what can be added to an install: a file, the folder in config/ that its
// objects come from, and when they are rendered. A folder that patches the install is a component
// that can only be built with it; changes.go has what becomes of these patches.
type option struct {
	file, folder, when string
	patches            bool
}

var options = []option{
	{"monitoring", "monitoring", "$.Values.monitoring.enabled", false},
	{"dashboard", "monitoring/dashboard", "$.Values.dashboard.enabled", false},
	{"tracing", "network/tracing", "and $.Values.network.enabled $.Values.tracing.endpoint", false},
	{"certs-self-managed", "certs-self-managed", byController, true},
}

// read builds the kustomizations in a folder.
func read(folder string) (source, error) {
	s := source{options: map[string][]*unstructured.Unstructured{}}
	var err error
	if s.install, err = build(folder); err != nil {
		return s, err
	}
	patched := s.install
	for _, option := range options {
		objects, err := s.read(folder, option)
		if err != nil {
			return s, err
		}
		if s.options[option.file] = objects; option.patches {
			patched = slices.Concat(patched, objects)
		}
	}
	s.limited, err = scope.Objects(patched, []string{anyNamespace})
	return s, err
}

func (s *source) read(folder string, o option) ([]*unstructured.Unstructured, error) {
	if o.patches {
		return s.added(folder, o.folder)
	}
	return build(filepath.Join(folder, o.folder))
}

// added returns the objects that a component adds to the install. A component is built as a part
// of a kustomization, here a temporary one.
func (s *source) added(folder, component string) ([]*unstructured.Unstructured, error) {
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writeOverlay(dir, folder, component); err != nil {
		return nil, err
	}
	all, err := build(dir)
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(s.install, func(other *unstructured.Unstructured) bool {
			return o.GetKind() == other.GetKind() && o.GetName() == other.GetName()
		})
	}), err
}

// writeOverlay writes the kustomization of an install with a component.
func writeOverlay(dir, folder, component string) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	config, err := filepath.Rel(dir, absolute)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("resources: [%[1]s]\ncomponents: [%[1]s/%[2]s]\n", filepath.ToSlash(config), component)
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
}

// build returns the objects of a kustomization.
func build(folder string) ([]*unstructured.Unstructured, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// limitedFrom returns the objects that take the place of one where the install is limited.
func (s source) limitedFrom(object *unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, limited := range s.limited {
		kind := limited.GetKind()
		if limited.GetNamespace() == anyNamespace {
			kind = "Cluster" + kind
		}
		if kind == object.GetKind() && strings.TrimSuffix(limited.GetName(), "-"+system) == object.GetName() {
			out = append(out, limited)
		}
	}
	return out
}
