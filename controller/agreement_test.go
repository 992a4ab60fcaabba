// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const specsCorpus = "testdata/agreement-corpus.txt"

// drawnSpec is a random spec of a kind, as a user could write it.
type drawnSpec struct {
	kind string
	spec map[string]any
}

// String returns the spec as a line of the corpus.
func (d drawnSpec) String() string {
	return d.kind + " " + asJSON(d.spec)
}

// evaluation has the errors of admission and of the API server for one spec.
type evaluation struct {
	drawnSpec
	// refused are the errors of admission. With some of them the controller builds no children.
	refused     field.ErrorList
	unbuildable bool
	// invalid is the API server's error for the first child that it refuses.
	invalid error
}

// agreementCounts counts specs by the result of their evaluation.
type agreementCounts struct{ tried, admitted, refused, refusedChild, ownRules, differences int }

func (t agreementCounts) String() string {
	return fmt.Sprintf("%d specs: %d admitted, %d refused (of %d the API server refuses a child as well, %d by the operator's own rules), %d differences",
		t.tried, t.admitted, t.refused, t.refusedChild, t.ownRules, t.differences)
}

var _ = Describe("admission and the API server", func() {
	It("agree on what pods and Services may be", func(ctx context.Context) {
		specs := corpusOfSpecs()
		count, seed := 400, uint64(1)
		if thoroughly {
			count, seed = 20_000, uint64(GinkgoRandomSeed())
		}
		AddReportEntry("seed of the specs", seed)
		d := newSpecDrawer(seed, specs)
		for range count {
			specs = append(specs, d.spec())
		}
		for _, template := range templates {
			for kind := range judges {
				specs = append(specs, readSpec(kind+` {"image":"a:1","podTemplate":`+template+`}`))
			}
		}
		total, differences := compareAll(ctx, newEvaluator(newNamespace()), specs)
		AddReportEntry("counts", total.String())
		GinkgoWriter.Println(total)
		Expect(differences).To(BeEmpty(), "%s\nadd them to %s", strings.Join(differences, "\n\n"), specsCorpus)
		Expect(total.admitted).To(BeNumerically(">", total.tried/5), total.String())
		Expect(total.refusedChild).To(BeNumerically(">", total.tried/5), total.String())
	})

	for name, e := range exceptions {
		It("differ on purpose: "+name, func(ctx context.Context) {
			Expect(e.examples).NotTo(BeEmpty())
			evaluator := newEvaluator(newNamespace())
			for _, line := range e.examples {
				got := evaluator.evaluate(ctx, readSpec(line))
				Expect(got.refused).NotTo(BeEmpty(), "admission accepts %s", line)
				for _, err := range got.refused {
					Expect(e.is(err)).To(BeTrue(), "%s: %v", line, err)
				}
				if !got.unbuildable {
					Expect(got.invalid).NotTo(HaveOccurred(), line)
				}
			}
		})
	}
})

// corpusOfSpecs returns specs for which admission and the API server differed once.
func corpusOfSpecs() []drawnSpec {
	GinkgoHelper()
	var specs []drawnSpec
	data, err := os.ReadFile(specsCorpus)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			specs = append(specs, readSpec(line))
		}
	}
	Expect(specs).NotTo(BeEmpty())
	return specs
}

// readSpec reads a kind and its spec, in JSON or in YAML's flow style.
func readSpec(line string) drawnSpec {
	GinkgoHelper()
	kind, text, _ := strings.Cut(line, " ")
	out := drawnSpec{kind: kind}
	Expect(yaml.UnmarshalStrict([]byte(text), &out.spec)).To(Succeed(), line)
	return out
}

