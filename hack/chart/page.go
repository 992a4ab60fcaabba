// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// page is an object that becomes a part of a template. Where a template has an action, the object
// has a mark, and the text of the action is beside it.
type page struct {
	object map[string]any
	texts  []string
}

// indent stands for the number of spaces before the lines of an action.
const indent = "INDENT"

// keyOfLines is what the key of a mark for whole lines begins with. It sorts behind the keys of
// Kubernetes, so that no such mark is the first key in an item of a list.
const keyOfLines = "zz-"

var (
	inline = regexp.MustCompile(`chart-mark-(\d+)-`)
	// items are in a list what lines are in a map.
	items  = regexp.MustCompile(`(?m)^( *)- ` + keyOfLines + `chart-mark-(\d+)-$`)
	lines  = regexp.MustCompile(`(?m)^( *)` + keyOfLines + `chart-mark-(\d+)-: ""$`)
	block  = regexp.MustCompile(`(?m)^( *)((?:- )*)([\w./-]+): chart-mark-(\d+)-$`)
	wholly = regexp.MustCompile(`(?m)^( *(?:- )*[\w./-]+: )` + system + `$`)
)

// mark returns the mark of a new text. Marks sort in the order of their texts.
func (p *page) mark(text string) string {
	p.texts = append(p.texts, text)
	return fmt.Sprintf("chart-mark-%04d-", len(p.texts)-1)
}

// render returns the object as YAML with the texts in the places of their marks. What the object
// itself has of the language of templates, such as an alert, is written so that it stays.
func (p *page) render() (string, error) {
	text, err := yaml.Marshal(p.object)
	if err != nil {
		return "", err
	}
	out := escape(string(text))
	for before := ""; before != out; {
		before = out
		out = replace(lines, out, func(m []string) string { return indented(p.text(m[2]), m[1]) })
		out = replace(items, out, func(m []string) string { return indented(p.text(m[2]), m[1]) })
		out = replace(block, out, func(m []string) string {
			depth := strconv.Itoa(len(m[1]) + len(m[2]) + 2)
			return m[1] + m[2] + m[3] + ": " + strings.ReplaceAll(p.text(m[4]), indent, depth)
		})
		out = replace(inline, out, func(m []string) string { return p.text(m[1]) })
	}
	// A namespace may have the name 1.
	out = wholly.ReplaceAllString(out, "$1{{ $$.Release.Namespace | quote }}")
	return strings.ReplaceAll(out, system, "{{ $.Release.Namespace }}"), nil
}

func (p *page) text(number string) string {
	n, _ := strconv.Atoi(number)
	return p.texts[n]
}

func replace(pattern *regexp.Regexp, text string, with func([]string) string) string {
	return pattern.ReplaceAllStringFunc(text, func(found string) string { return with(pattern.FindStringSubmatch(found)) })
}

func escape(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }

// indented returns lines behind spaces.
func indented(text, spaces string) string {
	text = strings.ReplaceAll(text, indent, strconv.Itoa(len(spaces)))
	return spaces + strings.ReplaceAll(text, "\n", "\n"+spaces)
}

// each calls act for each map or list that a path such as spec.ports.0.name ends in, with the last
// step of the path. A step * is each item of a list.
func each(in any, path string, act func(parent any, key string) error) error {
	first, rest, more := strings.Cut(path, ".")
	if items, ok := in.([]any); ok && first == "*" {
		for i := range items {
			if err := each(in, strings.TrimSuffix(strconv.Itoa(i)+"."+rest, "."), act); err != nil {
				return err
			}
		}
		return nil
	}
	if !more {
		return act(in, first)
	}
	next, err := get(in, first)
	if err != nil {
		return err
	}
	return each(next, rest, act)
}

func get(in any, key string) (any, error) {
	switch in := in.(type) {
	case map[string]any:
		if value, ok := in[key]; ok {
			return value, nil
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i < len(in) {
			return in[i], nil
		}
	}
	return nil, fmt.Errorf("there is no field %s", key)
}

func put(in any, key string, value any) {
	switch in := in.(type) {
	case map[string]any:
		in[key] = value
	case []any:
		i, _ := strconv.Atoi(key)
		in[i] = value
	}
}

// set puts a text in the place of a field, and returns what the field had.
func (p *page) set(path, text string) (any, error) {
	var had any
	return had, each(p.object, path, func(parent any, key string) (err error) {
		if had, err = get(parent, key); err == nil {
			put(parent, key, p.mark(text))
		}
		return err
	})
}

// add adds lines to the end of a list, or of a map, which is made if there is none.
func (p *page) add(path, text string) error {
	return each(p.object, path, func(parent any, key string) error {
		if fields, ok := parent.(map[string]any); ok && fields[key] == nil {
			fields[key] = map[string]any{}
		}
		value, err := get(parent, key)
		if err != nil {
			return err
		}
		if list, ok := value.([]any); ok {
			put(parent, key, append(list, keyOfLines+p.mark(text)))
			return nil
		}
		value.(map[string]any)[keyOfLines+p.mark(text)] = ""
		return nil
	})
}

// when makes a field depend on a condition.
func (p *page) when(path, condition string) error {
	return each(p.object, path, func(parent any, key string) error {
		value, err := get(parent, key)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(map[string]any{key: value})
		if err != nil {
			return err
		}
		fields := parent.(map[string]any)
		delete(fields, key)
		fields[keyOfLines+p.mark("{{- if "+condition+" }}\n"+escape(string(text))+"{{- end }}")] = ""
		return nil
	})
}
