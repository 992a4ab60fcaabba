// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const undoer = client.FieldOwner("other-manager")

// contest is another client that undoes each write of the controller for one object at once.
type contest struct {
	// user is that of the controller, and writes are its requests that count, without the code.
	user, namespace string
	writes          []string
	// every is the time between two of these after ten; zero is 20 s.
	every time.Duration
	// undo undoes one write, if there is one. i is different in each call.
	undo func(ctx context.Context, i int) error
	// contested returns the object that is to be Contested, and what the message is to have. It may be nil.
	contested status.Object
	message   string
	// truth returns an error as long as status does not have the last state. It may be nil.
	truth func() error
}

// undone sends a merge patch of another field manager.
func undone(ctx context.Context, obj client.Object, format string, args ...any) error {
	return env.Client.Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)), undoer)
}

// contests returns one of each sort, with its object in a state in which nothing is written.
var contests = map[string]func(ctx context.Context, named metav1.ObjectMeta) contest{
	"a child that is deleted": func(ctx context.Context, named metav1.ObjectMeta) contest {
		box := contestedBox(ctx, named)
		return contest{
			writes: []string{"create deployments", "patch deployments", "create services"}, contested: box, message: `Deployment "box": it is undone repeatedly`,
			undo: func(ctx context.Context, _ int) error {
				return env.Client.Delete(ctx, &appsv1.Deployment{ObjectMeta: named})
			},
		}
	},
	"a key of a selector, another one each time": func(ctx context.Context, named metav1.ObjectMeta) contest {
		box := contestedBox(ctx, named)
		return contest{
			writes: []string{"create deployments", "create services", "patch services"}, contested: box, message: `spec.selector`,
			undo: func(ctx context.Context, i int) error {
				return undone(ctx, &corev1.Service{ObjectMeta: named}, `{"spec":{"selector":{"key-%d":"x"}}}`, i)
			},
		}
	},
	"4,097 fields of a child": func(ctx context.Context, named metav1.ObjectMeta) contest {
		const fields = 4097
		keys := func(value string) (list string) {
			for i := range fields {
				list += fmt.Sprintf(`"k%d":%q,`, i, value)
			}
			return list[:len(list)-1]
		}
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", PodTemplate: raw(`{"metadata":{"annotations":{` + keys("a") + `}}}`)}}
		settledBox(ctx, box)
		drift := keys("b")
		return contest{
			writes: []string{"create deployments", "patch deployments"}, contested: box, message: `by field manager "other-manager"`,
			undo: func(ctx context.Context, _ int) error {
				return undone(ctx, &appsv1.Deployment{ObjectMeta: named}, `{"spec":{"template":{"metadata":{"annotations":{%s}}}}}`, drift)
			},
		}
	},
	"an Eru of a Deployment that is deleted": func(ctx context.Context, named metav1.ObjectMeta) contest {
		target := foreignDeployment(named)
		target.SetAnnotations(map[string]string{mtsrev1.AnnotationEru: "true"})
		Expect(env.Client.Create(ctx, target)).To(Succeed())
		return contest{
			writes: []string{"create erus"},
			undo: func(ctx context.Context, i int) error {
				if i%7 == 0 { // Another generation of the Deployment.
					return undone(ctx, &appsv1.Deployment{ObjectMeta: named}, `{"spec":{"replicas":%d}}`, i)
				}
				return env.Client.Delete(ctx, &mtsrev1.Eru{ObjectMeta: named})
			},
		}
	},
	"the scale of a UnitedDeployment": func(ctx context.Context, named metav1.ObjectMeta) contest {
		existing(ctx, named)
		ud := united(named, "holder", 2)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		return contest{
			writes: []string{"patch deployments/scale"}, contested: ud,
			message: `Deployment "box": spec.replicas is modified repeatedly by field manager "other-manager"`,
			undo: func(ctx context.Context, i int) error {
				target := &appsv1.Deployment{ObjectMeta: named}
				if err := env.Client.Get(ctx, client.ObjectKeyFromObject(target), target); err != nil || *target.Spec.Replicas != 2 {
					return errors.Join(err, errors.New("it was not scaled"))
				}
				return undone(ctx, &appsv1.Deployment{ObjectMeta: named}, `{"spec":{"replicas":%d}}`, 3+i%5)
			},
		}
	},
	"the status of a UnitedDeployment": func(ctx context.Context, named metav1.ObjectMeta) contest {
		existing(ctx, named)
		ud := united(named, "holder", 1)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		return contest{
			writes: []string{"patch uniteddeployments/status"}, every: time.Second,
			undo: func(ctx context.Context, i int) error {
				body := fmt.Appendf(nil, `{"status":{"availableReplicas":%d}}`, i+1)
				return env.Client.Status().Patch(ctx, ud.DeepCopy(), client.RawPatch(types.MergePatchType, body))
			},
			truth: func() error {
				if n := get(ctx, ud).Status.AvailableReplicas; n != 0 {
					return fmt.Errorf("there are %d available replicas in status, and none in the Deployment's", n)
				}
				return nil
			},
		}
	},
	"the Secret of the certificate": func(ctx context.Context, _ metav1.ObjectMeta) contest {
		s := newSelfManaged(ctx)
		s.start()
		return contest{
			user: s.user, writes: []string{"patch secrets"},
			undo: func(ctx context.Context, _ int) error { return undone(ctx, s.secret, `{"data":null}`) },
		}
	},
	"caBundle": func(ctx context.Context, _ metav1.ObjectMeta) contest {
		s := newSelfManaged(ctx)
		s.start()
		return contest{
			user: s.user, writes: []string{"patch validatingwebhookconfigurations"},
			undo: func(ctx context.Context, _ int) error {
				patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`))
				return env.Client.Patch(ctx, s.validates.DeepCopy(), patch, undoer)
			},
		}
	},
}

func contestedBox(ctx context.Context, named metav1.ObjectMeta) *modelv1.ModelBox {
	GinkgoHelper()
	box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
	settledBox(ctx, box)
	return box
}

func settledBox(ctx context.Context, box *modelv1.ModelBox) {
	GinkgoHelper()
	Expect(env.Client.Create(ctx, box)).To(Succeed())
	Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
}

var _ = Describe("another client that undoes each write at once", long, func() {
	It("causes 10 writes and then 3 a minute for each object, and one write of status a second", func(ctx SpecContext) {
		running, began := map[string]contest{}, map[string]time.Time{}
		for name, begin := range contests {
			named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
			began[name] = time.Now()
			c := begin(ctx, named)
			if c.user == "" {
				c.user, c.namespace = controllerUser, named.Namespace
			}
			running[name] = c
		}
		var counts sync.Map
		var all sync.WaitGroup
		end := time.Now().Add(6 * time.Second)
		for name, c := range running {
			all.Go(func() {
				n := 0
				for i := 0; time.Now().Before(end) || c.lasts(ctx) && time.Now().Before(end.Add(4*time.Minute)); i++ {
					if c.undo(ctx, i) == nil {
						n++
					}
				}
				counts.Store(name, n)
			})
		}
		all.Wait()
		for name, c := range running {
			if c.contested != nil {
				Eventually(readiness(ctx, c.contested)).Should(Equal("False Contested"), name)
				Expect(ready(ctx, c.contested).Message).To(And(ContainSubstring(c.message), ContainSubstring("next after ")))
			}
			n, _ := counts.Load(name)
			AddReportEntry(name, fmt.Sprintf("%d writes, undone %d times", c.count(), n))
			most := 10 + int(time.Since(began[name])/cmp.Or(c.every, 20*time.Second))
			Expect(c.count()).To(And(BeNumerically(">", 0), BeNumerically("<=", most)), "%s, undone %d times", name, n)
			if c.truth != nil {
				Eventually(c.truth, 5*time.Second).Should(Succeed(), "the last state of status is written")
			}
		}
	})
})

// lasts reports whether the object is still to become Contested.
func (c *contest) lasts(ctx context.Context) bool {
	return c.contested != nil && readiness(ctx, c.contested)() != "False Contested"
}

// count returns how many writes of the controller the API server accepted.
func (c *contest) count() (n int) {
	GinkgoHelper()
	requests, err := env.Requests(c.user)
	Expect(err).NotTo(HaveOccurred())
	for _, r := range requests {
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if r.Namespace == cmp.Or(c.namespace, r.Namespace) && r.Code < 300 && slices.Contains(c.writes, what) {
			n++
		}
	}
	return n
}
