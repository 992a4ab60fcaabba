// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const portNumber = "must be between 1 and 65535, inclusive"

// PortNumber refuses what is no number of a port.
func PortNumber(path func() *field.Path, number int32) field.ErrorList {
	if len(validation.IsValidPortNum(int(number))) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path(), number, portNumber)}
}

// PortNumberOrName refuses what is neither a number nor a name of a port.
func PortNumberOrName(path func() *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.Int && len(validation.IsValidPortNum(port.IntValue())) == 0 ||
		port.Type == intstr.String && IsPortName(port.StrVal) {
		return nil
	}
	return field.ErrorList{field.Invalid(path(), port, "must be a number between 1 and 65535, inclusive, or the name of a port")}
}

// IsPortName reports whether a name is valid for a port (RFC 6335).
func IsPortName(name string) bool { return len(validation.IsValidPortName(name)) == 0 }
