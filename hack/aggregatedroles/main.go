// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command aggregatedroles prints, for the CRDs that are named as arguments, the
// ClusterRoles that are aggregated into Kubernetes' own roles view, edit and admin.
package main

import (
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	view := role("modelbox-view", "view", "edit", "admin")
	edit := role("modelbox-edit", "edit", "admin")
	for _, file := range os.Args[1:] {
		if err := add(view, edit, file); err != nil {
			fmt.Fprintf(os.Stderr, "aggregatedroles: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
	fmt.Println(view)
	fmt.Println(edit)
}

// role returns a ClusterRole without rules.
func role(name string, aggregatedTo ...string) *strings.Builder {
	text := &strings.Builder{}
	fmt.Fprintf(text, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: %s\n  labels:\n", name)
	for _, other := range aggregatedTo {
		fmt.Fprintf(text, "    rbac.authorization.k8s.io/aggregate-to-%s: \"true\"\n", other)
	}
	text.WriteString("rules:")
	return text
}

// add adds the rules for the kind of a CRD. Status is for the controller to write.
func add(view, edit *strings.Builder, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	rule := func(role *strings.Builder, resources, verbs string) {
		fmt.Fprintf(role, "\n- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]", crd.Spec.Group, resources, verbs)
	}
	plural := crd.Spec.Names.Plural
	rule(view, plural, "get, list, watch")
	rule(edit, plural, "create, update, patch, delete, deletecollection")
	if served := crd.Spec.Versions[0].Subresources; served != nil && served.Scale != nil {
		rule(view, plural+"/status, "+plural+"/scale", "get")
		// For kubectl scale, and for HorizontalPodAutoscalers.
		rule(edit, plural+"/scale", "update, patch")
		return nil
	}
	rule(view, plural+"/status", "get")
	return nil
}
