// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	modelv1ac "github.com/modelbox-operator/modelbox-operator/api/client/applyconfigurations/model/v1"
	"github.com/modelbox-operator/modelbox-operator/api/client/clientset/versioned"
	"github.com/modelbox-operator/modelbox-operator/api/client/informers/externalversions"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// List and watch ModelBoxes through the generated informer and lister.
func Example_informer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clientset := versioned.NewForConfigOrDie(env.Config)
	boxes := clientset.ModelV1().ModelBoxes("default")
	create := func(name string) {
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.27"}}
		if _, err := boxes.Create(ctx, box, metav1.CreateOptions{}); err != nil {
			fmt.Println("creating:", err)
		}
	}
	create("first")

	factory := externalversions.NewSharedInformerFactoryWithOptions(clientset, 0, externalversions.WithNamespace("default"))
	informer := factory.Model().V1().ModelBoxes()
	added := make(chan string, 2)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { added <- obj.(*modelv1.ModelBox).Name },
	})
	if err != nil {
		fmt.Println("adding a handler:", err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	fmt.Println("listed:", <-added)
	create("second")
	fmt.Println("watched:", <-added)

	known, err := informer.Lister().ModelBoxes("default").List(labels.Everything())
	fmt.Println("in the lister:", len(known), err)
	// Output:
	// listed: first
	// watched: second
	// in the lister: 2 <nil>
}

// Apply a ModelBox: say what it should be, whether it exists or not, and own no
// more of it than that.
func Example_apply() {
	ctx := context.Background()
	boxes := versioned.NewForConfigOrDie(env.Config).ModelV1().ModelBoxes("kube-public")
	box := modelv1ac.ModelBox("applied", "kube-public").
		WithSpec(modelv1ac.ModelBoxSpec().
			WithImage("nginx:1.27").
			WithReplicas(3).
			WithPorts(modelv1ac.Port().WithPort(80)))
	for range 2 {
		got, err := boxes.Apply(ctx, box, metav1.ApplyOptions{FieldManager: "example"})
		if err != nil {
			fmt.Println("applying:", err)
			return
		}
		fmt.Println(got.Name, *got.Spec.Replicas, "replicas, generation", got.Generation)
	}
	// Output:
	// applied 3 replicas, generation 1
	// applied 3 replicas, generation 1
}
