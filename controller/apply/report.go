// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report is what Apply did and found.
type report struct {
	repairs []repair
	// rewrites are the fields that do not have their desired value because admission or the
	// API server rewrote it, and newRewrites those of them that were written just now.
	rewrites, newRewrites []rewrite
}

// repair is a child that was applied again because another field manager modified it.
type repair struct {
	kind, name string
	// field is the path of the first field that differed.
	field string
	// manager is the other field manager, or empty if managedFields does not have it.
	manager string
}

// emit emits an event on the owner for each repair, and for values that admission rewrote.
func (r *report) emit(recorder events.EventRecorder, owner client.Object) {
	for _, repair := range r.repairs {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Repaired", "Apply",
			"%s %q: reverted %s, modified by %s", repair.kind, repair.name, repair.field, describeManager(repair.manager))
	}
	if len(r.newRewrites) > 0 {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Rewritten", "Apply",
			"%s %q: %s", r.newRewrites[0].kind, r.newRewrites[0].name, describe(r.newRewrites))
	}
}

// describe lists the fields that admission rewrote, "" if there are none.
func describe(rewrites []rewrite) string {
	const limit = 3
	parts := make([]string, 0, limit+1)
	for i := range rewrites[:min(len(rewrites), limit)] {
		parts = append(parts, rewrites[i].String())
	}
	if more := len(rewrites) - limit; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
