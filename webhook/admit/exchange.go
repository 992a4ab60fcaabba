// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// exchange is the memory of one request and its answer, used again for others.
// The review points into the body; the patch lives in ops.
type exchange struct {
	body   bytes.Buffer
	review review
	ops    patch.Ops
	answer []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// kept is the memory in bytes that a buffer may keep until its next use, well
// above what an admission takes, so that one huge object is not paid for forever.
const kept = 64 << 10

func (x *exchange) release() {
	if x.body.Cap() > kept || x.ops.Cap() > kept || cap(x.answer) > kept {
		return
	}
	x.body.Reset()
	x.review = review{}
	x.ops.Reset()
	x.answer = x.answer[:0]
	exchanges.Put(x)
}

// receive reads the review.
func (x *exchange) receive(r *http.Request) error {
	if r.Method != http.MethodPost {
		return errMethod
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return errContentType
	}
	// Memory grows with what has arrived, not with what a header announces.
	if _, err := x.body.ReadFrom(r.Body); err != nil {
		return unreadable(err)
	}
	if err := x.review.read(x.body.Bytes()); err != nil {
		return &rejection{http.StatusBadRequest, err.Error()}
	}
	return nil
}

func isJSON(contentType string) bool {
	const want = "application/json"
	if contentType == want {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == want
}

var jsonContent = []string{"application/json"}

// settle writes the answer that v stands for.
func (x *exchange) settle(v verdict) result {
	if v.refusal != nil {
		x.refuse(v.refusal)
		return refused
	}
	x.begin("true")
	if len(v.patch) > 0 {
		x.answer = append(x.answer, `,"patchType":"JSONPatch","patch":"`...)
		x.answer = base64.StdEncoding.AppendEncode(x.answer, v.patch)
		x.answer = append(x.answer, '"')
	}
	if len(v.warnings) > 0 {
		x.append("warnings", v.warnings)
	}
	x.end()
	return permitted
}

// fail writes an answer that refuses, and that is not about the object.
func (x *exchange) fail(status *metav1.Status) result {
	x.refuse(status)
	return failed
}

func (x *exchange) refuse(status *metav1.Status) {
	x.begin("false")
	x.append("status", status)
	x.end()
}

func (x *exchange) begin(allowed string) {
	x.answer = append(x.answer[:0], `{"kind":"`+reviewKind+`","apiVersion":"`+reviewVersion+`","response":{"uid":`...)
	x.answer = append(x.answer, x.review.Request.UID...)
	x.answer = append(x.answer, `,"allowed":`...)
	x.answer = append(x.answer, allowed...)
}

// append adds a field whose value is of a type that is always marshalled.
func (x *exchange) append(field string, value any) {
	b, _ := json.Marshal(value)
	x.answer = append(x.answer, `,"`+field+`":`...)
	x.answer = append(x.answer, b...)
}

func (x *exchange) end() { x.answer = append(x.answer, "}}"...) }
