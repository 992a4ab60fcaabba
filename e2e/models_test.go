//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/modelserver"
)

const (
	fetchingModel    = "FetchingModel"
	modelFetchFailed = "ModelFetchFailed"

	// atOnce is how many models are fetched at the same time. More pods than the machine starts at
	// once would wait for one another.
	atOnce = 8
)

// modelCase is a ModelBox with a model, and what its status must say in the end.
type modelCase struct {
	name, fields string
	// lastWord is empty for a model that is fetched, and otherwise the parts of the message of a
	// fetch that fails.
	lastWord []string
}

// fetched returns the cases of models that are served, each with all of its files.
func (m models) fetched() []modelCase {
	model := func(file, sum string) string {
		return fmt.Sprintf("model: {uri: \"http://%s/%s\", sha256: %s}", m.host, file, sumOf(sum))
	}
	hub := fmt.Sprintf("model: {uri: \"hf://%s@%s\", credentials: {name: hub}}", modelserver.Hub, modelserver.Commit)
	return []modelCase{
		{"tar", model("model.tar", "model.tar") + checking, nil},
		{"tar-gz", model("model.tar.gz", "model.tar.gz") + checking, nil},
		{"tar-zst", model("model.tar.zst", "model.tar.zst") + checking, nil},
		{"zip", model("model.zip", "model.zip") + checking, nil},
		{"plain", model(modelserver.Weights, modelserver.Weights) + checkingWeights, nil},
		{"alias", fmt.Sprintf("modelFileURL: http://%s/model.zip\nmodel: {sha256: %s}", m.host, sumOf("model.zip")) + checking, nil},
		{"https", fmt.Sprintf("modelFileURL: https://%s/model.tar.zst", m.host) + trusting + checking, nil},
		{"token", fmt.Sprintf("model: {uri: \"https://%s/private/model.zip\", credentials: {name: right}}", m.host) + trusting + checking, nil},
		{"redirected", model("redirect/here/model.zip", "model.zip") + checking, nil},
		{"resumed", model("cut/model.tar.gz", "model.tar.gz") + checking, nil},
		{"hub", hub + trusting + checking, nil},
		{"s3", fmt.Sprintf("model: {uri: \"s3://models/tiny.tar.zst\", sha256: %s, credentials: {name: s3}}", sumOf("model.tar.zst")) + checking, nil},
	}
}

