// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

const (
	// lasting is how long all reconciles of an object must have failed until its status says so:
	// what passes by itself changes no status.
	lasting = 10 * time.Second
	// sameText is how long the text of the error stays in status. A text that differs each time, by
	// a time or an identifier, would start a reconcile each time.
	sameText = time.Minute
)

// Reported is an error that its reconciler has put into the status already.
type Reported interface {
	error
	Reported()
}

// failures are the objects of a kind whose reconciles fail, one after the other. It is safe for
// concurrent use.
type failures struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.NamespacedName]failure
}

type failure struct {
	since time.Time
	// message is the text of an error, and at when it was one.
	message string
	at      time.Time
}

func (f *failures) forget(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, name)
}

// observe sets the conditions of an object whose reconciles have failed for a while, whatever the
// error is: every reconcile ends in a status.
func (f *failures) observe(obj Object, err error) {
	name := client.ObjectKeyFromObject(obj)
	_, early := errors.AsType[*limit.LaterError](err)
	if early || errors.Is(err, errStale) {
		return
	}
	if err == nil {
		f.forget(name)
		return
	}
	if message := f.message(name, err); message != "" {
		status := reflect.ValueOf(obj.GetStatus()).Elem()
		status.FieldByName("ObservedGeneration").SetInt(obj.GetGeneration())
		conditions := status.FieldByName("Conditions").Addr().Interface().(*[]metav1.Condition)
		NewStalled(ReasonReconcileError, message).SetConditions(conditions, obj.GetGeneration(), metav1.NewTime(f.clock.Now()))
	}
}

// message returns what status says of an error, "" for one that has not lasted, or that status has
// already.
func (f *failures) message(name types.NamespacedName, err error) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	last, failing := f.objects[name]
	if !failing {
		last.since = now
	}
	_, reported := errors.AsType[Reported](err)
	if reported || now.Sub(last.since) < lasting {
		last.message = ""
	} else if last.message == "" || now.Sub(last.at) >= sameText {
		last.message, last.at = err.Error()+"; it is tried again", now
	}
	f.objects[name] = last
	return last.message
}
