// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const ifLimited = "{{- if $.Values.namespaces }}"

// merge makes one page of an object and of that which takes its place where the install is
// limited, so that a chart does not have both. It tells whether that is possible: if the second
// one has more fields, or names that end in the namespace, and no other differences.
func (p *page) merge(whole, limited *unstructured.Unstructured) bool {
	merged, ok := p.mergeValue(whole.DeepCopy().Object, limited.DeepCopy().Object)
	if ok {
		p.object = merged.(map[string]any)
	}
	return ok
}

func (p *page) mergeValue(whole, limited any) (any, bool) {
	if reflect.DeepEqual(whole, limited) {
		return whole, true
	}
	switch whole := whole.(type) {
	case map[string]any:
		limited, ok := limited.(map[string]any)
		return whole, ok && p.mergeFields(whole, limited)
	case []any:
		limited, ok := limited.([]any)
		return whole, ok && p.mergeItems(whole, limited)
	case string:
		return p.mark(whole + "{{ if $.Values.namespaces }}-{{ $.Release.Namespace }}{{ end }}"), limited == whole+"-"+system
	}
	return nil, false
}

func (p *page) mergeItems(whole, limited []any) bool {
	ok := len(whole) == len(limited)
	for i := 0; ok && i < len(whole); i++ {
		whole[i], ok = p.mergeValue(whole[i], limited[i])
	}
	return ok
}

func (p *page) mergeFields(whole, limited map[string]any) bool {
	for key := range whole {
		if _, ok := limited[key]; !ok {
			return false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(limited)) {
		value := limited[key]
		had, ok := whole[key]
		if !ok {
			text, err := yaml.Marshal(map[string]any{key: p.forNamespaces(value)})
			if err != nil {
				return false
			}
			whole[keyOfLines+p.mark(ifLimited+"\n"+escape(string(text))+"{{- end }}")] = ""
			continue
		}
		if whole[key], ok = p.mergeValue(had, value); !ok {
			return false
		}
	}
	return true
}
