// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes the files of a release of one image: from the archives of "docker
// save", one for each platform, the OCI image layout with an index of all platforms
// (NAME-VERSION.oci.tar), and the SBOM of each platform
// (NAME-VERSION-OS-ARCHITECTURE.cdx.json). It prints the digest of the index. The same
// images give the same bytes.
//
//	release -name modelbox-webhook -version v0.1.0 -created 1767225600 -out dist amd64.tar arm64.tar
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	name := flag.String("name", "", "name of the image")
	version := flag.String("version", "", "version of the release")
	created := flag.Int64("created", 0, "time of creation, in seconds since 1970")
	out := flag.String("out", "dist", "folder to write into")
	flag.Parse()
	images, err := load(flag.Args(), time.Unix(*created, 0).UTC())
	if err != nil {
		return err
	}
	prefix := filepath.Join(*out, *name+"-"+*version)
	for _, image := range images {
		if err := writeSBOM(prefix, *name, *version, image); err != nil {
			return err
		}
	}
	digest, err := writeLayout(prefix+".oci.tar", *version, images)
	if err != nil {
		return err
	}
	_, err = fmt.Println(digest)
	return err
}

// image is the image of one platform.
type image struct {
	v1.Image
	platform v1.Platform
}

// load reads the archives, and returns their images in the order of their platforms.
func load(archives []string, created time.Time) ([]image, error) {
	var images []image
	for _, archive := range archives {
		docker, err := tarball.ImageFromPath(archive, nil)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
		oci, err := toOCI(docker, created)
		if err != nil {
			return nil, fmt.Errorf("converting %s: %w", archive, err)
		}
		config, err := oci.ConfigFile()
		if err != nil {
			return nil, err
		}
		images = append(images, image{oci, *config.Platform()})
	}
	slices.SortFunc(images, func(a, b image) int { return cmp.Compare(a.platform.String(), b.platform.String()) })
	return images, nil
}
