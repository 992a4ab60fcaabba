// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install installs what the operator's two processes need to run on this
// machine: CRDs, a namespace, certificates, and webhook configurations that call
// 127.0.0.1 instead of a Service.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Load reads the objects of a folder of config. A folder with a kustomization is built
// with the given kubectl, so that the objects are those of a deployment. In other
// folders, all .yaml files are read, also in subfolders.
func Load(ctx context.Context, kubectl, dir string) ([]*unstructured.Unstructured, error) {
	if _, err := os.Stat(filepath.Join(dir, "kustomization.yaml")); err != nil {
		return loadFiles(dir)
	}
	out, err := exec.CommandContext(ctx, kubectl, "kustomize", dir).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	objects, err := decode(bytes.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("reading what %s builds: %w", dir, err)
	}
	return objects, nil
}

func loadFiles(dir string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := decode(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, found...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	return objects, nil
}

// decode decodes the objects of a YAML stream. It skips empty documents, which a leading
// or repeated "---" creates.
func decode(stream io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(stream, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, errors.New("a document is not an object: it has no kind or no name")
		}
		objects = append(objects, object)
	}
}

// OfKind returns the objects of the given kinds, in their order.
func OfKind(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if slices.Contains(kinds, object.GetKind()) {
			found = append(found, object)
		}
	}
	return found
}
