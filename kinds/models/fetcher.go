// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Fetcher is what the operator, and not the object, decides of the container that fetches.
type Fetcher struct {
	// Image has the program.
	Image string `json:"image"`
	// Mirrors are the arguments of its flag --mirror: PREFIX=REPLACEMENT.
	Mirrors []string `json:"mirrors,omitempty"`
}

// IsFetcher reports whether an init container is the one that fetches a model.
func IsFetcher(c *corev1.Container) bool {
	return c.Name == Container && len(c.Command) == 1 && c.Command[0] == Command
}

// FetcherOf returns what was decided of a container that fetches a model.
func FetcherOf(c *corev1.Container) Fetcher {
	out := Fetcher{Image: c.Image}
	for _, arg := range c.Args {
		if mirror, ok := strings.CutPrefix(arg, mirrorFlag); ok {
			out.Mirrors = append(out.Mirrors, mirror)
		}
	}
	return out
}

// WithoutFetcher returns the container that fetches a model as its object alone defines it:
// without what Fetcher has.
func WithoutFetcher(c corev1.Container) corev1.Container {
	c.Image = ""
	c.Args = slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return strings.HasPrefix(arg, mirrorFlag) })
	return c
}
