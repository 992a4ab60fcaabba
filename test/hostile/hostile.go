// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile generates AdmissionReviews that cost a webhook as much as their size
// allows, for tests of what one request may cost.
package hostile

import (
	"fmt"
	"iter"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// A Kind is a kind of the operator: its name, and what a valid spec of it needs.
type Kind struct {
	Group, Version, Name string
	required             string
	template             bool
}

// Kinds are all kinds.
var Kinds = func() (out []Kind) {
	for _, kind := range all.Kinds {
		required := `"image":"a:1"`
		if !kind.HasPods() {
			required = `"deploymentName":"a","replicas":1`
		}
		out = append(out, Kind{kind.GVK.Group, kind.GVK.Version, kind.GVK.Kind, required, kind.HasPods()})
	}
	return out
}()

// Paths returns the paths of the kind's two webhooks.
func (k *Kind) Paths() []string {
	of := strings.ReplaceAll(k.Group, ".", "-") + "-" + k.Version + "-" + strings.ToLower(k.Name)
	return []string{"/mutate-" + of, "/validate-" + of}
}

// Review returns a review of an object, and of the stored one, if there is one.
func (k *Kind) Review(object, old string) string {
	operation := "CREATE"
	if old != "" {
		operation, old = "UPDATE", `,"oldObject":`+old
	}
	return k.review(fmt.Sprintf(`"uid":"u","operation":%q,"name":"a","namespace":"team","object":%s%s`, operation, object, old))
}

func (k *Kind) review(members string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"kind":{"group":%q,"version":%q,"kind":%q},%s}}`,
		k.Group, k.Version, k.Name, members)
}

// Object returns an object of the kind. spec is members of the spec, which begin with a
// comma, and metadata those of the metadata.
func (k *Kind) Object(metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":"a","namespace":"team"%s},"spec":{%s%s}}`,
		k.Group, k.Version, k.Name, metadata, k.required, spec)
}

// A Body is a review that costs as much as its size allows.
type Body struct {
	// Name describes it.
	Name string
	// Paths are those of the webhooks that it is for.
	Paths []string
	Text  string
}

// Bodies returns the worst known bodies of about a size in bytes, or of twice that size if
// they have a stored object. Lists returns those with long lists.
func Bodies(size int) iter.Seq[Body] {
	return func(yield func(Body) bool) {
		for i := range Kinds {
			k := &Kinds[i]
			for name, text := range k.texts(size) {
				if !yield(Body{k.Name + ": " + name, k.Paths(), text}) {
					return
				}
			}
		}
	}
}

// texts returns the reviews of a kind by what is in them.
func (k *Kind) texts(size int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, source := range [...]iter.Seq2[string, string]{k.envelopes(size), k.metadata(size), k.texted(size)} {
			for name, text := range source {
				if !yield(name, text) {
					return
				}
			}
		}
	}
}

