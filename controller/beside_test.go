// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A cluster is upgraded while the operator runs: for a time API servers of two versions, with other
// defaults and other managedFields, serve the objects of one etcd. What the operator keeps in status of
// its children (the hash of what it owns) comes from one of them, and is compared with what the other
// one returns.
var _ = Describe("API servers of two versions on one etcd", Ordered, func() {
	BeforeAll(func() {
		stop()
		installOptionalKinds()
		installCRD(autoscalersCRD)
		start()
	})

	It("show the same children: nothing is written, and what others change is corrected", func(ctx SpecContext) {
		version, cfg, end, err := env.Beside(controllerUser)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(end)
		var stored []*backup
		var mu sync.Mutex
		each(sampledManifests(), func(of string) {
			b := newStored(ctx, of)
			mu.Lock()
			defer mu.Unlock()
			stored = append(stored, b)
		})
		versions := func() (all []map[string]string) {
			for _, b := range stored {
				all = append(all, b.versions())
			}
			return all
		}

		By("a controller that uses the other one, " + version)
		stop()
		before, objects := versions(), 0
		o := unserved()
		mgr := newManager(cfg, &o)
		Expect(addControllersAndProbes(mgr, &o)).To(Succeed())
		other := launch(mgr).synced()
		Consistently(versions, "2s", "200ms").Should(Equal(before))

		By("a change of each child by another client")
		for _, b := range stored {
			for _, child := range b.children {
				if child.GetKind() == "ControllerRevision" {
					continue
				}
				removed := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
				Expect(env.Client.Patch(ctx, child.DeepCopy(), removed, undoer)).To(Succeed())
				objects++
			}
		}
		for _, b := range stored {
			b.expectWhole()
		}
		Expect(other.end()).To(Succeed())

		By("a controller that uses the first one again")
		before = versions()
		start()
		Consistently(versions, "2s", "200ms").Should(Equal(before))
		AddReportEntry(fmt.Sprintf("%s: %d objects, %d children", version, len(stored), objects))
	})
})
