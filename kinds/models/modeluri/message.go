// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

// Argument is a model in the argument --models of the program that fetches, which is a list of them
// as JSON.
type Argument struct {
	// Name is that of spec.models; empty is spec.model.
	Name      string   `json:"name,omitempty"`
	URI       string   `json:"uri"`
	SHA256    string   `json:"sha256,omitempty"`
	Volume    string   `json:"volume,omitempty"`
	Directory string   `json:"directory"`
	SizeLimit int64    `json:"sizeLimit"`
	Shared    bool     `json:"shared,omitempty"`
	Include   []string `json:"include,omitempty"`
	Exclude   []string `json:"exclude,omitempty"`
	// EnvPrefix begins the names of the variables that have this model's credentials.
	EnvPrefix string `json:"envPrefix,omitempty"`
}

// Message is the termination message of a fetch that has succeeded, as JSON.
type Message struct {
	Models []Fetched `json:"models"`
}

// Fetched is what a Message says of a model that is complete.
type Fetched struct {
	// Name is that of spec.models; empty is spec.model.
	Name string `json:"name,omitempty"`
	// Digest is the sha256 of the file, or that of what sha256sum prints for the files. Empty is
	// unknown, as Bytes then are.
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
}
