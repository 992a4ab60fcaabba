// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Environment variables of "make fuzz". Without them, a sample of fixed seed is tried.
const (
	specsEnv     = "MODELBOX_SPECS"      // How many specs are drawn; then by a new seed, which is printed.
	specsSeedEnv = "MODELBOX_SPECS_SEED" // The seed of the first of them.
)

const specsCorpus = "testdata/agreement-corpus.txt"

// specsToDraw is how many specs are drawn, and by which seed.
func specsToDraw() (count int, seed uint64) {
	GinkgoHelper()
	count, seed = 400, 1
	var err error
	if value := os.Getenv(specsEnv); value != "" {
		count, err = strconv.Atoi(value)
		Expect(err).NotTo(HaveOccurred())
		seed = rand.Uint64()
	}
	if value := os.Getenv(specsSeedEnv); value != "" {
		seed, err = strconv.ParseUint(value, 10, 64)
		Expect(err).NotTo(HaveOccurred())
	}
	return count, seed
}

// drawnSpec is a spec of a kind, as a user writes it.
type drawnSpec struct {
	kind string
	spec map[string]any
}

// String is the line that a corpus has for it.
func (d drawnSpec) String() string {
	data, err := json.Marshal(d.spec)
	if err != nil {
		panic(err)
	}
	return d.kind + " " + string(data)
}

// opinions are what admission and the API server say of one spec.
type opinions struct {
	drawnSpec
	// refused are the errors of admission. For some of them the controller builds nothing.
	refused     field.ErrorList
	unbuildable bool
	// invalid is the API server's answer to the first child that it does not take.
	invalid error
}

// agreementTally counts how specs were judged.
type agreementTally struct{ tried, admitted, refused, refusedChild, ownRules, differences int }

func (t agreementTally) String() string {
	return fmt.Sprintf("%d specs: %d admitted, %d refused (of %d the API server refuses a child as well, %d by the operator's own rules), %d differences",
		t.tried, t.admitted, t.refused, t.refusedChild, t.ownRules, t.differences)
}

var _ = Describe("admission and the API server", func() {
	It("agree on what pods and Services may be", func(ctx context.Context) {
		specs := corpusOfSpecs()
		count, seed := specsToDraw()
		AddReportEntry("seed of the specs", seed)
		GinkgoWriter.Printf("%s=%d %s=%d\n", specsEnv, count, specsSeedEnv, seed)
		for i := range count {
			specs = append(specs, drawSpec(seed+uint64(i)))
		}
		total, differences := compareAll(ctx, newJury(newNamespace()), specs)
		AddReportEntry("tally", total.String())
		GinkgoWriter.Println(total)
		Expect(differences).To(BeEmpty(), "%s\nadd them to %s", strings.Join(differences, "\n\n"), specsCorpus)
		if count >= 400 {
			Expect(total.admitted).To(BeNumerically(">", total.tried/5), total.String())
			Expect(total.refusedChild).To(BeNumerically(">", total.tried/5), total.String())
		}
	})

	for name, e := range exceptions {
		It("differ on purpose: "+name, func(ctx context.Context) {
			Expect(e.examples).NotTo(BeEmpty())
			jury := newJury(newNamespace())
			for _, line := range e.examples {
				got := jury.hear(ctx, readSpec(line))
				Expect(got.refused).NotTo(BeEmpty(), "admission takes %s", line)
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

// corpusOfSpecs are specs that were judged differently once.
func corpusOfSpecs() []drawnSpec {
	GinkgoHelper()
	var specs []drawnSpec
	lines := inCorpus(specsCorpus)
	for line := range lines {
		specs = append(specs, readSpec(line))
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

func compareAll(ctx context.Context, j *jury, specs []drawnSpec) (agreementTally, []string) {
	GinkgoHelper()
	heard := make([]opinions, len(specs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range 2 * workers {
		wg.Go(func() {
			for i := range next {
				func() {
					defer GinkgoRecover()
					heard[i] = j.hear(ctx, specs[i])
				}()
			}
		})
	}
	for i := range specs {
		next <- i
	}
	close(next)
	wg.Wait()
	var total agreementTally
	var differences []string
	for _, o := range heard {
		if difference := total.add(o); difference != "" {
			differences = append(differences, difference)
		}
	}
	return total, differences
}

// add counts opinions, and describes how they differ if they do.
func (t *agreementTally) add(o opinions) string {
	t.tried++
	if len(o.refused) == 0 {
		t.admitted++
		if o.invalid == nil {
			return ""
		}
		t.differences++
		return fmt.Sprintf("admitted, and the API server says: %v\n%s", o.invalid, o.drawnSpec)
	}
	t.refused++
	if o.invalid != nil {
		t.refusedChild++
		return ""
	}
	unexplained := slices.DeleteFunc(slices.Clone(o.refused), isException)
	if len(unexplained) == 0 || o.unbuildable && len(unexplained) < len(o.refused) || slices.ContainsFunc(o.refused, hidesOthers) {
		t.ownRules++ // Without children the API server cannot be asked whether the other errors are justified.
		return ""
	}
	t.differences++
	return fmt.Sprintf("refused, and the API server takes it: %v\n%s", unexplained.ToAggregate(), o.drawnSpec)
}

// jury has specs judged.
type jury struct {
	namespace string
	client    client.Client
}

func newJury(namespace string) *jury {
	return &jury{namespace: namespace, client: client.NewDryRunClient(env.Client)}
}

// hear judges a spec by admission's functions, and by the API server's opinion of the
// children that the controller builds of it. Nothing is stored.
func (j *jury) hear(ctx context.Context, d drawnSpec) opinions {
	GinkgoHelper()
	judged := judges[d.kind](j.namespace, d.spec)
	o := opinions{drawnSpec: d, refused: judged.errs, unbuildable: len(rules.Unbuildable(judged.errs)) > 0}
	if o.unbuildable {
		return o
	}
	for _, child := range judged.children {
		if o.invalid = j.ask(ctx, child); o.invalid != nil {
			break
		}
	}
	if len(judged.children) == 0 {
		o.invalid = errors.New("the controller cannot build it")
	}
	if o.invalid != nil && len(o.refused) == 0 && !j.storable(ctx, judged.object) {
		o.refused = field.ErrorList{field.InternalError(nil, errors.New("the schema refuses it"))}
	}
	return o
}

// ask is the API server's answer to a child that is created, and to one that is applied.
func (j *jury) ask(ctx context.Context, child client.Object) error {
	GinkgoHelper()
	data, err := json.Marshal(child)
	Expect(err).NotTo(HaveOccurred())
	if err := j.client.Create(ctx, child); err != nil {
		Expect(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)).To(BeTrue(), "%v\n%s", err, data)
		return err
	}
	return j.apply(ctx, data)
}

// storable says whether the schema takes an object.
func (j *jury) storable(ctx context.Context, obj client.Object) bool {
	obj.SetUID("")
	return j.client.Create(ctx, obj) == nil
}
