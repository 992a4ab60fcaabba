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
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxImage is the most characters that an image reference may have.
const MaxImage = 1024

// Image says whether an image is a reference that a container runtime can read, by
// the library that the kubelet reads it with.
func Image(path *field.Path, image string) field.ErrorList {
	if image == "" {
		return MarkUnbuildable(field.Required(path, "specify an image such as registry.example.com/team/server:1.2"))
	}
	if utf8.RuneCountInString(image) > MaxImage {
		return MarkUnbuildable(field.TooLongCharacters(path, image, MaxImage))
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return MarkUnbuildable(field.Invalid(path, image,
			"must be an image reference such as registry.example.com/team/server:1.2: "+err.Error()))
	}
	return nil
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
		return path.String() + ": has no tag, so the image can change; use a version tag or a digest"
	case tag == "latest":
		return path.String() + ": the image of tag latest can change; use a version tag or a digest"
	}
	return ""
}
