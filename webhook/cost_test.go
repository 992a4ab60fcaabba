// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

// The bounds of what one request may cost.
const (
	// What our handler allocates, in bytes, and so many for each byte of the body.
	maxAllocated        = 8 << 20
	maxAllocatedPerByte = 16
	maxAnswer           = 64 << 10
	maxErrors           = 65 // With the one that counts the others.
	maxWarnings         = 20
)

// stock decodes and answers a review, and decides nothing.
var stock = &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
	return admission.Allowed("")
})}

// TestCost sends the worst known bodies to both webhooks of each kind. What their handlers allocate
// beside controller-runtime, which decodes the review, and what they answer is bounded, by the length of
// the body. (The race detector allocates too.) MODELBOX_LONG=1 adds all long lists, and bodies of 3 MiB.
func TestCost(t *testing.T) {
	sources := []iter.Seq[hostile.Body]{those(costliest, hostile.Lists(12<<10)), hostile.Bodies(12 << 10), those(modelBoxes, hostile.Bodies(110<<10))}
	if os.Getenv("MODELBOX_LONG") != "" {
		sources = append(sources, hostile.Lists(12<<10), those(modelBoxes, hostile.Bodies(3<<20)))
	}
	mux, worst := webhooks(t), cost{}
	for _, bodies := range sources {
		for body := range bodies {
			for _, path := range body.Paths {
				if strings.Contains(body.Name, ": a long ") && strings.Contains("uid kind version", body.Name[strings.LastIndex(body.Name, " ")+1:]) {
					continue // The API server sets them, and they are repeated in the answer.
				}
				got := measure(t, mux, path, []byte(body.Text))
				if problem := got.problem(); problem != "" {
					t.Errorf("%s, %s: %s", path, body.Name, problem)
				}
				if got.allocated > worst.allocated {
					worst, worst.name = got, path+", "+body.Name
				}
			}
		}
	}
	t.Logf("the most that was allocated is %d KiB, and %d by the transport, for a body of %d KiB: %s",
		worst.allocated>>10, worst.stock>>10, worst.body>>10, worst.name)
}

// modelBoxes are the names of the bodies for ModelBoxes, and costliest those of the long lists that
// once cost the most.
var (
	modelBoxes = regexp.MustCompile(`^ModelBox`)
	costliest  = regexp.MustCompile(`spec\.ports\[\]|\.(env\[\]|labels\{\}|containers\[\]|nodeSelector\{\}|projected\.sources.*) of`)
)

// those returns the bodies whose name matches, without those that are too long for any webhook.
func those(names *regexp.Regexp, bodies iter.Seq[hostile.Body]) iter.Seq[hostile.Body] {
	return func(yield func(hostile.Body) bool) {
		for body := range bodies {
			if names.MatchString(body.Name) && len(body.Text) <= maxBody && !yield(body) {
				return
			}
		}
	}
}

// cost is what one request costs.
type cost struct {
	name string
	body int
	// allocated is what is allocated in bytes beside stock, which is what the transport allocates.
	allocated, stock uint64

	cpu    time.Duration
	answer []byte
}

func measure(t testing.TB, mux http.Handler, path string, body []byte) cost {
	t.Helper()
	send := func(to http.Handler) (allocated uint64, answer []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer = post(to, path, string(body))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, answer
	}
	start := cpuTime(t)
	whole, answer := send(mux)
	took := cpuTime(t) - start
	transport, _ := send(stock)
	return cost{body: len(body), allocated: max(whole, transport) - transport, stock: transport, cpu: took, answer: answer}
}

// cpuTime returns the CPU time of the process so far.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// problem returns which bound a cost is above, "" if none. The CPU time depends on the
// machine, so only FuzzCost looks at it.
func (c *cost) problem() string {
	if most := maxAllocated + maxAllocatedPerByte*uint64(c.body); c.allocated > most {
		return fmt.Sprintf("%d bytes are allocated beside the transport for a body of %d, want at most %d", c.allocated, c.body, most)
	}
	if len(c.answer) > maxAnswer {
		return fmt.Sprintf("the answer has %d bytes, want at most %d", len(c.answer), maxAnswer)
	}
	var review admissionv1.AdmissionReview
	if json.Unmarshal(c.answer, &review) != nil || review.Response == nil {
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
			got := measure(t, mux, path, []byte(review))
			if !bytes.Contains(got.answer, []byte(`"allowed":true`)) {
				t.Errorf("%s with %d variables: %.500s", path, strings.Count(env.String(), "name"), got.answer)
			}
		}
	}
}

// FuzzCost repeats an item in a spec, and measures what the webhooks of a kind allocate and
// how long they take, on create and on an update of an object that is stored with the same.
func FuzzCost(f *testing.F) {
	for i, parts := range [][3]string{
		{`"podTemplate":{"spec":{"containers":[{"name":"x","image":"x:1","env":[`, `{}`, `]}]}}`},
		{`"podTemplate":{"spec":{"containers":[`, `{"name":"a","volumeMounts":[{}]}`, `]}}`},
		{`"podTemplate":{"spec":{"volumes":[`, `{"name":"a","emptyDir":{"sizeLimit":"1e99"}}`, `]}}`},
		{`"podTemplate":{"spec":{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[`, `{"podAffinityTerm":{"namespaces":[""]}}`, `]}}}}`},
		{`"ports":[`, `{"port":0}`, `]`}, {`"envs":[`, `{"name":"=","valueFrom":{}}`, `]`}, {`"x":[`, `0`, `],"resources":{"limits":{"cpu":0.5}}`},
		{`"readinessProbe":{"httpGet":{"httpHeaders":[`, `{"name":"a b"}`, `]}}`}, {`"schedule":"`, `0`, `"`}, {`"label":"`, `a=`, `"`}, {`"resources":{"limits":{`, `"a.b/c":"1e9"`, `}}`},
	} {
		for n := range hostile.Kinds {
			f.Add(uint8(n), uint16(1000*(i+1)), parts[0], parts[1], parts[2])
		}
	}
	mux := webhooks(f)
	f.Fuzz(func(t *testing.T, n uint8, times uint16, before, item, after string) {
		kind := &hostile.Kinds[int(n)%len(hostile.Kinds)]
		if len(item)*int(times) > 3<<20 {
			return
		}
		object := kind.Object("", ","+before+strings.TrimSuffix(strings.Repeat(item+",", int(times)), ",")+after)
		if !json.Valid([]byte(object)) {
			return
		}
		for _, path := range kind.Paths() {
			for _, review := range []string{kind.Review(object, ""), kind.Review(strings.Replace(object, `"name":"a"`, `"name":"b"`, 1), object)} {
				affordable(t, mux, path, []byte(review))
			}
		}
	})
}

// affordable fails if a request costs too much. A CPU time is measured again, because that of
// other goroutines and of the machine's other work counts too, and may be ten times what an
// idle machine takes.
func affordable(t *testing.T, mux http.Handler, path string, body []byte) {
	t.Helper()
	most := 10 * (5*time.Millisecond + 50*time.Millisecond*time.Duration(len(body))/(1<<20))
	for attempt := 0; ; attempt++ {
		got := measure(t, mux, path, body)
		if problem := got.problem(); problem != "" {
			t.Fatalf("%s: %s: %.1000s", path, problem, body)
		}
		if got.cpu <= most {
			return
		}
		if attempt == 5 {
			t.Fatalf("%s: %v of CPU for %d bytes, want at most %v: %.1000s", path, got.cpu, len(body), most, body)
		}
	}
}
