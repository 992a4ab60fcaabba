// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// writeSBOM writes the SBOM of an image in CycloneDX's JSON: the Go modules of each program in
// it, as the linker recorded them, and the Debian packages of its base image. It has no time
// and no serial number, so the same image gives the same bytes.
func writeSBOM(prefix, name, version string, i image) error {
	components, err := contents(i)
	if err != nil {
		return fmt.Errorf("listing what is in %s: %w", name, err)
	}
	digest, err := i.Digest()
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, BOMRef: "image", Name: name, Version: version,
		PackageURL: fmt.Sprintf("pkg:oci/%s@%s?arch=%s&tag=%s", name, url.QueryEscape(digest.String()), i.platform.Architecture, version),
	}}
	bom.Components = &components
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return os.WriteFile(prefix+"-"+strings.ReplaceAll(i.platform.String(), "/", "-")+".cdx.json", text.Bytes(), 0o644)
}

// contents returns the components of an image. An image without a Go program is an error:
// then something was not found.
func contents(i image) ([]cyclonedx.Component, error) {
	files := mutate.Extract(i)
	defer func() { _ = files.Close() }()
	var components []cyclonedx.Component
	programs := 0
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) && programs > 0 {
			return components, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the image has no Go program")
		}
		if err != nil {
			return nil, err
		}
		found, program, err := componentsOf(header, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
		if program {
			programs++
		}
		components = append(components, found...)
	}
}

// componentsOf returns the components that a file of an image stands for, and whether it is
// a Go program.
func componentsOf(header *tar.Header, content io.Reader) ([]cyclonedx.Component, bool, error) {
	name := path.Join("/", header.Name)
	executable := header.FileInfo().Mode()&0o111 != 0
	if header.Typeflag != tar.TypeReg {
		return nil, false, nil
	}
	switch {
	case strings.HasPrefix(name, "/var/lib/dpkg/status.d/") && !strings.HasSuffix(name, ".md5sums"):
		c, err := debianPackage(content)
		return c, false, err
	case executable:
		text, err := io.ReadAll(content)
		if err != nil {
			return nil, false, err
		}
		c, program := goModules(name, text)
		return c, program, nil
	}
	return nil, false, nil
}

// goModules returns a program, Go's standard library, and the modules of the program.
func goModules(name string, text []byte) ([]cyclonedx.Component, bool) {
	info, err := buildinfo.Read(bytes.NewReader(text))
	if err != nil {
		return nil, false // No Go program.
	}
	components := []cyclonedx.Component{
		{Type: cyclonedx.ComponentTypeApplication, BOMRef: name, Name: info.Main.Path, Version: info.Main.Version},
		module(name, "std", strings.TrimPrefix(info.GoVersion, "go")),
	}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, module(name, dependency.Path, dependency.Version))
	}
	return components, true
}

func module(program, name, version string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", name, url.QueryEscape(version))
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: program + "#" + purl, Name: name, Version: version, PackageURL: purl}
}

// debianPackage returns the package that a file of /var/lib/dpkg/status.d describes.
func debianPackage(content io.Reader) ([]cyclonedx.Component, error) {
	fields := map[string]string{}
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ": "); ok && !strings.HasPrefix(key, " ") {
			fields[key] = strings.TrimSpace(value)
		}
	}
	if fields["Package"] == "" {
		return nil, lines.Err()
	}
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", fields["Package"], url.QueryEscape(fields["Version"]), fields["Architecture"])
	return []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, Name: fields["Package"], Version: fields["Version"], PackageURL: purl,
	}}, lines.Err()
}
