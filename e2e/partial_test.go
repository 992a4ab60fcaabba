//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/test/modelserver"
)

const (
	// killedBoxes fetch at the same time, all but the first of them into one claim, and the pod
	// of each is killed killsEach times.
	killedBoxes = 5
	killsEach   = 20
	// A fetch of the model server's /paced/ takes 4 s: most kills are during the fetch, some
	// before, and some after it.
	killWithin = 3 * time.Second
)

var _ = Describe("a model that is being fetched", func() {
	It("is never partly visible, although its pod is killed a hundred times", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		m.claim("models")
		m.watchClaim("models")
		kills := make([]*killing, killedBoxes)
		var done sync.WaitGroup
		for i := range kills {
			kills[i] = &killing{models: m, name: fmt.Sprintf("box-%d", i), claim: i > 0}
			done.Go(func() {
				defer GinkgoRecover()
				for range killsEach {
					kills[i].kill(ctx)
				}
			})
		}
		done.Wait()
		var all, fetching int
		for _, k := range kills {
			m.awaitReady(k.name)
			all, fetching = all+k.kills, fetching+k.fetching
		}
		seen := run(kubectl, "-n", m.ns, "logs", "watcher")
		AddReportEntry("kills", fmt.Sprintf("%d pods were killed, %d of them while they fetched; the claim got %d models, each complete when it appeared",
			all, fetching, strings.Count(seen, "complete")), ReportEntryVisibilityAlways)
		Expect(all).To(Equal(killedBoxes * killsEach))
		Expect(fetching).To(BeNumerically(">=", 25), "the kills must meet the fetches")
		Expect(seen).NotTo(ContainSubstring("partial"))
		Expect(strings.Count(seen, "complete")).To(BeNumerically(">=", killedBoxes-1))
		Expect(m.gets("/partial")).To(BeZero(), "servers that have started without a complete model")
	}, SpecTimeout(8*time.Minute))
})

// killing kills the pods of one ModelBox. Whenever its model is complete, it gets another one,
// so that there is always a fetch that can be killed.
type killing struct {
	models
	name  string
	claim bool

	model, kills, fetching int
}

// kill waits for a pod that fetches, and kills it at a random moment: the process by SIGKILL, and
// the pod by a deletion without a grace period. Without a claim, every second pod is not deleted
// if the process was killed: the kubelet starts the container again, with the same volume.
func (k *killing) kill(ctx context.Context) {
	GinkgoHelper()
	if k.model == 0 {
		k.next()
	}
	pod := k.await(ctx)
	for pod.Status.InitContainerStatuses[0].State.Terminated != nil { // The model is complete.
		k.next()
		pod = k.await(ctx)
	}
	select {
	case <-time.After(rand.N(killWithin)):
	case <-ctx.Done():
		return
	}
	_, err := attempt("", docker, "exec", pod.Spec.NodeName, "pkill", "-KILL", "-f", "^/fetch-model .*"+k.file())
	if err == nil {
		k.fetching++
	}
	if k.claim || err != nil || k.kills%2 == 0 {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
	}
	k.kills++
}

// next gives the ModelBox another model.
func (k *killing) next() {
	GinkgoHelper()
	k.model++
	apply(k.ns, k.manifest())
}

// await returns a pod that has begun to fetch the current model.
func (k *killing) await(ctx context.Context) (found *corev1.Pod) {
	GinkgoHelper()
	Eventually(func() *corev1.Pod {
		found = k.begun(ctx)
		return found
	}).ShouldNot(BeNil(), "a pod of %s that has begun to fetch %s", k.name, k.file())
	return found
}

func (k *killing) begun(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	for _, pod := range running(ctx, k.ns, labelsOf(k.name)) {
		current := slices.ContainsFunc(pod.Spec.InitContainers[0].Args, func(arg string) bool { return strings.HasSuffix(arg, k.file()) })
		if begun := pod.Status.InitContainerStatuses; current && len(begun) > 0 && begun[0].State.Waiting == nil {
			return &pod
		}
	}
	return nil
}

// file is the name of the current model, one that the claim does not have yet.
func (k *killing) file() string { return fmt.Sprintf("model-%s-%d.tar.gz", k.name, k.model) }

// manifest returns a ModelBox whose server reports to the model server if its model is not
// complete.
func (k *killing) manifest() string {
	claim := ""
	if k.claim {
		claim = ", claim: models"
	}
	box := server(k.name, fmt.Sprintf("strategy: {type: Recreate}\nmodel: {uri: \"http://%s/paced/%s\", sha256: %s%s}",
		k.host, k.file(), sumOf("model.tar.gz"), claim)+checking)
	return strings.Replace(box, "exec sleep 86400", "exec sleep 86400 || wget -q -O - http://"+k.host+"/partial", 1)
}

// watchClaim starts a pod that looks at a claim all the time. It prints a line for each
// directory that appears there: complete, or partial with what is in it.
func (m models) watchClaim(claim string) {
	GinkgoHelper()
	script := fmt.Sprintf(`
      while true; do
        for d in /volume/*/; do
          name=$(basename "$d")
          [ -d "$d" ] && [ ! -e "/tmp/$name" ] || continue
          if cd "$d" && [ "$(find . -type f | wc -l)" = %d ] && sha256sum -c -s %s; then
            echo "complete: $name"; touch "/tmp/$name"
          else
            echo "partial: $name: $(find . -type f)"
          fi
        done
        sleep 0.05
      done`, len(modelserver.Files()), modelserver.Sums)
	apply(m.ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: watcher
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: watcher
    image: %s
    imagePullPolicy: IfNotPresent
    command:
    - sh
    - -c
    - |%s
    volumeMounts: [{name: volume, mountPath: /volume, readOnly: true}]
  volumes:
  - name: volume
    persistentVolumeClaim: {claimName: %s}
`, busybox, script, claim))
	awaitReady(m.ns, "pod/watcher")
}
