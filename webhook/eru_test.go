// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// eruManifest is an Eru with these fields in its spec, beside those that have a default of
// their own.
func eruManifest(fields string) string {
	return `{"apiVersion":"mtsre.meitu.com/v1","kind":"Eru","metadata":{"name":"web"},"spec":{"schedule":"0 0 * * *"` + fields + `}}`
}

// A write is one command of a user, and the two names that are stored after it, or a part of
// the error.
type write struct {
	command      func(namespace string) (string, error)
	names, error string
}

// kubectlWith returns a command whose standard input is an Eru with these fields.
func kubectlWith(fields string, args ...string) func(string) (string, error) {
	return func(namespace string) (string, error) {
		return env.Kubectl(eruManifest(fields), append([]string{"-n", namespace}, args...)...)
	}
}

func applied(fields string, flags ...string) func(string) (string, error) {
	return kubectlWith(fields, append([]string{"apply", "-f", "-"}, flags...)...)
}

func appliedServerSide(fields, manager string) func(string) (string, error) {
	return applied(fields, "--server-side", "--field-manager="+manager)
}

func patched(kind, patch string) func(string) (string, error) {
	return kubectlWith("", "patch", "eru", "web", "--type="+kind, "-p", patch)
}

// storedNames returns deploymentName and deploymentname of the stored Eru.
func storedNames(namespace string) string {
	GinkgoHelper()
	return kubectlIn(namespace, "", "get", "eru", "web", "-o", "jsonpath={.spec.deploymentName},{.spec.deploymentname}")
}

const twoNames = "spec.deploymentname: Invalid value: "

var _ = DescribeTable("deploymentName of an Eru follows its deprecated alias, unless a client has set it", func(writes ...write) {
	namespace, before := newNamespace(), ""
	for i, w := range writes {
		output, err := w.command(namespace)
		if w.error != "" {
			Expect(err).To(MatchError(And(ContainSubstring(w.error), ContainSubstring("remove deploymentname"))), "write %d", i)
			continue
		}
		Expect(err).NotTo(HaveOccurred(), "write %d", i)
		Expect(storedNames(namespace)).To(Equal(w.names), "write %d", i)
		_, alias, _ := strings.Cut(w.names, ",")
		changed := w.names != before // Or the webhooks are not called.
		before = w.names
		if warning := "Warning: spec.deploymentname: deprecated; use spec.deploymentName instead"; alias != "" && changed {
			Expect(output).To(ContainSubstring(warning), "write %d", i)
		} else {
			Expect(output).NotTo(ContainSubstring(warning), "write %d", i)
		}
	}
},
	Entry("apply, client-side",
		write{applied(`,"deploymentname":"a"`), "a,a", ""},
		write{applied(`,"deploymentname":"b"`), "b,b", ""},
		write{applied(``), "web,", ""},
		write{applied(`,"deploymentname":"b","deploymentName":"b"`), "b,b", ""},
		write{applied(`,"deploymentname":"a","deploymentName":"b"`), "", twoNames},
		write{applied(`,"deploymentname":"a"`), "a,a", ""},
		write{applied(`,"deploymentname":"","enabled":true`), "web,", ""},
	),
	Entry("apply, server-side",
		write{appliedServerSide(`,"deploymentname":"a"`, "user"), "a,a", ""},
		write{appliedServerSide(`,"deploymentname":"b"`, "user"), "b,b", ""},
		write{appliedServerSide(``, "user"), "web,", ""},
		write{appliedServerSide(`,"deploymentname":"b","deploymentName":"b"`, "user"), "b,b", ""},
		write{appliedServerSide(`,"deploymentname":"a","deploymentName":"b"`, "user"), "", twoNames},
		write{appliedServerSide(`,"deploymentname":"a"`, "user"), "a,a", ""},
	),
	Entry("patches",
		write{applied(`,"deploymentname":"a"`), "a,a", ""},
		write{patched("merge", `{"spec":{"deploymentname":"b"}}`), "b,b", ""},
		write{patched("json", `[{"op":"replace","path":"/spec/deploymentname","value":"c"}]`), "c,c", ""},
		write{patched("merge", `{"spec":{"deploymentname":null}}`), "web,", ""},
		write{patched("merge", `{"spec":{"deploymentName":"d"}}`), "d,", ""},
		write{patched("merge", `{"spec":{"deploymentname":"e"}}`), "", twoNames},
		write{patched("merge", `{"spec":{"deploymentname":"d"}}`), "d,d", ""},
		write{patched("merge", `{"spec":{"deploymentName":null,"deploymentname":"e"}}`), "e,e", ""},
	),
)

var _ = DescribeTable("the Eru of the article stays as it is when it is applied again", func(flags ...string) {
	namespace := newNamespace()
	const article = `
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata:
  name: opsnatmonitor-v1
spec:
  deploymentname: opsnatmonitor-v1
  enabled: false
  schedule: "0 0 * * *"
`
	kubectl := func(args ...string) string {
		GinkgoHelper()
		return kubectlIn(namespace, article, append(args, flags...)...)
	}
	stored := func() string {
		GinkgoHelper()
		return kubectlIn(namespace, "", "get", "eru", "opsnatmonitor-v1", "--show-managed-fields", "-o", "yaml")
	}
	Expect(kubectl("apply", "--validate=strict", "-f", "-")).To(ContainSubstring("eru.mtsre.meitu.com/opsnatmonitor-v1"))
	before := stored()
	Expect(before).To(And(ContainSubstring("\n  deploymentName: opsnatmonitor-v1\n"), ContainSubstring("\n  deploymentname: opsnatmonitor-v1\n")))
	for range 10 {
		kubectl("apply", "-f", "-")
	}
	Expect(stored()).To(Equal(before))
	Expect(kubectl("diff", "-f", "-")).To(BeEmpty())
},
	Entry("client-side"),
	Entry("server-side", "--server-side"),
)
