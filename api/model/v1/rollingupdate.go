// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/util/intstr"

// MaxReplicas is the maximum of spec.replicas, and MaxRollingUpdate that of
// spec.rollingUpdate as a number of pods. The Deployment controller adds the two in an
// int32 (NewRSNewReplicas in k8s.io/kubernetes/pkg/controller/deployment/util), and 100% is
// as many pods again: twice 1<<30 - 1 is less than 1<<31 - 1.
const (
	MaxReplicas      = int32(1<<30 - 1)
	MaxRollingUpdate = MaxReplicas
)

// IsUnset reports whether an optional number or string is not set. An empty string is not
// set.
func IsUnset(v *intstr.IntOrString) bool {
	return v == nil || v.Type == intstr.String && v.StrVal == ""
}

// IntOrPercent returns the value of spec.rollingUpdate in the form of maxSurge and
// maxUnavailable, where every string is a percentage: the string "5" becomes the number 5.
// A number above MaxRollingUpdate, which may have been stored before it was refused,
// becomes MaxRollingUpdate, which has the same effect. Any other value is returned as it is.
func IntOrPercent(v intstr.IntOrString) intstr.IntOrString {
	if v.Type == intstr.Int {
		return intstr.FromInt32(min(v.IntVal, MaxRollingUpdate))
	}
	if number, ok := positive(v.StrVal); ok {
		return intstr.FromInt32(number)
	}
	return v
}

// positive parses a positive number of at most 9 digits, without sign and leading zeros.
func positive(s string) (number int32, ok bool) {
	if s == "" || len(s) > 9 || s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		number = number*10 + int32(s[i]-'0')
	}
	return number, true
}
