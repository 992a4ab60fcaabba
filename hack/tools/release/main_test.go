// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var created = time.Unix(1_767_225_600, 0).UTC()

const debian = "Package: tzdata\nVersion: 2026a-0+deb13u1\nArchitecture: all\nDescription: time zone data\n more: of it\n"

// saved writes an image of a platform as "docker save" does, built at a time, and returns
// the file. Both programs in it are this test.
func saved(t *testing.T, architecture string, built time.Time) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	base := layer(t, map[string][]byte{"var/lib/dpkg/status.d/tzdata": []byte(debian), "var/lib/dpkg/status.d/tzdata.md5sums": []byte("x")})
	history := func(step string, at time.Time) v1.History {
		return v1.History{Created: v1.Time{Time: at}, CreatedBy: step}
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: architecture, OS: "linux", Created: v1.Time{Time: built}, Config: v1.Config{Entrypoint: []string{"/webhook"}, User: "65532:65532"},
	})
	if err == nil {
		image, err = mutate.Append(image,
			mutate.Addendum{Layer: base, History: history("base", time.Unix(0, 0))},
			mutate.Addendum{History: v1.History{Created: v1.Time{Time: built}, EmptyLayer: true}},
			mutate.Addendum{Layer: layer(t, map[string][]byte{"webhook": program, "fetch-model": program}), History: history("COPY", built)})
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), architecture+".tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("modelbox-webhook:v0"), image); err != nil {
		t.Fatal(err)
	}
	return file
}

func layer(t *testing.T, files map[string][]byte) v1.Layer {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// release writes a release of two platforms, and returns its folder and its digest.
func release(t *testing.T, built time.Time) (string, v1.Hash) {
	t.Helper()
	images, err := load([]string{saved(t, "arm64", built), saved(t, "amd64", built)}, created)
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(t.TempDir(), "modelbox-webhook-v0")
	for _, i := range images {
		if err := writeSBOM(prefix, "modelbox-webhook", "v0", i); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := writeLayout(prefix+".oci.tar", "v0", images)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(prefix), digest
}

func TestTheLayoutHasAllPlatforms(t *testing.T) {
	folder, digest := release(t, created.Add(time.Hour))
	index, err := layout.ImageIndexFromPath(unpack(t, filepath.Join(folder, "modelbox-webhook-v0.oci.tar")))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest {
		t.Fatalf("the layout has the entries %+v, want one, with the digest %s: %v", manifest, digest, err)
	}
	platforms, err := index.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(platforms); err != nil {
		t.Errorf("the index is not valid: %v", err)
	}
	all, err := platforms.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all.Manifests {
		got = append(got, m.Platform.String())
		image, err := platforms.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		unchanged(t, image)
	}
	if want := "linux/amd64 linux/arm64"; strings.Join(got, " ") != want {
		t.Errorf("the platforms are %v, want %s", got, want)
	}
}

// unchanged fails if a conversion lost the settings or the layers of an image, or kept the
// time of its build.
func unchanged(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || len(config.RootFS.DiffIDs) != 2 || len(config.History) != 3 {
		t.Errorf("the configuration is %+v", config)
	}
	for _, step := range config.History {
		if step.Created.After(created) {
			t.Errorf("a step is of %s, after the time of creation", step.Created)
		}
	}
}

func unpack(t *testing.T, file string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	folder := t.TempDir()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSBOMHasModulesAndPackages(t *testing.T) {
	folder, _ := release(t, created)
	for _, architecture := range []string{"amd64", "arm64"} {
		text, err := os.ReadFile(filepath.Join(folder, "modelbox-webhook-v0-linux-"+architecture+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bom cyclonedx.BOM
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		seen := map[string]bool{}
		for _, c := range *bom.Components {
			if all.WriteString(c.PackageURL + "\n"); seen[c.BOMRef] {
				t.Errorf("the reference %s is duplicate", c.BOMRef)
			}
			seen[c.BOMRef] = true
		}
		for _, want := range []string{
			"pkg:golang/std@1.", "pkg:golang/github.com/google/go-containerregistry@v", "pkg:deb/debian/tzdata@2026a-0%2Bdeb13u1?arch=all",
		} {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%s is not in the SBOM:\n%s", want, &all)
			}
		}
		for _, program := range []string{"/webhook", "/fetch-model"} {
			if !seen[program] {
				t.Errorf("%s is not in the SBOM:\n%s", program, text)
			}
		}
		if !strings.Contains(bom.Metadata.Component.PackageURL, "arch="+architecture) {
			t.Errorf("the SBOM is of %s", bom.Metadata.Component.PackageURL)
		}
	}
}

// The time of the build, and the order of the archives, leave no trace.
func TestAReleaseIsReproducible(t *testing.T) {
	first, digest := release(t, created.Add(time.Hour))
	second, again := release(t, created.Add(48*time.Hour))
	if digest != again {
		t.Errorf("the digests are %s and %s", digest, again)
	}
	files, err := os.ReadDir(first)
	if err != nil || len(files) != 3 {
		t.Fatalf("the files are %v, want 3: %v", files, err)
	}
	for _, file := range files {
		a, err := os.ReadFile(filepath.Join(first, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", file.Name())
		}
	}
}

func TestAnImageWithoutAProgramIsRefused(t *testing.T) {
	base, err := mutate.AppendLayers(empty.Image, layer(t, map[string][]byte{"etc/passwd": []byte("x")}))
	if err != nil {
		t.Fatal(err)
	}
	err = writeSBOM(filepath.Join(t.TempDir(), "x"), "x", "v0", image{base, v1.Platform{OS: "linux", Architecture: "amd64"}})
	if err == nil || !strings.Contains(err.Error(), "no Go program") {
		t.Errorf("the error is %v", err)
	}
}
