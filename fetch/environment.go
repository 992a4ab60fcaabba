// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
)

// ofPod matches the variables that are of the pod, and not of the Secret of its first model: who it
// is, and its proxies.
var ofPod = regexp.MustCompile(`^(?:AWS_(?:ROLE|WEB_IDENTITY|CONTAINER)_.*|(?i:HTTPS?|NO)_(?i:PROXY))$`)

// environment returns the variables of a model, whose names begin with a prefix: no model gets the
// credentials of another one. The region of the pod belongs to its role.
func environment(envPrefix string, of func(string) string) func(string) string {
	return func(key string) string {
		role := key == "AWS_REGION" && of("AWS_ROLE_ARN")+of("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" && of(envPrefix+"AWS_ACCESS_KEY_ID") == ""
		if value := of(envPrefix + key); value != "" || !role && !ofPod.MatchString(key) {
			return value
		}
		return of(key)
	}
}