// failed returns the cases of models that cannot be fetched, with the last word of each.
func (m models) failed() []modelCase {
	const idle = "\nresources: {}\nimage: "
	box := func(model, file, sum, more string, lastWord ...string) modelCase {
		name := strings.NewReplacer("/", "-", ".", "-").Replace(file) + "-" + sum[:4]
		return modelCase{name, fmt.Sprintf("model: {uri: \"%s://%s/%s\", sha256: %s%s}", model, m.host, file, sum, more) + idle + busybox, lastWord}
	}
	wrong := strings.Repeat("a", 64)
	cases := []modelCase{
		box("http", "none.zip", wrong, "", "[NotFound]", "404", "none.zip"),
		box("http", "model.zip", wrong, "", "[WrongHash]", sumOf("model.zip"), wrong),
		box("http", "truncated.tar.gz", sumOf("model.tar.gz"), "", "[WrongHash]", sumOf("truncated.tar.gz")),
		box("http", "truncated.tar.gz", sumOf("truncated.tar.gz"), "", "[RefusedArchive]"),
		box("http", "slip.zip", sumOf("slip.zip"), "", "[RefusedArchive]", "../../x"),
		box("http", "slip.tar.gz", sumOf("slip.tar.gz"), "", "[RefusedArchive]", "../../x"),
		box("http", "link.tar.gz", sumOf("link.tar.gz"), "", "[RefusedArchive]", "link"),
		box("http", "bomb.tar.zst", sumOf("bomb.tar.zst"), "", "[TooBig]"),
		box("http", "big.safetensors", sumOf("big.safetensors"), ", sizeLimit: 16Mi", "[TooBig]", "16.0 MiB"),
		box("http", "big.tar.gz", sumOf("big.tar.gz"), ", sizeLimit: 16Mi", "[TooBig]"),
		box("http", "private/model.zip", sumOf("model.zip"), "", "[Denied]", "401"),
		box("http", "redirect/ftp/model.zip", sumOf("model.zip"), "", "[Refused]", "ftp://"),
		box("http", "redirect/metadata/model.zip", sumOf("model.zip"), "", "[Refused]", "169.254.169.254"),
		box("https", "redirect/http/model.zip", sumOf("model.zip"), "", "[Refused]", "http://"),
		{"wrong-token", fmt.Sprintf("model: {uri: \"https://%s/private/model.zip\", credentials: {name: wrong}}", m.host) + trusting + idle[1:] + busybox,
			[]string{"[Denied]", "403"}},
		{"wrong-secret", fmt.Sprintf("model: {uri: \"s3://models/tiny.tar.zst\", sha256: %s, credentials: {name: s3-wrong}}", wrong) + idle + busybox,
			[]string{"[Denied]", "SignatureDoesNotMatch"}},
		{"untrusted", fmt.Sprintf("modelFileURL: https://%s/model.zip", m.host) + idle + busybox, []string{"[Refused]", "certificate"}},
		{"no-server", fmt.Sprintf("modelFileURL: https://none.%s/model.zip", m.host) + idle + busybox, []string{"[Unreachable]", "none." + m.host}},
	}
	for i := range cases {
		if strings.Contains(cases[i].fields, "/redirect/http/") {
			cases[i].fields += trusting
		}
	}
	return cases
}

