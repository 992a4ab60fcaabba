// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// The bounds of the flags, which are those of status.fetcher of a ModelBox.
const maxImage, maxMirrors, maxMirror = 1024, 64, 4096

// bindFetcher adds the flags of the init container that fetches a model.
func bindFetcher(flags *flag.FlagSet, f *modelsource.Fetcher) {
	f.Image = version.ControllerImage
	flags.Func("fetch-image", "image of the init container that fetches the model of a ModelBox (default the controller's own image, "+f.Image+")",
		func(value string) error {
			// An image that no node can parse would be noticed by each pod that fetches a model.
			_, err := reference.ParseNormalizedNamed(value)
			if err == nil && len(value) > maxImage {
				err = fmt.Errorf("it has more than %d bytes", maxImage)
			}
			if err != nil {
				return fmt.Errorf("it is not an image reference such as registry.example.com/team/modelbox-controller:v1: %w", err)
			}
			f.Image = value
			return nil
		})
	flags.Func("model-mirror", "PREFIX=REPLACEMENT: replaces the beginning of the URLs that models are fetched from, such as hf://=https://hub.example.com; may be repeated",
		func(value string) error { return addMirror(f, value) })
}

// addMirror adds a mirror. The program that fetches parses mirrors in the same way (fetch/mirror).
func addMirror(f *modelsource.Fetcher, value string) error {
	if len(value) > maxMirror || len(f.Mirrors) >= maxMirrors {
		return fmt.Errorf("there may be %d mirrors of at most %d bytes each", maxMirrors, maxMirror)
	}
	prefix, replacement, _ := strings.Cut(value, "=")
	if !isURL(prefix) || !isURL(replacement) {
		return fmt.Errorf("%q is not PREFIX=REPLACEMENT of two URLs that begin with https://, http://, hf:// or s3://", value)
	}
	for _, other := range f.Mirrors {
		if strings.HasPrefix(other, prefix+"=") {
			return fmt.Errorf("the prefix %q occurs twice", prefix)
		}
	}
	f.Mirrors = append(f.Mirrors, value)
	return nil
}

func isURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && slices.Contains([]string{modelsource.HTTPS, modelsource.HTTP, modelsource.Hub, modelsource.S3}, scheme)
}
