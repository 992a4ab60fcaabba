// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// deepest is the nesting depth of a pod template with which the API server can still read the
// object: its managedFields have the 10,000 levels then that JSON decoders accept. The API
// server also stores deeper ones, and returns an error for every list of the kind from then
// on, which no client can repair (docs/troubleshooting.md).
const deepest = 9993

// JSON decoders accept no event and no list with such an object.
var _ = Describe("an object that is nested as deeply as the API server can read", Label(needsOwnCache), func() {
	It("stops no other object, in a watch and in a list", func(ctx context.Context) {
		namespace := newNamespace()
		DeferCleanup(removeAll, namespace)
		store := func(name string) {
			GinkgoHelper()
			body := fmt.Sprintf(`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":%q},"spec":{"image":"a:1","podTemplate":%s}}`,
				name, strings.Repeat(`{"a":`, deepest)+"1"+strings.Repeat("}", deepest))
			_, err := kubernetes.NewForConfigOrDie(env.Config).RESTClient().Post().
				AbsPath("/apis/model.github.com/v1/namespaces/" + namespace + "/modelboxes").Body([]byte(body)).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		good := func(name string) {
			GinkgoHelper()
			box := &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{Image: "a:1"}}
			box.Namespace, box.Name = namespace, name
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			Eventually(readiness(ctx, box)).ShouldNot(Or(Equal("not seen"), ContainSubstring("InvalidSpec")))
		}
		store("deep-1")
		good("after-an-event")
		stop()
		store("deep-2")
		start()
		good("after-a-list")
	})
})
