// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command matchconditions writes the matchConditions of a file into every webhook of
// the webhook configurations of another, in place:
//
//	go run ./hack/matchconditions config/webhook/match_conditions.yaml config/webhook/generated/manifests.yaml
//
// controller-gen has a marker for them, but each webhook would repeat them.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "matchconditions:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("two files are expected: the conditions, and the webhook configurations")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var conditions []admissionregistrationv1.MatchCondition
	if err := yaml.UnmarshalStrict(data, &conditions); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return rewrite(args[1], conditions)
}

const separator = "---\n"

func rewrite(file string, conditions []admissionregistrationv1.MatchCondition) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for document := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte(separator)), []byte("\n"+separator)) {
		if document, err = withConditions(document, conditions); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		out.WriteString(separator)
		out.Write(document)
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// withConditions returns a webhook configuration with conditions in all of its webhooks.
func withConditions(document []byte, conditions []admissionregistrationv1.MatchCondition) ([]byte, error) {
	configuration := map[string]any{}
	if err := yaml.Unmarshal(document, &configuration); err != nil {
		return nil, err
	}
	webhooks, _ := configuration["webhooks"].([]any)
	if len(webhooks) == 0 {
		return nil, errors.New("there is no webhook in it: is it a webhook configuration?")
	}
	for _, webhook := range webhooks {
		webhook.(map[string]any)["matchConditions"] = conditions
	}
	return yaml.Marshal(configuration)
}
