// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// maxEnvelope is the maximum length in bytes of a review without its objects. Most of it is
// the user's groups and extra attributes, which the API server takes from a token: a header
// of a request. Decoded, a short text takes ten times its length.
const maxEnvelope = 256 << 10

// checkEnvelope returns an error if a review has too much beside its objects, or is not
// JSON. It decodes nothing, and runs only for a review that is longer than its envelope may
// be.
func checkEnvelope(body []byte) error {
	if len(body) <= maxEnvelope {
		return nil
	}
	e := envelope{in: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	if err := e.review(); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if size := int64(len(body)) - e.objects; size > maxEnvelope {
		return fmt.Errorf("the review has %d bytes beside object and oldObject, and may have at most %d", size, maxEnvelope)
	}
	return nil
}

type envelope struct {
	in      *jsontext.Decoder
	objects int64 // The bytes of object and oldObject.
}

func (e *envelope) review() error {
	return e.members(func(name string) error {
		if name == "request" {
			return e.request()
		}
		return e.in.SkipValue()
	})
}

func (e *envelope) request() error {
	return e.members(func(name string) error {
		start := e.in.InputOffset()
		err := e.in.SkipValue()
		if name == "object" || name == "oldObject" {
			e.objects += e.in.InputOffset() - start
		}
		return err
	})
}

// members reads an object, and any other value as one without members.
func (e *envelope) members(value func(name string) error) error {
	if e.in.PeekKind() != '{' {
		return e.in.SkipValue()
	}
	if _, err := e.in.ReadToken(); err != nil {
		return err
	}
	for e.in.PeekKind() == '"' {
		name, err := e.in.ReadToken()
		if err != nil {
			return err
		}
		if err := value(name.String()); err != nil {
			return err
		}
	}
	_, err := e.in.ReadToken() // The end of the object, or what is wrong instead.
	return err
}