func compareAll(ctx context.Context, e *evaluator, specs []drawnSpec) (agreementCounts, []string) {
	GinkgoHelper()
	evaluated := make([]evaluation, len(specs))
	each([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(from int) {
		for i := from; i < len(specs); i += 8 {
			evaluated[i] = e.evaluate(ctx, specs[i])
		}
	})
	older := lacks(37, "all fields of the specs") != ""
	var total agreementCounts
	var differences []string
	for _, o := range evaluated {
		if older && o.invalid != nil && unservedFields.MatchString(o.invalid.Error()) {
			continue
		}
		if difference := total.add(o); difference != "" {
			differences = append(differences, difference)
		}
	}
	return total, differences
}

// add counts an evaluation, and describes the difference if there is one.
func (t *agreementCounts) add(o evaluation) string {
	t.tried++
	if len(o.refused) == 0 {
		t.admitted++
		if o.invalid == nil {
			return ""
		}
		t.differences++
		return fmt.Sprintf("admitted, but the API server refuses it: %v\n%s", o.invalid, o.drawnSpec)
	}
	t.refused++
	if o.invalid != nil {
		t.refusedChild++
		return ""
	}
	unexplained := slices.DeleteFunc(slices.Clone(o.refused), isException)
	if len(unexplained) == 0 || o.unbuildable && len(unexplained) < len(o.refused) {
		t.ownRules++ // Without children the API server cannot confirm the other errors.
		return ""
	}
	t.differences++
	return fmt.Sprintf("refused, but the API server accepts it: %v\n%s", unexplained.ToAggregate(), o.drawnSpec)
}

// evaluator evaluates specs by dry-run requests.
type evaluator struct {
	namespace string
	client    client.Client
}

func newEvaluator(namespace string) *evaluator {
	return &evaluator{namespace: namespace, client: client.NewDryRunClient(env.Client)}
}

// evaluate returns the errors of admission for a spec, and those of the API server for the
// children that the controller builds of it. Nothing is stored.
func (e *evaluator) evaluate(ctx context.Context, d drawnSpec) evaluation {
	GinkgoHelper()
	j := judges[d.kind](e.namespace, []byte(asJSON(d.spec)))
	o := evaluation{drawnSpec: d, refused: j.errs, unbuildable: len(rules.Unbuildable(j.errs)) > 0}
	if o.unbuildable {
		return o
	}
	children, err := j.children()
	o.invalid = err // The controller cannot build it.
	for _, child := range children {
		if o.invalid = e.tryChild(ctx, child); o.invalid != nil {
			break
		}
	}
	if o.invalid != nil && len(o.refused) == 0 && !e.storable(ctx, j.object) {
		o.refused = field.ErrorList{field.InternalError(nil, errors.New("the schema refuses it"))}
	}
	return o
}

// unservedFields matches the errors for fields that the API server does not know, or not yet serve. Status reports them.
var unservedFields = regexp.MustCompile("would store it without|field not declared in schema|must specify one of: `fieldRef`")

// storedOtherwise matches fields that the API server removes because the feature they belong to is off.
// Status reports them.
var storedOtherwise = regexp.MustCompile(`"(protocol":"HTTP3|grpc":\{[^}]*"mode":|bindMountOptions":)`)

// tryChild returns the API server's error for the creation of a child, or for its apply, or that
// a value of the child is not in what the API server would store.
func (e *evaluator) tryChild(ctx context.Context, child client.Object) error {
	GinkgoHelper()
	data, err := json.Marshal(child)
	Expect(err).NotTo(HaveOccurred())
	desired := treeOf(withDefaults(child))
	if err := e.client.Create(ctx, child); err != nil {
		Expect(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)).To(BeTrue(), "%v\n%s", err, data)
		return err
	}
	if path := lost("spec", desired.(map[string]any)["spec"], treeOf(child).(map[string]any)["spec"]); path != "" && !storedOtherwise.Match(data) {
		return fmt.Errorf("the API server would store it without %s", path)
	}
	return e.apply(ctx, data)
}

// withDefaults returns a child with Kubernetes' defaults of a pod template, which round quantities up.
func withDefaults(child client.Object) client.Object {
	child = child.DeepCopyObject().(client.Object)
	if template := kinds.PodTemplate(child); template != nil {
		whole := &corev1.PodTemplate{Template: *template}
		corev1defaults.SetObjectDefaults_PodTemplate(whole)
		*template = whole.Template
	}
	return child
}

// storable reports whether the schema accepts an object.
func (e *evaluator) storable(ctx context.Context, obj client.Object) bool {
	obj.SetUID("")
	return e.client.Create(ctx, obj) == nil
}

// apply returns the API server's error for a server-side apply of a child.
func (e *evaluator) apply(ctx context.Context, data []byte) error {
	GinkgoHelper()
	child := &unstructured.Unstructured{}
	Expect(json.Unmarshal(data, child)).To(Succeed())
	unstructured.RemoveNestedField(child.Object, "status")
	return e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(child), client.ForceOwnership, client.FieldOwner("agreement"))
}