var _ = Describe("the model of a ModelBox", func() {
	It("is complete and read-only when its server starts, or status says why it is not there", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		s3 := m.serveS3()
		m.credentials("right", "MODEL_TOKEN="+modelToken)
		m.credentials("wrong", "MODEL_TOKEN=left")
		m.credentials("hub", "HF_ENDPOINT=https://"+m.host)
		m.credentials("s3", "AWS_ENDPOINT_URL="+s3, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=right-secret", "AWS_REGION=eu-central-1")
		m.credentials("s3-wrong", "AWS_ENDPOINT_URL="+s3, "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=left-secret", "AWS_REGION=eu-central-1")
		cases := slices.Concat(m.fetched(), m.failed())

		By("waiting until the status of each says it")
		told, begun := map[string]time.Duration{}, 0
		Eventually(func(g Gomega) {
			for ; begun < len(cases) && begun-len(told) < atOnce; begun++ {
				apply(m.ns, server(cases[begun].name, cases[begun].fields))
			}
			m.tell(ctx, cases, told)
			for _, c := range cases {
				g.Expect(told).To(HaveKey(c.name), "%s: %s", c.name, m.readiness(ctx, c.name))
			}
		}, 8*time.Minute).Should(Succeed())
		m.reportTimes(cases, told)
		Expect(m.gets("/cut/model.tar.gz")).To(BeNumerically(">=", 3), "a cut connection is resumed, not begun anew")
		Expect(m.gets("/redirect/http/model.zip")).To(BeNumerically(">=", 1))
	}, SpecTimeout(10*time.Minute))

	It("is being fetched, with its progress in the log, until it is there", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "slow"}}
		apply(m.ns, server("slow", fmt.Sprintf("model: {uri: \"http://%s/slow/model.tar.gz\", sha256: %s}", m.host, sumOf("model.tar.gz"))+checking))
		Eventually(readyCondition(ctx, box)).Should(Equal("False " + fetchingModel))
		ready := meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady)
		Expect(ready.Message).To(And(ContainSubstring("fetch-model"), ContainSubstring("the log of the container has the progress")))
		Expect(meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionStalled)).To(BeFalse())
		Eventually(func() string { return m.fetchLog("slow") }).Should(MatchRegexp(`progress: .* of .* \(\d+ %\), .*/s\n(?s:.*)progress: `))
		Eventually(readyCondition(ctx, box)).Should(Equal("True Ready"))
	})

	It("is one of several, whose files are fetched at once, and not again after a failure", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		m.credentials("hub", "HF_ENDPOINT=https://"+m.host)
		apply(m.ns, server("several", fmt.Sprintf(`
model: {uri: "hf://%[1]s@%[2]s", credentials: {name: hub}}
models:
- {name: weights, uri: "hf://%[3]s@%[2]s", include: ["*.safetensors"], mountPath: /weights, credentials: {name: hub}}`,
			modelserver.Interrupted, modelserver.Commit, modelserver.Hub)+trusting+
			strings.Replace(checking, "touch /checked", `[ "$(ls -A /weights)" = `+modelserver.Weights+` ] && touch /checked`, 1)))
		m.awaitReady("several") // The first file is served after the others, so they are not fetched one after another.
		var lines string
		bytes := 0
		for _, name := range slices.Sorted(maps.Keys(modelserver.Files())) {
			content, asked := modelserver.Files()[name], 1
			if name == modelserver.Sums {
				asked = 2
			}
			Expect(m.gets(modelserver.PathOf(modelserver.Interrupted, name))).To(Equal(asked), name)
			lines += modelserver.SHA256(content) + "  " + name + "\n"
			bytes += len(content)
		}
		box := &modelv1.ModelBox{}
		Eventually(func() (*modelv1.ModelStatus, error) {
			err := admin.Get(ctx, client.ObjectKey{Namespace: m.ns, Name: "several"}, box)
			return box.Status.Model, err
		}).ShouldNot(BeNil())
		Expect(box.Status.Model).To(Equal(&modelv1.ModelStatus{
			URI: box.Spec.Model.URI, Digest: "sha256:" + modelserver.SHA256([]byte(lines)), Bytes: int64(bytes),
		}))
		Expect(box.Status.Models).To(ConsistOf(And(HaveField("Name", "weights"), HaveField("Bytes", BeEquivalentTo(len(modelserver.Files()[modelserver.Weights]))))))
	})

	It("is an image of a registry, or a directory of a claim", func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		node := nodes(ctx)[1].Name
		reference := m.serveRegistryOn(node)
		m.claim("weights")
		m.fill("weights", "bert", node)
		apply(m.ns, server("image", fmt.Sprintf("model: {uri: \"oci://%s\"}\npodTemplate: {spec: {nodeSelector: {kubernetes.io/hostname: %s}}}", reference, node)+checking)+
			"---"+server("claim", "modelFileURL: pvc://weights/bert"+checking))
		m.awaitReady("image")
		m.awaitReady("claim")
		for _, name := range []string{"image", "claim"} {
			Expect(running(ctx, m.ns, labelsOf(name))[0].Spec.InitContainers).To(BeEmpty(), "nothing is fetched")
		}
	})

	It("is fetched once into a claim that three pods share", func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		m.claim("shared")
		const path = "/paced/model-shared.tar.zst"
		manifest := server("shared", fmt.Sprintf("model: {uri: \"http://%s%s\", sha256: %s, claim: shared}\nreplicas: 3", m.host, path, sumOf("model.tar.zst"))+checking)
		apply(m.ns, manifest)
		m.awaitReady("shared")
		Expect(running(ctx, m.ns, labelsOf("shared"))).To(HaveLen(3))
		Expect(m.gets(path)).To(Equal(1), m.fetchLog("shared"))

		By("adding a pod")
		run(kubectl, "-n", m.ns, "scale", "modelbox/shared", "--replicas=4")
		Eventually(func() []corev1.Pod { return running(ctx, m.ns, labelsOf("shared")) }).Should(HaveLen(4))
		m.awaitReady("shared")
		Expect(m.gets(path)).To(Equal(1))
	})
})

