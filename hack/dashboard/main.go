// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboard prints the operator's dashboard for Grafana, as JSON. What it shows is in
// rows.go.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

// write writes the dashboard as it is committed.
func write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false) // Queries have < and >.
	encoder.SetIndent("", "  ")
	return encoder.Encode(newDashboard(rows))
}
