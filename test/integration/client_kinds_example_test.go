// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	appv1ac "github.com/modelbox-operator/modelbox-operator/api/client/applyconfigurations/app/v1"
	extensionv1ac "github.com/modelbox-operator/modelbox-operator/api/client/applyconfigurations/extension/v1"
	mtsrev1ac "github.com/modelbox-operator/modelbox-operator/api/client/applyconfigurations/mtsre/v1"
	mydomainv1beta1ac "github.com/modelbox-operator/modelbox-operator/api/client/applyconfigurations/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/api/client/clientset/versioned"
	"github.com/modelbox-operator/modelbox-operator/api/client/informers/externalversions"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// seen waits until an informer has shown an object of this name, and tells what
// its lister has.
func seen[T metav1.Object](ctx context.Context, informer cache.SharedIndexInformer, name string, get func(string) (T, error)) {
	added := make(chan struct{}, 1)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if obj.(metav1.Object).GetName() == name {
			added <- struct{}{}
		}
	}})
	if err != nil {
		fmt.Println("adding a handler:", err)
		return
	}
	select {
	case <-added:
	case <-ctx.Done():
		fmt.Println("waiting for", name, ctx.Err())
		return
	}
	obj, err := get(name)
	if err != nil {
		fmt.Println("getting", name, err)
		return
	}
	fmt.Printf("  %s is in the lister\n", obj.GetName())
}

// An App: created, watched, applied.
func Example_app() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := versioned.NewForConfigOrDie(env.Config)
	apps := clients.AppV1().Apps("default")
	app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: appv1.AppSpec{Image: "shop:1"}}
	if _, err := apps.Create(ctx, app, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
	}
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.App().V1().Apps()
	watched, lister := informer.Informer(), informer.Lister()
	factory.Start(ctx.Done())
	seen(ctx, watched, "shop", lister.Apps("default").Get)

	applied, err := apps.Apply(ctx, appv1ac.App("shop", "default").WithSpec(appv1ac.AppSpec().WithReplicas(3)),
		metav1.ApplyOptions{FieldManager: "example", Force: true})
	fmt.Println(*applied.Spec.Replicas, applied.Spec.Image, err)
	// Output:
	//   shop is in the lister
	// 3 shop:1 <nil>
}

// A Genericdaemon: created, watched, applied.
func Example_genericdaemon() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := versioned.NewForConfigOrDie(env.Config)
	daemons := clients.MydomainV1beta1().Genericdaemons("default")
	daemon := &mydomainv1beta1.Genericdaemon{
		ObjectMeta: metav1.ObjectMeta{Name: "syslog"},
		Spec:       mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1", Label: "logs"},
	}
	if _, err := daemons.Create(ctx, daemon, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
	}
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.Mydomain().V1beta1().Genericdaemons()
	watched, lister := informer.Informer(), informer.Lister()
	factory.Start(ctx.Done())
	seen(ctx, watched, "syslog", lister.Genericdaemons("default").Get)

	applied, err := daemons.Apply(ctx, mydomainv1beta1ac.Genericdaemon("syslog", "default").
		WithSpec(mydomainv1beta1ac.GenericdaemonSpec().WithLabel("tier=edge")),
		metav1.ApplyOptions{FieldManager: "example", Force: true})
	fmt.Println(applied.Spec.Label, applied.Spec.Image, err)
	// Output:
	//   syslog is in the lister
	// tier=edge syslog:1 <nil>
}

// A UnitedDeployment: created, watched, applied.
func Example_unitedDeployment() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := versioned.NewForConfigOrDie(env.Config)
	holders := clients.ExtensionV1().UnitedDeployments("default")
	replicas := int32(2)
	holder := &extensionv1.UnitedDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "holder"},
		Spec:       extensionv1.UnitedDeploymentSpec{DeploymentName: "web", Replicas: &replicas},
	}
	if _, err := holders.Create(ctx, holder, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
	}
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.Extension().V1().UnitedDeployments()
	watched, lister := informer.Informer(), informer.Lister()
	factory.Start(ctx.Done())
	seen(ctx, watched, "holder", lister.UnitedDeployments("default").Get)

	applied, err := holders.Apply(ctx, extensionv1ac.UnitedDeployment("holder", "default").
		WithSpec(extensionv1ac.UnitedDeploymentSpec().WithReplicas(5)),
		metav1.ApplyOptions{FieldManager: "example", Force: true})
	fmt.Println(*applied.Spec.Replicas, applied.Spec.DeploymentName, err)
	// Output:
	//   holder is in the lister
	// 5 web <nil>
}

// An Eru: created, watched, applied.
func Example_eru() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := versioned.NewForConfigOrDie(env.Config)
	erus := clients.MtsreV1().Erus("default")
	eru := &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: mtsrev1.EruSpec{DeploymentName: "web", Schedule: "0 3 * * *"}}
	if _, err := erus.Create(ctx, eru, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
	}
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.Mtsre().V1().Erus()
	watched, lister := informer.Informer(), informer.Lister()
	factory.Start(ctx.Done())
	seen(ctx, watched, "nightly", lister.Erus("default").Get)

	applied, err := erus.Apply(ctx, mtsrev1ac.Eru("nightly", "default").
		WithSpec(mtsrev1ac.EruSpec().WithEnabled(true).WithTimeZone("Asia/Shanghai")),
		metav1.ApplyOptions{FieldManager: "example", Force: true})
	fmt.Println(applied.Spec.Enabled, applied.Spec.Schedule, applied.Spec.TimeZone, err)
	// Output:
	//   nightly is in the lister
	// true 0 3 * * * Asia/Shanghai <nil>
}
