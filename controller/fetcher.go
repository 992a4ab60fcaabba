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

// fetcher are the flags of the container that fetches a model.
type fetcher struct{ modelsource.Fetcher }

func (f *fetcher) addFlags(flags *flag.FlagSet) {
	f.Image = version.ControllerImage
	flags.Var((*imageFlag)(&f.Image), "fetch-image",
		"image of the init container that fetches the model of a ModelBox: the one of this process, which has the program")
	flags.Var((*mirrorsFlag)(&f.Mirrors), "model-mirror",
		"PREFIX=REPLACEMENT: the beginning of the URLs that models are fetched from, and what replaces it, such as hf://=https://hub.example.com; may be repeated")
}

// imageFlag is an image reference. An image that no node can parse would be noticed by each pod
// that fetches a model.
type imageFlag string

// String implements flag.Value.
func (i *imageFlag) String() string { return string(*i) }

// Set implements flag.Value.
func (i *imageFlag) Set(value string) error {
	if _, err := reference.ParseNormalizedNamed(value); err != nil {
		return fmt.Errorf("it is not an image reference such as registry.example.com/team/modelbox-controller:v1: %w", err)
	}
	*i = imageFlag(value)
	return nil
}

// mirrorsFlag are the values of a repeated flag. The program that fetches parses them in the same
// way (fetch/mirror).
type mirrorsFlag []string

// String implements flag.Value.
func (m *mirrorsFlag) String() string { return strings.Join(*m, ",") }

// Set implements flag.Value.
func (m *mirrorsFlag) Set(value string) error {
	prefix, replacement, _ := strings.Cut(value, "=")
	if !isURL(prefix) || !isURL(replacement) {
		return fmt.Errorf("%q is not PREFIX=REPLACEMENT of two URLs that begin with https://, http://, hf:// or s3://", value)
	}
	for _, other := range *m {
		if strings.HasPrefix(other, prefix+"=") {
			return fmt.Errorf("the prefix %q occurs twice", prefix)
		}
	}
	*m = append(*m, value)
	return nil
}

func isURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && slices.Contains([]string{modelsource.HTTPS, modelsource.HTTP, modelsource.Hub, modelsource.S3}, scheme)
}
