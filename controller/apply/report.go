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

// Report is what Children did and found.
type Report struct {
	Repairs []Repair
	// Effective are the fields that do not have their desired value because admission
	// or the API server rewrote it, and Rewritten those of them that were written just now.
	Effective, Rewritten []Effective
}

// Repair says that another field manager changed a child, which was applied again.
type Repair struct {
	// Kind and Name are those of the child.
	Kind, Name string
	// Field is the path of the first field that differed.
	Field string
	// Manager is the other field manager, or empty if managedFields do not tell.
	Manager string
}

// Announce reports repairs, and values that admission rewrote, by events on the owner.
func Announce(recorder events.EventRecorder, owner client.Object, report Report) {
	for _, repair := range report.Repairs {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Repaired", "Apply",
			"%s %q: %s was changed by %s and has its desired value again", repair.Kind, repair.Name, repair.Field, named(repair.Manager))
	}
	if len(report.Rewritten) > 0 {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Rewritten", "Apply",
			"%s %q: %s", report.Rewritten[0].Kind, report.Rewritten[0].Name, describe(report.Rewritten))
	}
}

// Describe says in the words of a message which values admission rewrote, "" if it
// rewrote none.
func (r *Report) Describe() string { return describe(r.Effective) }

func describe(effective []Effective) string {
	const most = 3
	parts := make([]string, 0, most+1)
	for i := range effective[:min(len(effective), most)] {
		parts = append(parts, effective[i].String())
	}
	if more := len(effective) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
