// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// certificate has the fields of a cert-manager.io/v1 Certificate that the manifests use.
type certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IsCA            bool     `json:"isCA"`
		CommonName      string   `json:"commonName"`
		SecretName      string   `json:"secretName"`
		DNSNames        []string `json:"dnsNames"`
		NameConstraints struct {
			Critical  bool `json:"critical"`
			Permitted struct {
				DNSDomains []string `json:"dnsDomains"`
			} `json:"permitted"`
			Excluded struct {
				IPRanges []string `json:"ipRanges"`
			} `json:"excluded"`
		} `json:"nameConstraints"`
		Duration    metav1.Duration `json:"duration"`
		RenewBefore metav1.Duration `json:"renewBefore"`
		Usages      []string        `json:"usages"`
		PrivateKey  struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		IssuerRef struct {
			Name  string `json:"name"`
			Kind  string `json:"kind"`
			Group string `json:"group"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

// issuer has the fields of a cert-manager.io/v1 Issuer that the manifests use.
type issuer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned *struct{} `json:"selfSigned"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca"`
	} `json:"spec"`
}

// hook has the fields that mutating and validating webhooks have in common.
type hook struct {
	configuration *metav1.ObjectMeta
	name          string
	client        admissionregistrationv1.WebhookClientConfig
	failurePolicy *admissionregistrationv1.FailurePolicyType
	sideEffects   *admissionregistrationv1.SideEffectClass
	conditions    []admissionregistrationv1.MatchCondition
	versions      []string
	rules         []admissionregistrationv1.RuleWithOperations
	timeout       *int32
	namespaces    *metav1.LabelSelector
}

// hooks returns all webhooks by type, mutating or validating.
func hooks(objects []object) map[string][]hook {
	out := map[string][]hook{}
	for _, c := range each[*admissionregistrationv1.MutatingWebhookConfiguration](objects) {
		for _, w := range c.Webhooks {
			out["mutating"] = append(out["mutating"], hook{
				&c.ObjectMeta, w.Name, w.ClientConfig, w.FailurePolicy, w.SideEffects, w.MatchConditions, w.AdmissionReviewVersions, w.Rules, w.TimeoutSeconds, w.NamespaceSelector,
			})
		}
	}
	for _, c := range each[*admissionregistrationv1.ValidatingWebhookConfiguration](objects) {
		for _, w := range c.Webhooks {
			out["validating"] = append(out["validating"], hook{
				&c.ObjectMeta, w.Name, w.ClientConfig, w.FailurePolicy, w.SideEffects, w.MatchConditions, w.AdmissionReviewVersions, w.Rules, w.TimeoutSeconds, w.NamespaceSelector,
			})
		}
	}
	return out
}

// eachHook runs a test for each webhook.
func eachHook(t *testing.T, objects []object, test func(*testing.T, hook)) {
	t.Helper()
	for _, all := range hooks(objects) {
		for _, h := range all {
			t.Run(h.name, func(t *testing.T) { test(t, h) })
		}
	}
}

func TestWebhookSettings(t *testing.T) {
	eachHook(t, install(t), func(t *testing.T, h hook) {
		if h.failurePolicy == nil || *h.failurePolicy != admissionregistrationv1.Fail {
			t.Error("failurePolicy is not Fail")
		}
		if h.sideEffects == nil || *h.sideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Error("sideEffects is not None")
		}
		if len(h.conditions) == 0 {
			t.Error("there are no matchConditions: it is called for changes of status and metadata too")
		}
		if h.timeout == nil || *h.timeout != 5 {
			t.Errorf("timeoutSeconds is %d, want 5", ptr.Deref(h.timeout, 10))
		}
		if !slices.Equal(h.versions, []string{"v1"}) {
			t.Errorf("admissionReviewVersions are %v, want v1", h.versions)
		}
	})
}

