// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission measures the two webhooks' handlers against those that
// controller-runtime makes of a typed defaulter and validator.
package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	boxes "github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/test/replay"
)

// What is measured.
const (
	CPU         = "CPU per admission"
	Allocations = "allocations, changed 1.6 kB object"
	// AllocationsFull are those for an object that has all fields of a model server as well.
	AllocationsFull = "allocations, object with all fields of a model server"
)

// Result is what one admission costs: both webhooks, of an object that is created.
type Result struct {
	// CPU is microseconds of CPU time, garbage collection included.
	CPU float64
	// Allocations are those of the mutating handler, AllocationsFull for modelboxes.Full.
	Allocations, AllocationsFull float64
}

// Command is the argument that makes this program measure one side and end.
const Command = "admissions"

// admissions is how many are measured.
const admissions = 20000

// InProcess measures a side, "ours" or "typed", in a process of its own, so that
// neither the harness's garbage nor the other side's is in it.
func InProcess(ctx context.Context, side string) (Result, error) {
	self, err := os.Executable()
	if err != nil {
		return Result{}, err
	}
	out, err := exec.CommandContext(ctx, self, Command, side).Output()
	if err != nil {
		return Result{}, fmt.Errorf("measuring the admissions of %s: %w", side, err)
	}
	var result Result
	return result, json.Unmarshal(out, &result)
}

// Main measures a side and prints the result.
func Main(side string) error {
	mutating, validating, err := handlers(side)
	if err != nil {
		return err
	}
	written, complete := review(boxes.Written(0)), review(boxes.ModelBox(0))
	for range admissions / 20 { // The first ones fill pools and caches.
		if err := errors.Join(ask(mutating, written), ask(validating, complete)); err != nil {
			return err
		}
	}
	full := review(boxes.Full(0))
	if err := ask(mutating, full); err != nil {
		return err
	}
	allocations, allocationsFull := allocations(mutating, written), allocations(mutating, full)
	before, err := used()
	if err != nil {
		return err
	}
	for range admissions {
		_, _ = ask(mutating, written), ask(validating, complete)
	}
	runtime.GC() // What is left over was caused by them too.
	after, err := used()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(Result{
		CPU:         float64(after-before) / float64(time.Microsecond) / admissions,
		Allocations: allocations, AllocationsFull: allocationsFull,
	})
}

func allocations(handler http.Handler, body []byte) float64 {
	const times = 200
	client := replay.New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		client.Post(handler, body)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / times
}

// used is the CPU time of this process.
func used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

var client = replay.New()

func ask(handler http.Handler, body []byte) error {
	if answer := client.Post(handler, body); !bytes.Contains(answer, []byte(`"allowed":true`)) {
		return fmt.Errorf("not allowed: %s", answer)
	}
	return nil
}

// managedFields are those that the API server records for the client that wrote the object.
func managedFields() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-client-side-apply", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "model.github.com/v1",
		Time: new(metav1.Unix(1700000000, 0)), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},"f:labels":{".":{},` +
			`"f:stage":{},"f:team":{}}},"f:spec":{".":{},"f:envs":{},"f:image":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},` +
			`"f:httpGet":{".":{},"f:path":{},"f:port":{}},"f:periodSeconds":{}},"f:ports":{},"f:resourceType":{}}}`),
	}}
}

// review is a review of an object's creation as the API server sends it.
func review(box *modelv1.ModelBox) []byte {
	box.Namespace, box.UID = boxes.Namespace, "705ab4f5-6393-11e8-b7cc-42010a800003"
	box.ManagedFields = managedFields()
	raw, err := json.Marshal(box)
	if err != nil {
		panic(err)
	}
	gvk := metav1.GroupVersionKind(modelv1.SchemeGroupVersion.WithKind("ModelBox"))
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "modelboxes"}
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: gvk, Resource: gvr, RequestKind: &gvk, RequestResource: &gvr,
			Operation: admissionv1.Create, Namespace: box.Namespace, Name: box.Name, DryRun: new(false),
			Object:  apiruntime.RawExtension{Raw: raw},
			Options: apiruntime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply","fieldValidation":"Strict"}`)},
		},
	}
	r.Request.UserInfo.Username = "kubernetes-admin"
	r.Request.UserInfo.Groups = []string{"kubeadm:cluster-admins", "system:authenticated"}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return text
}
