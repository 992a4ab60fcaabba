// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// oldest is the version of the expressions that Kubernetes 1.30, the oldest that the
// operator supports, accepts: those that the version before it can evaluate.
var oldest = version.MajorMinor(1, 29)

// expression is an expression of a policy.
type expression struct {
	name, text string
	types      []*cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return e.types }

// policies returns the policies of the files in this folder.
func policies(t *testing.T) []*admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "policies", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*admissionregistrationv1.ValidatingAdmissionPolicy
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := utilyaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&policy); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if policy.Kind == "ValidatingAdmissionPolicy" {
			out = append(out, &policy)
		}
	}
	if len(out) < 2 {
		t.Fatalf("%d policies were found", len(out))
	}
	return out
}

// The API server of the tests is newer than the oldest one that the operator supports.
func TestExpressionsCompileInTheOldestVersion(t *testing.T) {
	t.Parallel()
	for _, policy := range policies(t) {
		compiler, err := plugin.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
		if err != nil {
			t.Fatal(err)
		}
		newer := expression{"", "format.dns1123Label().hasValue()", []*cel.Type{cel.BoolType}}
		if compiler.CompileCELExpression(newer, plugin.OptionalVariableDeclarations{}, environment.NewExpressions).Error == nil {
			t.Fatal("a function that is newer compiles, so the test finds nothing")
		}
		all := plugin.OptionalVariableDeclarations{HasAuthorizer: true}
		check := func(what string, result plugin.CompilationResult) {
			if result.Error != nil {
				t.Errorf("%s: %s: %v", policy.Name, what, result.Error)
			}
		}
		for _, c := range policy.Spec.MatchConditions {
			check(c.Name, compiler.CompileCELExpression(expression{c.Name, c.Expression, []*cel.Type{cel.BoolType}}, all, environment.NewExpressions))
		}
		for _, v := range policy.Spec.Variables {
			check(v.Name, compiler.CompileAndStoreVariable(expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, all, environment.NewExpressions))
		}
		for _, v := range policy.Spec.Validations {
			check(v.Expression, compiler.CompileCELExpression(expression{"", v.Expression, []*cel.Type{cel.BoolType}}, all, environment.NewExpressions))
			if v.MessageExpression == "" {
				continue
			}
			message := expression{"", v.MessageExpression, []*cel.Type{cel.StringType}}
			check(v.MessageExpression, compiler.CompileCELExpression(message, plugin.OptionalVariableDeclarations{}, environment.NewExpressions))
		}
	}
}