// envelopes are reviews with much beside the object.
func (k *Kind) envelopes(size int) iter.Seq2[string, string] {
	object := k.Object("", "")
	return func(yield func(string, string) bool) {
		for name, members := range map[string]string{
			"groups":             `"userInfo":{"groups":[` + fill(size, `""`) + `]}`,
			"extra":              `"userInfo":{"extra":{` + fill(size, `"%d":[]`) + `}}`,
			"extra values":       `"userInfo":{"extra":{"a":[` + fill(size, `""`) + `]}}`,
			"options":            `"options":{` + fill(size, `"%d":[]`) + `}`,
			"unknown members":    fill(size, `"x%d":{}`),
			"repeated members":   fill(size, `"name":"a"`),
			"repeated objects":   fill(size, `"object":{"spec":{}}`),
			"a long namespace":   `"namespace":"` + strings.Repeat("a", size) + `"`,
			"a long user name":   `"userInfo":{"username":"` + strings.Repeat(`\u0000`, size/6) + `"}`,
			"a long uid":         `"uid":"` + strings.Repeat("u", size) + `"`,
			"a long name":        `"name":"` + strings.Repeat("a", size) + `"`,
			"a deep list":        `"options":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
			"a deep object":      `"options":` + strings.Repeat(`{"a":`, 9000) + `{}` + strings.Repeat("}", 9000),
			"a long number":      `"options":` + strings.Repeat("9", size),
			"a long subResource": `"requestSubResource":"` + strings.Repeat("a", size) + `"`,
		} {
			if !yield(name, k.review(`"uid":"u","operation":"CREATE","object":`+object+","+members)) {
				return
			}
		}
		for name, text := range map[string]string{
			"only spaces":              strings.Repeat(" ", size),
			"only brackets":            strings.Repeat("[", size),
			"a list":                   "[" + fill(size, "{}") + "]",
			"a long kind":              `{"kind":"` + strings.Repeat("a", size) + `"}`,
			"a long version":           `{"kind":"AdmissionReview","apiVersion":"` + strings.Repeat("a", size) + `"}`,
			"a long operation":         k.review(`"uid":"u","operation":"` + strings.Repeat("a", size) + `","object":` + object),
			"a response":               `{"kind":"AdmissionReview","response":{"warnings":[` + fill(size, `""`) + `]}}`,
			"not UTF-8":                k.Review(k.Object("", `,"x":"`+strings.Repeat("\xff", size)+`"`), ""),
			"an object that is a list": k.Review("["+fill(size, "{}")+"]", ""),
			"an object that is a text": k.Review(`"`+strings.Repeat("a", size)+`"`, ""),
			"a spec that is a list":    k.Review(`{"metadata":{"name":"a"},"spec":[`+fill(size, "{}")+`]}`, ""),
		} {
			if !yield(name, text) {
				return
			}
		}
	}
}

// metadata are reviews of objects with much metadata, or status.
func (k *Kind) metadata(size int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, members := range map[string]string{
			"labels":                   `,"labels":{` + fill(size, `"%d":""`) + `}`,
			"annotations":              `,"annotations":{` + fill(size, `"%d":""`) + `}`,
			"ownerReferences":          `,"ownerReferences":[` + fill(size, `{}`) + `]`,
			"finalizers":               `,"finalizers":[` + fill(size, `""`) + `]`,
			"managedFields":            `,"managedFields":[` + fill(size, `{}`) + `]`,
			"managedFields of null":    `,"managedFields":[` + fill(size, `null`) + `]`,
			"wrong managedFields":      `,"managedFields":[` + fill(size, `7`) + `]`,
			"fields":                   `,"managedFields":[{"fieldsV1":{` + fill(size, `"%d":{}`) + `}}]`,
			"fields in fields":         `,"managedFields":[{"fieldsV1":{` + fill(size, `"%d":{"":{"":{"":{"":{"":{"":{"":{}}}}}}}}`) + `}}]`,
			"many small fields":        `,"managedFields":[` + fill(size, `{"fieldsV1":{"a%d":{}}}`) + `]`,
			"an applied manifest":      `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{` + fill(size, `\"a%d\":{}`) + `}"}`,
			"the ports of a manifest":  `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"ports\":[` + fill(size, `{}`) + `]}}"}`,
			"a long name of an object": `,"name":"` + strings.Repeat("a", size) + `"`,
			"a long generateName":      `,"name":"","generateName":"` + strings.Repeat("A.", size/2) + `"`,
			"unknown metadata":         `,"x":[` + fill(size, `{}`) + `]`,
		} {
			object, old := k.Object(members, k.ports(8080)), k.Object("", k.ports(8080)+k.ports(8081))
			if !yield(name, k.Review(object, "")) || !yield(name+", update", k.Review(object, old)) ||
				!yield(name+", stored", k.Review(k.Object("", `,"image":"A B","replicas":-1`), object)) {
				return
			}
		}
		status := `{"metadata":{"name":"a"},"spec":{},"status":{"conditions":[` + fill(size, `{}`) + `]}}`
		if yield("status", k.Review(status, "")) {
			yield("status, update", k.Review(status, status))
		}
	}
}

// ports returns a port whose name can have been derived.
func (k *Kind) ports(port int) string {
	if !k.template {
		return ""
	}
	return fmt.Sprintf(`,"ports":[{"name":"tcp-%d","port":%d}]`, port, port)
}

// texted are reviews of objects with long texts and many values in the spec.
func (k *Kind) texted(size int) iter.Seq2[string, string] {
	dots, long := strings.Repeat("a.", size/2), strings.Repeat("A", size)
	return func(yield func(string, string) bool) {
		for name, members := range map[string]string{
			"image":                 `,"image":"` + long + `"`,
			"image of slashes":      `,"image":"` + strings.Repeat("a/", size/2) + `"`,
			"schedule":              `,"schedule":"` + strings.Repeat("0,", size/2) + `"`,
			"timeZone":              `,"timeZone":"` + strings.Repeat("A/", size/2) + `"`,
			"deploymentName":        `,"deploymentName":"` + dots + `"`,
			"deploymentname":        `,"deploymentname":"` + dots + `"`,
			"both names":            `,"deploymentName":"` + dots + `","deploymentname":"` + long + `"`,
			"label":                 `,"label":"` + strings.Repeat("a=", size/2) + `"`,
			"name":                  `,"name":"` + long + `"`,
			"rollingUpdate":         `,"rollingUpdate":"` + strings.Repeat("9", size) + `"`,
			"replicas":              `,"replicas":` + strings.Repeat("9", size),
			"resourceType":          `,"resourceType":"` + strings.Repeat(`\u0000`, size/6) + `"`,
			"a long quantity":       `,"resources":{"limits":{"cpu":"` + strings.Repeat("9", size) + `"}}`,
			"a large exponent":      `,"resources":{"limits":{"memory":"1e999999999"}}`,
			"large exponents":       `,"resourceType":"custom","resources":{"limits":{` + fill(size, `"a/%d":"1e999999999"`) + `}}`,
			"large page sizes":      `,"resourceType":"custom","resources":{"limits":{` + fill(size, `"hugepages-1e99%d":"1e99"`) + `}}`,
			"allowed exponents":     `,"resourceType":"custom","resources":{"limits":{` + fill(size, `"a/%d":"1e99"`) + `},"requests":{` + fill(size, `"a/%d":"1e-99"`) + `}}`,
			"limits":                `,"resources":{"limits":{` + fill(size, `"%d":0`) + `}}`,
			"a key of dots":         `,"resources":{"limits":{"` + dots + `":true}}`,
			"a key of brackets":     `,"resources":{"limits":{"` + strings.Repeat("[1]", size/3) + `":true}}`,
			"a key of slashes":      `,"resources":{"limits":{"` + strings.Repeat("~/", size/2) + `":true}}`,
			"keys of dots":          `,"resources":{"limits":{` + fill(size, `"%d`+strings.Repeat(".a", 100)+`":true`) + `}}`,
			"unknown members":       "," + fill(size, `"x%d":{}`),
			"repeated members":      "," + fill(size, `"image":"a"`),
			"numbers":               `,"x":[` + fill(size, `0`) + `]`,
			"wrong numbers":         `,"envs":[` + fill(size, `0`) + `]`,
			"fractions":             `,"x":[` + fill(size, `0.5`) + `],"replicas":0.5`,
			"a long fraction":       `,"replicas":0.` + strings.Repeat("5", size),
			"deep":                  `,"x":` + strings.Repeat(`[`, min(size/2, 9000)) + strings.Repeat("]", min(size/2, 9000)),
			"a template, deep":      `,"podTemplate":` + strings.Repeat(`{"spec":`, min(size/9, 9000)) + "1" + strings.Repeat("}", min(size/9, 9000)),
			"a template, text":      `,"podTemplate":"` + long + `"`,
			"a template, list":      `,"podTemplate":[` + fill(size, `{}`) + `]`,
			"an image in template":  `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"` + strings.Repeat("a/", size/2) + `"}]}}`,
			"errors that quote":     `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"b:1","env":[` + fill(size, `{"name":"`+strings.Repeat("=", 2000)+`%d"}`) + `]}]}}`,
			"escapes that quote":    `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"b:1","env":[` + fill(size, `{"name":"`+strings.Repeat(`\u0000<`, 200)+`%d"}`) + `]}]}}`,
			"unknown in a template": `,"podTemplate":{` + fill(size, `"x%d":0`) + `}`,
			"unknown and exponent":  `,"x":"1e999","podTemplate":{"spec":{` + fill(size, `"x%d":0`) + `}}`,
			"warnings":              `,"podTemplate":{"spec":{"containers":[` + fill(size, `{"name":"b%d","image":"b"}`) + `]}}`,
			"variables":             `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"b:1","env":[` + fill(size, `{"name":"VARIABLE_%d","value":"a value of a usual length"}`) + `]}]}}`,
			"wrong variables":       `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"b:1","env":[{}` + strings.Repeat(`,{"name":7}`, 3071) + `]}]}}`,
			"own variables":         `,"envs":[` + fill(size, `{"name":"VARIABLE_%d","value":"a value of a usual length"}`) + `]`,
			"variables of a size":   `,"resourceType":"huge","envs":[` + fill(size, `{"name":"VARIABLE_%d","value":"a value of a usual length"}`) + `]`,
			"one large variable":    `,"envs":[{"name":"A","value":"` + long + `"}]`,
			"misfits and errors": `,"envs":[` + fill(size/3, `{"value":0}`) + `],"podTemplate":{"spec":{"containers":[{"name":0,"env":[` + fill(size/3, `{"value":0}`) +
				`]},` + fill(size/3, `{"name":0}`) + `]}}`,
		} {
			object := k.Object("", members)
			if !yield("spec with "+name, k.Review(object, "")) || !yield("spec with "+name+", stored", k.Review(k.Object(`,"labels":{}`, members), object)) {
				return
			}
		}
	}
}

// fill repeats an item, with commas between, up to a size. %d is the number of the item.
func fill(size int, item string) string {
	var b strings.Builder
	numbered := strings.Contains(item, "%")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if numbered {
			fmt.Fprintf(&b, item, i)
		} else {
			b.WriteString(item)
		}
	}
	return b.String()
}
