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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

const serviceName = "must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, " +
	"starting with a letter and ending with a letter or digit"

// k8s.io/apiserver/pkg/storage/names generates a name from as much of generateName as fits
// into 63 characters with a suffix of five letters and digits.
const (
	generatedPrefix = 58
	generatedSuffix = "00000"
)

var metadata = field.NewPath("metadata")

// ObjectName refuses a name that the children cannot have: it must be a DNS-1035 label
// (RFC 1035, 2.3.1), because the name of a Service must.
//
// The API server generates a name from generateName only after mutating admission
// (Store.create in k8s.io/apiserver/pkg/registry/generic/registry), so an object without
// a name is validated with a name that can be generated.
func ObjectName(meta *metav1.ObjectMeta) field.ErrorList {
	switch {
	case meta.Name != "":
		if len(meta.Name) > validation.DNS1035LabelMaxLength || len(validation.IsDNS1035Label(meta.Name)) > 0 {
			return field.ErrorList{field.Invalid(metadata.Child("name"), meta.Name, serviceName)}
		}
	case meta.GenerateName == "":
		return field.ErrorList{field.Required(metadata.Child("name"), "name or generateName is required")}
	default:
		prefix := meta.GenerateName[:min(len(meta.GenerateName), generatedPrefix)]
		if len(validation.IsDNS1035Label(prefix+generatedSuffix)) > 0 {
			return field.ErrorList{field.Invalid(metadata.Child("generateName"), meta.GenerateName, serviceName)}
		}
	}
	return nil
}

// Label refuses a name that is not a DNS-1123 label (RFC 1123, 2.1), as the names of
// containers and volumes must be.
func Label(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a name is required")}
	}
	if len(name) > validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Label(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, "must be a DNS-1123 label: 1 to 63 lower-case letters, "+
			"digits and dashes, starting and ending with a letter or digit")}
	}
	return nil
}

// ObjectOf refuses what cannot be the name of an object of a kind: a DNS-1123 subdomain (RFC 1123,
// 2.1).
func ObjectOf(kind string, path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must be the name of a "+kind+" in the same namespace")}
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return field.ErrorList{field.Invalid(path, name, "must be the name of a "+kind+", which is a DNS-1123 subdomain: 1 to 253 "+
			"lower-case letters, digits, dashes and dots, starting and ending with a letter or digit")}
	}
	return nil
}

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

// maxTimeZone is the schema's bound, in bytes. No name in the database is half as long; the
// bound limits the size of the error.
const maxTimeZone = 255

// Schedule refuses an expression that is not a cron schedule or never has a scheduled
// time.
func Schedule(path *field.Path, expression string) field.ErrorList {
	if len(expression) > cron.MaxLength {
		return field.ErrorList{field.TooLong(path, expression, cron.MaxLength)}
	}
	if _, err := cron.Parse(expression); err != nil {
		return field.ErrorList{field.Invalid(path, expression, err.Error())}
	}
	return nil
}

// TimeZone refuses a name that is not the IANA name of a time zone.
func TimeZone(path *field.Path, name string) field.ErrorList {
	if len(name) > maxTimeZone {
		return field.ErrorList{field.TooLong(path, name, maxTimeZone)}
	}
	if _, err := cron.LoadLocation(name); err != nil {
		return field.ErrorList{field.Invalid(path, name, err.Error())}
	}
	return nil
}