func TestWebhooksHaveRulesForEveryKind(t *testing.T) {
	objects := install(t)
	want := map[string]bool{}
	for _, gvk := range kindsOf(t) {
		want[gvk.Group+"/"+gvk.Version+"/"+crdOf(t, objects, gvk).Spec.Names.Plural] = true
	}
	for kind, all := range hooks(objects) {
		got := map[string]bool{}
		for _, h := range all {
			for _, rule := range h.rules {
				for _, group := range rule.APIGroups {
					for _, version := range rule.APIVersions {
						for _, resource := range rule.Resources {
							got[group+"/"+version+"/"+resource] = true
						}
					}
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("the %s webhooks have rules for %v, want %v", kind, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	if n := len(hooks(objects)); n != 2 {
		t.Errorf("there are webhooks of %d types, want mutating and validating ones", n)
	}
}

func TestWebhooksCallTheService(t *testing.T) {
	objects := install(t)
	service := find[*corev1.Service](t, objects, webhookName)
	d := serviceOf(t, objects, service)
	if d.Name != webhookName {
		t.Errorf("Service %s selects the pods of %s", service.Name, d.Name)
	}
	eachHook(t, objects, func(t *testing.T, h hook) {
		to := h.client.Service
		if to == nil || h.client.URL != nil {
			t.Fatal("it does not call a Service")
		}
		if to.Name != service.Name || to.Namespace != service.Namespace {
			t.Errorf("it calls Service %s/%s, want %s/%s", to.Namespace, to.Name, service.Namespace, service.Name)
		}
		port := int32(443)
		if to.Port != nil {
			port = *to.Port
		}
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port && p.TargetPort.StrVal == "webhook" }) {
			t.Errorf("it calls port %d, whose targetPort is not the webhook's port", port)
		}
		if len(h.client.CABundle) > 0 {
			t.Error("the manifest has a caBundle")
		}
	})
}

// TLS needs matching names in the webhook configuration, the Certificate, and the Secret
// that is mounted.
func TestWebhooksTrustTheServedCertificate(t *testing.T) {
	objects := install(t)
	service := find[*corev1.Service](t, objects, webhookName)
	eachHook(t, objects, func(t *testing.T, h hook) {
		namespace, name, _ := strings.Cut(h.configuration.Annotations["cert-manager.io/inject-ca-from"], "/")
		leaf := find[*certificate](t, objects, name)
		if namespace != leaf.Namespace {
			t.Errorf("the CA bundle is injected from namespace %q, but the Certificate is in %q", namespace, leaf.Namespace)
		}
		if want := service.Name + "." + service.Namespace + ".svc"; !slices.Contains(leaf.Spec.DNSNames, want) {
			t.Errorf("the Certificate has the DNS names %v, want %s among them", leaf.Spec.DNSNames, want)
		}
		if !slices.Contains(slices.Collect(maps.Values(mountedSecrets(t, serviceOf(t, objects, service)))), leaf.Spec.SecretName) {
			t.Errorf("the Certificate is written to Secret %q, which the webhook does not mount", leaf.Spec.SecretName)
		}
	})
}

func TestCertificates(t *testing.T) {
	objects := install(t)
	leaf, root := find[*certificate](t, objects, webhookName), find[*certificate](t, objects, "modelbox-root")
	signed := find[*issuer](t, objects, leaf.Spec.IssuerRef.Name)
	if signed.Spec.CA == nil || signed.Spec.CA.SecretName != root.Spec.SecretName {
		t.Errorf("the leaf's issuer %q does not use the root's Secret %q", signed.Name, root.Spec.SecretName)
	}
	if from := find[*issuer](t, objects, root.Spec.IssuerRef.Name); from.Spec.SelfSigned == nil {
		t.Errorf("the root's issuer %q is not self-signed", from.Name)
	}
	for _, c := range []*certificate{leaf, root} {
		if key := c.Spec.PrivateKey; key.Algorithm != "ECDSA" || key.Size != 256 {
			t.Errorf("Certificate %s has a key of %s %d, want ECDSA 256", c.Name, key.Algorithm, key.Size)
		}
		if c.Spec.RenewBefore.Duration <= 0 || c.Spec.RenewBefore.Duration >= c.Spec.Duration.Duration {
			t.Errorf("Certificate %s is renewed %s before its end, its duration is %s", c.Name, c.Spec.RenewBefore.Duration, c.Spec.Duration.Duration)
		}
		if ref := c.Spec.IssuerRef; ref.Kind != "Issuer" || ref.Group != "cert-manager.io" {
			t.Errorf("Certificate %s is issued by a %s of %s, want an Issuer of cert-manager.io", c.Name, ref.Kind, ref.Group)
		}
	}
	if got := leaf.Spec.PrivateKey.RotationPolicy; got != "Always" {
		t.Errorf("the leaf's rotationPolicy is %q, want Always", got)
	}
	if got := root.Spec.PrivateKey.RotationPolicy; got != "Never" {
		t.Errorf("the root's rotationPolicy is %q, want Never: with a new key, certificates of the old key would not be trusted any more", got)
	}
	if leaf.Spec.IsCA || !root.Spec.IsCA {
		t.Error("only the root must be a CA")
	}
	if !slices.Contains(leaf.Spec.Usages, "server auth") {
		t.Errorf("the leaf's usages are %v, want server auth", leaf.Spec.Usages)
	}
	// A leaf must not be valid longer than the root that signed it.
	if leaf.Spec.Duration.Duration >= root.Spec.RenewBefore.Duration {
		t.Errorf("a leaf is valid for %s, but the root is renewed only %s before its end", leaf.Spec.Duration.Duration, root.Spec.RenewBefore.Duration)
	}
}
