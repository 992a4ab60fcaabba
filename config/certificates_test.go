// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// authority is a certificate authority as cert-manager issues it from a Certificate.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority returns the authority of a Certificate, with the key of an earlier one if
// that is not nil.
func newAuthority(t *testing.T, c *certificate, key *ecdsa.PrivateKey) authority {
	t.Helper()
	if key == nil {
		key = newKey(t)
	}
	limits := c.Spec.NameConstraints
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: c.Spec.CommonName}, IsCA: c.Spec.IsCA, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, NotAfter: time.Now().Add(c.Spec.Duration.Duration),
		PermittedDNSDomainsCritical: limits.Critical, PermittedDNSDomains: limits.Permitted.DNSDomains,
	}
	for _, ips := range limits.Excluded.IPRanges {
		_, network, err := net.ParseCIDR(ips)
		if err != nil {
			t.Fatal(err)
		}
		template.ExcludedIPRanges = append(template.ExcludedIPRanges, network)
	}
	return authority{key, sign(t, template, template, &key.PublicKey, key)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, of *ecdsa.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// leaf returns a serving certificate that the authority signs.
func (a authority) leaf(t *testing.T, names []string, ips ...net.IP) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: ips,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return sign(t, template, a.cert, &newKey(t).PublicKey, a.key)
}

// accepts returns an error if a client that trusts the authority, as the API server does,
// refuses a server that has this certificate and this name or address.
func (a authority) accepts(leaf *x509.Certificate, host string) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

// The root signs certificates of our Services only, so its key is of no use for other
// names.
func TestTheRootIsConstrained(t *testing.T) {
	objects := install(t)
	root := find[*certificate](t, objects, "modelbox-root")
	ca := newAuthority(t, root, nil)
	for _, c := range each[*certificate](slices.Concat(objects, with(t, controllerTLS))) {
		if c.Spec.IssuerRef.Name != "modelbox-ca" {
			continue
		}
		leaf := ca.leaf(t, c.Spec.DNSNames)
		for _, name := range c.Spec.DNSNames {
			if err := ca.accepts(leaf, name); err != nil {
				t.Errorf("Certificate %s is not accepted as %s; add the name to nameConstraints in certs/root.yaml: %v", c.Name, name, err)
			}
		}
	}
	for _, name := range []string{
		"kubernetes.default.svc", "kubernetes", "api.example.com", "svc", "xmodelbox-system.svc", "modelbox-webhook.xmodelbox-system.svc",
		"modelbox-webhook.other.svc", "modelbox-webhook.modelbox-system.svc.example.com", "cert-manager-webhook.cert-manager.svc",
	} {
		if ca.accepts(ca.leaf(t, []string{name}), name) == nil {
			t.Errorf("a certificate of %s that the root has signed is accepted", name)
		}
	}
	for _, ip := range []string{"10.96.0.1", "127.0.0.1", "::1", "2001:db8::1"} {
		if ca.accepts(ca.leaf(t, root.Spec.NameConstraints.Permitted.DNSDomains, net.ParseIP(ip)), ip) == nil {
			t.Errorf("a certificate of %s that the root has signed is accepted", ip)
		}
	}
}

const (
	selfManagedCerts = "components: [CONFIG/certs-self-managed]\n"
	certificateRole  = "modelbox-controller-certificate"
)

func selfManaged(t *testing.T) []object {
	t.Helper()
	return kustomization(t, "resources: [CONFIG]\n"+selfManagedCerts)
}

// Nothing needs cert-manager, and the controller keeps the Secret that the webhook mounts.
func TestWithoutCertManager(t *testing.T) {
	objects := selfManaged(t)
	for _, o := range objects {
		if strings.Contains(string(o.json), "cert-manager.io") && o.gvk.Kind != "ClusterRole" {
			t.Errorf("%s has something of cert-manager", o)
		}
	}
	secret := setFlags(t, find[*appsv1.Deployment](t, objects, controllerName))["webhook-certificate-secret"]
	shipped := find[*corev1.Secret](t, objects, secret)
	if len(shipped.Data)+len(shipped.StringData) > 0 || shipped.Type != "" {
		t.Errorf("the Secret has %d entries and the type %q: an apply would replace what the controller wrote", len(shipped.Data)+len(shipped.StringData), shipped.Type)
	}
	for path, mounted := range mountedSecrets(t, find[*appsv1.Deployment](t, objects, webhookName)) {
		if mounted != secret {
			t.Errorf("the webhook mounts %s at %s, and the controller writes %s", mounted, path, secret)
		}
	}
	policy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, controllerName)
	if v := policy.Spec.Variables[0]; v.Name != "keepsCertificate" || v.Expression != "true" {
		t.Errorf("the policy has %+v", v)
	}
}

// The component is the one exception to the rule that no role names Secrets, for one by name.
func TestRightsWithoutCertManager(t *testing.T) {
	objects := selfManaged(t)
	got, before := rulesOf(objects), rulesOf(install(t))
	want := map[string][]rbacv1.PolicyRule{
		"Role " + certificateRole: {{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"modelbox-webhook-tls"},
			Verbs: []string{"get", "list", "patch", "watch"}}},
		"ClusterRole " + certificateRole: {{APIGroups: []string{"admissionregistration.k8s.io"}, ResourceNames: []string{webhookName},
			Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, Verbs: []string{"list", "patch", "watch"}}},
	}
	for role := range before {
		delete(got, role)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rules that the component adds (-want +got):\n%s", diff)
	}
	for _, b := range each[*rbacv1.ClusterRoleBinding](objects) {
		if !slices.Equal(b.Subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: controllerName, Namespace: system}}) {
			t.Errorf("%s binds %v", b.Name, b.Subjects)
		}
	}
	for _, b := range each[*rbacv1.RoleBinding](objects) {
		if !slices.Equal(b.Subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: controllerName, Namespace: system}}) {
			t.Errorf("%s binds %v", b.Name, b.Subjects)
		}
	}
	if v := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, install(t), controllerName).Spec.Variables[0]; v.Expression != "false" {
		t.Errorf("the policy of the whole install has %+v", v)
	}
}

func TestAnotherNamespaceWithoutCertManager(t *testing.T) {
	objects := kustomization(t, "namespace: team\nresources: [CONFIG]\n"+selfManagedCerts+"transformers: [CONFIG/fetch-image, CONFIG/namespaced]\n")
	checkNamespace(t, objects, "team")
	checkIdentity(t, objects, controllerName)
}

// Webhook configurations are in no namespace, so the one ClusterRole that is left names those of
// this install.
func TestNamespacesWithoutCertManager(t *testing.T) {
	text, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", "ops", "", "", "self-managed")
	if failed != "" {
		t.Fatal(failed)
	}
	objects := limitedTo(t, text, "a")
	name := certificateRole + "-ops"
	if roles := each[*rbacv1.ClusterRole](objects); len(roles) != 1 || roles[0].Name != name || !slices.Equal(roles[0].Rules[0].ResourceNames, []string{webhookName + "-ops"}) {
		t.Errorf("the ClusterRoles are %+v", roles)
	}
	if bindings := each[*rbacv1.ClusterRoleBinding](objects); len(bindings) != 1 || bindings[0].RoleRef.Name != name || bindings[0].Subjects[0].Namespace != "ops" {
		t.Errorf("the ClusterRoleBindings are %+v", bindings)
	}
	find[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects, webhookName+"-ops")
}

func TestCertsOfMake(t *testing.T) {
	if _, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", "ops", "", "", "none"); !strings.Contains(failed, "CERTS is none") {
		t.Errorf("%q, want an error that names the variable", failed)
	}
}
