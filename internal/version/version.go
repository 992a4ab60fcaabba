// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version holds the version of the project, which is in the file VERSION of this
// directory. The binaries, the labels and tags of the images and the manifests all use
// this file.
package version

import (
	_ "embed"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

//go:embed VERSION
var file string

// Version is the version of this program, such as v1.2.3, or v1.3.0-dev between two releases.
var Version = strings.TrimSpace(file)

// ControllerImage is the image of this version's controller, without a registry. It has the
// program that fetches models.
var ControllerImage = "modelbox-controller:" + Version

// Collector returns the metric modelbox_build_info, which is always 1 and has the version
// and the program's name as labels.
func Collector(program string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "modelbox_build_info",
		Help:        "Always 1; the labels tell which program of which version runs.",
		ConstLabels: prometheus.Labels{"program": program, "version": Version},
	})
	info.Set(1)
	return info
}
