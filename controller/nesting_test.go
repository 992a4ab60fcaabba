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

// deep is half of the nesting depth that JSON decoders accept. An object that is nested as deeply
// as the API server stores it, 9,993 levels, ends every list and watch of its kind, because these
// add levels (docs/troubleshooting.md has the command that removes it).
const deep = 5000

var _ = Describe("an object that is nested deeply", func() {
	It("stops no other object, in a watch and in a list", func(ctx context.Context) {
		namespace := newNamespace()
		DeferCleanup(removeAll, namespace)
		store := func(name string) {
			GinkgoHelper()
			body := fmt.Sprintf(`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":%q},"spec":{"image":"a:1","podTemplate":%s}}`,
				name, strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep))
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
