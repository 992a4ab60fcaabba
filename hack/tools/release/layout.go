// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// toOCI returns an image with OCI's media types, and with no time after created: the daemon
// may have written the time of the build, and what it adds for itself.
func toOCI(docker v1.Image, created time.Time) (v1.Image, error) {
	config, err := docker.ConfigFile()
	if err != nil {
		return nil, err
	}
	clamped := v1.ConfigFile{
		Architecture: config.Architecture, OS: config.OS, Variant: config.Variant, Created: v1.Time{Time: created}, Config: config.Config,
		RootFS: v1.RootFS{Type: "layers"},
	}
	layers, err := docker.Layers()
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), &clamped)
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, additions(layers, config.History, created)...)
}

// additions returns the layers with their history.
func additions(layers []v1.Layer, history []v1.History, created time.Time) []mutate.Addendum {
	var all []mutate.Addendum
	for _, step := range history {
		if step.Created.After(created) {
			step.Created = v1.Time{Time: created}
		}
		add := mutate.Addendum{History: step, MediaType: types.OCILayer}
		if !step.EmptyLayer && len(layers) > 0 {
			add.Layer, layers = compressed(layers[0]), layers[1:]
		}
		all = append(all, add)
	}
	for _, layer := range layers {
		all = append(all, mutate.Addendum{Layer: compressed(layer), MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: created}}})
	}
	return all
}

// compressed returns a layer that is compressed in one way, whatever the archive had.
func compressed(layer v1.Layer) v1.Layer {
	gz, err := tarball.LayerFromOpener(layer.Uncompressed, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return layer
	}
	return gz
}

// writeLayout writes an OCI image layout, whose one entry is the index of all platforms, as
// a tar archive. It returns the digest of the index.
func writeLayout(file, version string, images []image) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	folder, err := os.MkdirTemp("", "layout")
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	ref := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := path.AppendIndex(index, ref); err != nil {
		return v1.Hash{}, err
	}
	if err := archive(folder, file); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// archive writes the files of a folder into a tar archive, in the order of their names, with
// neither times nor owners.
func archive(folder, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return add(w, path, filepath.ToSlash(name))
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func add(w *tar.Writer, path, name string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
