// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	// A digest is well formed only if its algorithm is linked in.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"strings"
	"unicode/utf8"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxImage is the most characters that an image reference may have.
const MaxImage = 1024

// Image says whether an image is a reference that a container runtime can read, by
// the library that the kubelet reads it with.
func Image(path *field.Path, image string) field.ErrorList {
	if image == "" {
		return unbuildable(field.Required(path, "write an image reference such as registry.example.com/team/server:1.2"))
	}
	if utf8.RuneCountInString(image) > MaxImage {
		return unbuildable(field.TooLongCharacters(path, image, MaxImage))
	}
	if plain(image) {
		return nil
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return unbuildable(field.Invalid(path, image,
			"must be an image reference such as registry.example.com/team/server:1.2: "+err.Error()))
	}
	return nil
}

// mostPlain keeps clear of the library's limit of 255 characters of a name, which
// counts the registry that it adds.
const mostPlain = 200

// plain says, without the library's regular expressions, that an image is one of
// those that nearly all are: lower-case names with slashes between them and perhaps
// a tag. For any other it says no, and the library is asked.
func plain(image string) bool {
	name, tag, tagged := strings.Cut(image, ":")
	if len(image) > mostPlain || tagged && !plainTag(tag) {
		return false
	}
	first, _, more := strings.Cut(name, "/")
	if !more && len(name) == 64 || strings.Contains(first, "_") {
		return false // Perhaps a digest, or a name that is no host.
	}
	for component := range strings.SplitSeq(name, "/") {
		if !plainComponent(component) {
			return false
		}
	}
	return true
}

// plainComponent wants letters and digits, with single marks between them.
func plainComponent(component string) bool {
	mark := true
	for i := range len(component) {
		switch c := component[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			mark = false
		case (c == '.' || c == '-' || c == '_') && !mark:
			mark = true
		default:
			return false
		}
	}
	return !mark
}

func plainTag(tag string) bool {
	for i := range len(tag) {
		switch c := tag[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		case (c == '.' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return tag != "" && len(tag) <= 128
}

// ImageWarning is a sentence on an image that can change without a change of the
// object, and "" if the image has a tag other than latest, or a digest. Like all
// warnings it keeps to 120 characters, beyond which the API server may cut it.
func ImageWarning(path *field.Path, image string) string {
	if image == "" || strings.Contains(image, "@") {
		return ""
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	switch {
	case !tagged:
		return path.String() + ": has no tag, so what runs can change: name a version or a digest"
	case tag == "latest":
		return path.String() + ": what runs under latest can change: name a version or a digest"
	}
	return ""
}

// imageWarnings is ImageWarning for each container of a template.
func imageWarnings(template *corev1.PodTemplateSpec) []string {
	var out []string
	warn := func(list string, containers []corev1.Container) {
		for i := range containers {
			path := podTemplate.Child("spec", list).Index(i).Child("image")
			if sentence := ImageWarning(path, containers[i].Image); sentence != "" {
				out = append(out, sentence)
			}
		}
	}
	warn("containers", template.Spec.Containers)
	warn("initContainers", template.Spec.InitContainers)
	return out
}