// awaitReady waits longer than for an object whose pods fetch nothing.
func (m models) awaitReady(name string) {
	GinkgoHelper()
	run(kubectl, "-n", m.ns, "wait", "--for=condition=Ready", "--timeout=240s", "modelbox/"+name)
}

// readiness returns the status, reason and message of a ModelBox's Ready condition.
func (m models) readiness(ctx context.Context, name string) string {
	box := &modelv1.ModelBox{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: m.ns, Name: name}, box); err != nil {
		return err.Error()
	}
	return readinessOf(box)
}

func readinessOf(box *modelv1.ModelBox) string {
	ready := meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady)
	if ready == nil {
		return "not observed"
	}
	return fmt.Sprintf("%s %s %s", ready.Status, ready.Reason, ready.Message)
}

// tell notes the cases whose status says what it must, and how long after the start of the pod
// it did. It deletes their objects: a fetch that fails begins again and again.
func (m models) tell(ctx context.Context, cases []modelCase, told map[string]time.Duration) {
	GinkgoHelper()
	boxes := &modelv1.ModelBoxList{}
	Expect(admin.List(ctx, boxes, client.InNamespace(m.ns))).To(Succeed())
	now, began := time.Now(), m.starts(ctx)
	for _, box := range boxes.Items {
		i := slices.IndexFunc(cases, func(c modelCase) bool { return c.name == box.Name })
		if _, known := told[box.Name]; known || !cases[i].told(readinessOf(&box)) {
			continue
		}
		told[box.Name] = now.Sub(began[box.Name])
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &box))).To(Succeed())
	}
}

// told is true if a Ready condition is the one of the case.
func (c modelCase) told(ready string) bool {
	if c.lastWord == nil {
		return strings.HasPrefix(ready, "True Ready ")
	}
	return strings.HasPrefix(ready, "False "+modelFetchFailed+" ") &&
		!slices.ContainsFunc(c.lastWord, func(part string) bool { return !strings.Contains(ready, part) })
}

// starts returns when the kubelet began to start the first pod of each ModelBox.
func (m models) starts(ctx context.Context) map[string]time.Time {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(m.ns))).To(Succeed())
	starts := map[string]time.Time{}
	for _, pod := range pods.Items {
		if pod.Status.StartTime != nil {
			starts[pod.Labels["app.kubernetes.io/instance"]] = pod.Status.StartTime.Time
		}
	}
	return starts
}

// reportTimes reports how long after the start of its pod the status of each case was right.
// Some pods start at the same time, so a slow machine has longer times than one pod alone.
func (m models) reportTimes(cases []modelCase, told map[string]time.Duration) {
	var lines []string
	var longest time.Duration
	for _, c := range cases {
		what := "is ready"
		if c.lastWord != nil {
			what = strings.Join(c.lastWord[:1], " ")
			longest = max(longest, told[c.name])
		}
		lines = append(lines, fmt.Sprintf("%s %s after %s", c.name, what, told[c.name].Round(time.Second)))
	}
	AddReportEntry("models in status", fmt.Sprintf("failures are told at most %s after the start of the pod:\n%s",
		longest.Round(time.Second), strings.Join(lines, "\n")), ReportEntryVisibilityAlways)
}

// fill puts the model into a directory of a claim, as a pipeline that trains it would.
func (m models) fill(claim, directory, node string) {
	GinkgoHelper()
	apply(m.ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: fill
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: fill
    image: %s
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "mkdir /volume/%[3]s && wget -q -O - http://%[4]s/model.tar | tar -x -C /volume/%[3]s"]
    volumeMounts: [{name: volume, mountPath: /volume}]
  volumes:
  - name: volume
    persistentVolumeClaim: {claimName: %[5]s}
`, node, busybox, directory, m.host, claim))
	run(kubectl, "-n", m.ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=240s", "pod/fill")
}
