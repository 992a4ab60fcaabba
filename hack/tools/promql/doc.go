// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promql tests the queries of config/monitoring, those of the alerts and those of the
// dashboard, with Prometheus' own parser: that they are valid, and that the processes serve what
// they select. The alerts are checked as promtool does, and the dashboard against Grafana's types.
package promql
