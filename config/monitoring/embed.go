// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring has the files with queries, for the tests of hack/tools/promql. These are in
// another module, and Go would not run them again after a change of a file that they only read.
package monitoring

import _ "embed"

// Rules is the PrometheusRule, as YAML.
//
//go:embed rules.yaml
var Rules []byte

// Dashboard is Grafana's dashboard, as JSON.
//
//go:embed dashboard/modelbox-operator.json
var Dashboard []byte
