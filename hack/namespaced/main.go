// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command namespaced limits an install of the operator to some namespaces. It reads the
// manifests of an install and writes those of the limited one:
//
//	kubectl kustomize config/operator | go run ./hack/namespaced team-a team-b
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "namespaced:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, namespaces []string) error {
	var install []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading manifests: %w", err)
		}
		if len(object.Object) > 0 {
			install = append(install, object)
		}
	}
	limited, err := scope.Objects(install, namespaces)
	if err != nil {
		return err
	}
	// Nothing is written if one object cannot be.
	var all bytes.Buffer
	for _, object := range limited {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		all.WriteString("---\n")
		all.Write(document)
	}
	_, err = all.WriteTo(out)
	return err
}
