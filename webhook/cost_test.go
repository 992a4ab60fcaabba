// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

// The bounds of what one request may cost: see docs/threat-model.md.
const (
	// In bytes, for a request and for each byte of its body.
	maxAllocated        = 12 << 20
	maxAllocatedPerByte = 56
	maxAnswer           = 64 << 10
	maxErrors           = 65 // With the one that counts the others.
	maxWarnings         = 20

	// CPU time depends on the machine, so it is reported, and bounds nothing.
	maxCPU       = 20 * time.Millisecond
	maxCPUPerMiB = 200 * time.Millisecond
)

// TestCost sends the worst known bodies to both webhooks of each kind. What is allocated for them, and
// what they answer, is bounded by the length of the body. (The race detector allocates too.)
// MODELBOX_LONG=1 adds bodies of 3 MiB.
func TestCost(t *testing.T) {
	sources := []iter.Seq[hostile.Body]{hostile.Bodies(12 << 10), modelBoxes(hostile.Bodies(110 << 10)), corpus(t)}
	if os.Getenv("MODELBOX_LONG") != "" {
		sources = append(sources, modelBoxes(hostile.Bodies(3<<20)))
	}
	mux, worst := webhooks(t), [3]found{}
	for _, bodies := range sources {
		for body := range bodies {
			for _, path := range body.Paths {
				if strings.Contains(body.Name, ": a long ") && strings.Contains("uid kind version", body.Name[strings.LastIndex(body.Name, " ")+1:]) {
					continue // The API server sets them, and they are repeated in the answer.
				}
				got := measure(mux, path, body.Text)
				if problem := got.problem(); problem != "" {
					t.Errorf("%s, %s: %s", path, body.Name, problem)
				}
				for i, part := range got.parts() {
					if part > worst[i].parts()[i] {
						worst[i] = found{path + ", " + body.Name, got}
					}
				}
			}
		}
	}
	for i := range worst {
		t.Log(worst[i].describe(i))
	}
}

// shapes returns those that once cost too much, or the most of all.
func shapes(t testing.TB) (list []*hostile.Shape) {
	t.Helper()
	data, err := os.ReadFile("testdata/costly.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// corpus returns the bodies of shapes.
func corpus(t testing.TB) iter.Seq[hostile.Body] {
	t.Helper()
	all := shapes(t)
	return func(yield func(hostile.Body) bool) {
		for i, shape := range all {
			if !yield(hostile.Body{Name: fmt.Sprint("shape ", i), Paths: hostile.Kinds[shape.Kind].Paths(), Text: shape.Text()}) {
				return
			}
		}
	}
}

// modelBoxes returns the bodies for ModelBoxes, without those that are too long for any webhook.
func modelBoxes(bodies iter.Seq[hostile.Body]) iter.Seq[hostile.Body] {
	return func(yield func(hostile.Body) bool) {
		for body := range bodies {
			if strings.HasPrefix(body.Name, "ModelBox") && len(body.Text) <= maxBody && !yield(body) {
				return
			}
		}
	}
}

// cost is what one request costs, its transport included: the CPU time of its goroutine, and the bytes
// that are allocated.
type cost struct {
	body      int
	cpu       time.Duration
	allocated uint64
	text      []byte // The answer.
}

// measure must be called by one goroutine at a time.
func measure(mux http.Handler, path, body string) cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime()
	answer := post(mux, path, body)
	took := cpuTime() - start
	runtime.ReadMemStats(&after)
	return cost{len(body), took, after.TotalAlloc - before.TotalAlloc, answer}
}

// cpuTime returns the CPU time of this thread so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// parts returns the parts of the bounds that a request takes: of the CPU time, of the bytes that are
// allocated, and of those of the answer.
func (c *cost) parts() [3]float64 {
	return [3]float64{
		float64(c.cpu) / (float64(maxCPU) + float64(maxCPUPerMiB)*float64(c.body)/(1<<20)),
		float64(c.allocated) / (maxAllocated + maxAllocatedPerByte*float64(c.body)),
		float64(len(c.text)) / maxAnswer,
	}
}

// problem returns which bound a cost is above, "" if none.
func (c *cost) problem() string {
	if parts := c.parts(); parts[1] > 1 || parts[2] > 1 {
		return fmt.Sprintf("a body of %d bytes: %d are allocated, and the answer has %d: %.2f of the bounds", c.body, c.allocated, len(c.text), parts)
	}
	var review admissionv1.AdmissionReview
	if json.Unmarshal(c.text, &review) != nil || review.Response == nil {
		return "" // A sentence in plain text.
	}
	if n := len(review.Response.Warnings); n > maxWarnings {
		return fmt.Sprintf("%d warnings", n)
	}
	if result := review.Response.Result; result != nil && result.Details != nil && len(result.Details.Causes) > maxErrors {
		return fmt.Sprintf("%d errors", len(result.Details.Causes))
	}
	return ""
}

// TestALargeObjectIsAdmitted: what a large pod really has is within the bounds.
func TestALargeObjectIsAdmitted(t *testing.T) {
	t.Parallel()
	mux, box := webhooks(t), &hostile.Kinds[0]
	var env strings.Builder
	for i := 0; env.Len() < 127<<10; i++ {
		fmt.Fprintf(&env, `,{"name":"VARIABLE_%d","value":"a value of a usual length"}`, i)
	}
	object := box.Object("", `,"podTemplate":{"spec":{"containers":[{"name":"b","image":"b:1","env":[`+env.String()[1:]+`]}]}}`)
	for _, path := range box.Paths() {
		for _, review := range []string{box.Review(object, ""), box.Review(object, box.Object("", ""))} {
			got := measure(mux, path, review)
			if !bytes.Contains(got.text, []byte(`"allowed":true`)) {
				t.Errorf("%s with %d variables: %.500s", path, strings.Count(env.String(), "name"), got.text)
			}
		}
	}
}

// found is what a body costs.
type found struct {
	name string
	cost
}

// describe describes a cost by one of its parts.
func (f *found) describe(part int) string {
	return fmt.Sprintf("the most of the bound of %s: %.2f, %v of CPU, %d KiB allocated, an answer of %d bytes, for a body of %d KiB: %s",
		[...]string{"CPU time", "allocated bytes", "the answer"}[part], f.parts()[part], f.cpu.Round(time.Millisecond), f.allocated>>10, len(f.text), f.body>>10, f.name)
}
