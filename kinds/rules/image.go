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

// MaxImage is the maximum length of an image reference, in characters.
const MaxImage = 1024

// Image refuses an image that a container runtime cannot parse. The kubelet uses the same
// library.
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

// ImageWarning returns a warning for an image that can change without a change of the
// object, and "" for an image with a digest or a tag other than latest. policy is the name of
// the field imagePullPolicy of the container, "" if it is set: a node that has the image
// already does not pull it again with IfNotPresent. Like all warnings, it has at most 120
// characters, because the API server may truncate longer ones.
func ImageWarning(path *field.Path, image, policy string) string {
	if image == "" || strings.Contains(image, "@") {
		return ""
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	switch {
	case tagged && tag != "latest":
		return ""
	case tagged && policy != "":
		return path.String() + ": has tag latest; use a version tag or " + policy + ": IfNotPresent"
	case tagged:
		return path.String() + ": the image of tag latest can change; use a version tag or a digest"
	case policy != "":
		return path.String() + ": has no tag; use a version tag or " + policy + ": IfNotPresent"
	}
	return path.String() + ": has no tag, so the image can change; use a version tag or a digest"
}
