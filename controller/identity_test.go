// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// deniedByPolicy is how the API server begins the message of a denial.
const deniedByPolicy = "ValidatingAdmissionPolicy 'modelbox-controller'"

// team is the namespace of a tenant: a ModelBox "box" with its children, a Genericdaemon
// "daemon" with its, and objects "web" of each kind that have nothing to do with them.
type team struct {
	namespace string
	box       *modelv1.ModelBox
	daemon    *mydomainv1beta1.Genericdaemon
}

func (t *team) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: t.namespace, Name: name}
}

// owned returns the metadata of an object with a controller reference to an owner.
func owned(namespace, name string, owner client.Object) metav1.ObjectMeta {
	gvk, err := env.Client.GroupVersionKindFor(owner)
	Expect(err).NotTo(HaveOccurred())
	return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}}
}

func newTeam(ctx context.Context) *team {
	GinkgoHelper()
	t := &team{namespace: newNamespace()}
	DeferCleanup(removeAll, t.namespace)
	t.box = &modelv1.ModelBox{ObjectMeta: t.named("box"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
	t.daemon = &mydomainv1beta1.Genericdaemon{ObjectMeta: t.named("daemon"), Spec: mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1"}}
	foreign := []client.Object{
		t.box, t.daemon, foreignDeployment(t.named("web")), foreignService(t.named("web")), foreignDaemonSet(t.named("web")),
		&corev1.Secret{ObjectMeta: t.named("web")}, &corev1.ServiceAccount{ObjectMeta: t.named("web")},
		&corev1.Pod{ObjectMeta: t.named("web"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}},
		&mtsrev1.Eru{ObjectMeta: t.named("web"), Spec: mtsrev1.EruSpec{DeploymentName: "web"}},
		&eventsv1.Event{
			ObjectMeta: t.named("web"), EventTime: metav1.NowMicro(), ReportingController: "kube-scheduler", ReportingInstance: "1",
			Action: "Scheduled", Reason: "Scheduled", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: t.namespace},
		},
	}
	for _, obj := range foreign {
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
	}
	for _, child := range []client.Object{
		&appsv1.Deployment{ObjectMeta: t.named("box")}, &corev1.Service{ObjectMeta: t.named("box")}, &appsv1.DaemonSet{ObjectMeta: t.named("daemon")},
	} {
		Eventually(env.Client.Get).WithArguments(ctx, client.ObjectKeyFromObject(child), child).Should(Succeed())
	}
	return t
}

// request is a request with the credentials of a user. It is a dry run where there is one.
type request func(context.Context, *rest.Config) error

func asUser(do func(context.Context, client.Client) error) request {
	return func(ctx context.Context, cfg *rest.Config) error {
		c, err := client.New(cfg, client.Options{Scheme: env.Client.Scheme()})
		if err != nil {
			return err
		}
		return do(ctx, c)
	}
}

func creates(obj client.Object) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll)
	})
}

// patches changes an object that exists. The controller's role has patch and not update.
func patches[T client.Object](obj T, how func(T)) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		before := obj.DeepCopyObject().(T)
		how(obj)
		return c.Patch(ctx, obj, client.MergeFrom(before), client.DryRunAll)
	})
}

func patchesSubresource(obj client.Object, subresource, body string) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		return c.SubResource(subresource).Patch(ctx, obj.DeepCopyObject().(client.Object), patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	})
}

func deletes(obj client.Object) request {
	return asUser(func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj, client.DryRunAll) })
}

func deletesAll(obj client.Object, namespace string) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		return c.DeleteAllOf(ctx, obj, client.InNamespace(namespace), client.DryRunAll)
	})
}

func withClientset(do func(context.Context, *kubernetes.Clientset) error) request {
	return func(ctx context.Context, cfg *rest.Config) error {
		clientset, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		return do(ctx, clientset)
	}
}

func privileged(set *appsv1.DaemonSet) *appsv1.DaemonSet {
	pod := &set.Spec.Template.Spec
	pod.HostPID, pod.Containers[0].SecurityContext = true, &corev1.SecurityContext{Privileged: new(true)}
	return set
}

// restarts sets the annotation that a restart sets, and changes something else with it.
func restarts(also func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{api.AnnotationRestartedAt: time.Now().Format(time.RFC3339)}
		also(d)
	}
}

func deploymentOf(obj metav1.ObjectMeta) *appsv1.Deployment {
	return foreignDeployment(obj).(*appsv1.Deployment)
}

func daemonSetOf(obj metav1.ObjectMeta) *appsv1.DaemonSet {
	return foreignDaemonSet(obj).(*appsv1.DaemonSet)
}

func serviceOf(obj metav1.ObjectMeta, how func(*corev1.ServiceSpec)) *corev1.Service {
	service := foreignService(obj).(*corev1.Service)
	how(&service.Spec)
	return service
}

func (t *team) lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("thief"), LeaseDurationSeconds: new(int32(3600))},
	}
}

func (t *team) eru(name, deployment, owner string) *mtsrev1.Eru {
	eru := &mtsrev1.Eru{ObjectMeta: t.named(name), Spec: mtsrev1.EruSpec{DeploymentName: deployment, Enabled: true, Schedule: "* * * * *"}}
	if owner != "" {
		eru.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner, UID: "1"}}
	}
	return eru
}

// creations are what one with the controller's token must not create.
func (t *team) creations() map[string]request {
	inSystem := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
	}
	clusterAdmin := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	none := func(*corev1.ServiceSpec) {}
	app := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "1"}}
	notController := owned(t.namespace, "app", app)
	notController.OwnerReferences[0].Controller = nil
	return map[string]request{
		"a privileged DaemonSet in kube-system":                               creates(privileged(daemonSetOf(inSystem("evil")))),
		"the same with a forged controller reference":                         creates(privileged(daemonSetOf(owned(metav1.NamespaceSystem, "daemon", t.daemon)))),
		"a Deployment without a controller":                                   creates(deploymentOf(t.named("evil"))),
		"a Deployment that names an owner which does not control it":          creates(deploymentOf(notController)),
		"a Deployment that another kind controls":                             creates(deploymentOf(owned(t.namespace, "evil", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "evil", UID: "1"}}))),
		"a Deployment that the wrong one of our kinds controls":               creates(deploymentOf(owned(t.namespace, "daemon", t.daemon))),
		"a DaemonSet that the wrong one of our kinds controls":                creates(daemonSetOf(owned(t.namespace, "box", t.box))),
		"a Deployment with another name than its owner":                       creates(deploymentOf(owned(t.namespace, "evil", t.box))),
		"a Deployment in the controller's namespace, with a forged reference": creates(deploymentOf(owned(controllerNamespace, "box", t.box))),
		"a Service without a controller":                                      creates(serviceOf(metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "evil"}, none)),
		"a Service with external addresses": creates(serviceOf(owned(t.namespace, "app", app), func(spec *corev1.ServiceSpec) {
			spec.ExternalIPs = []string{"192.0.2.1"}
		})),
		"a Service that is an alias": creates(serviceOf(owned(t.namespace, "app", app), func(spec *corev1.ServiceSpec) {
			spec.Type, spec.ExternalName = corev1.ServiceTypeExternalName, "evil.example.com"
		})),
		"a pod": creates(&corev1.Pod{ObjectMeta: t.named("evil"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x:1"}}}}),
		"a Job": creates(&batchv1.Job{ObjectMeta: t.named("evil"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "x:1"}}},
		}}}),
		"a Secret":                            creates(&corev1.Secret{ObjectMeta: t.named("evil")}),
		"a ConfigMap in its own namespace":    creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "evil"}}),
		"a Namespace":                         creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}),
		"a ModelBox":                          creates(&modelv1.ModelBox{ObjectMeta: t.named("evil"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}),
		"a UnitedDeployment":                  creates(united(t.named("web"), "evil", 0)),
		"an Eru that no Deployment owns":      creates(t.eru("evil", "evil", "")),
		"an Eru for another Deployment":       creates(t.eru("box", "web", "box")),
		"an Eru that another Deployment owns": creates(t.eru("box", "box", "web")),
		"a Lease of another component":        creates(t.lease(metav1.NamespaceSystem, "kube-scheduler-2")),
		"a Lease of that name, elsewhere":     creates(t.lease(t.namespace, leaseName.Name)),
		"another Lease in its own namespace":  creates(t.lease(controllerNamespace, "evil")),
		"an event of another component":       creates(t.event("kube-scheduler")),
		"a binding to cluster-admin":          creates(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, RoleRef: clusterAdmin}),
		"a RoleBinding":                       creates(&rbacv1.RoleBinding{ObjectMeta: t.named("evil"), RoleRef: clusterAdmin}),
		"a webhook that sees every Secret":    creates(webhookForSecrets()),
		"a certificate of an administrator":   creates(signingRequest()),
		"a token of another service account":  withClientset(t.requestToken),
		"a command in a pod":                  withClientset(t.exec),
		"an eviction":                         withClientset(t.evict),
		"a binding of a pod to a node":        withClientset(t.bind),
		"a volume of a node's files":          creates(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: hostPath()}),
	}
}

func (t *team) event(controller string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: t.named("evil"), EventTime: metav1.NowMicro(), ReportingController: controller, ReportingInstance: "1",
		Action: "Scheduled", Reason: "Scheduled", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: t.namespace},
	}
}

func hostPath() corev1.PersistentVolumeSpec {
	return corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
	}
}

func webhookForSecrets() client.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "evil"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "evil.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://evil.example.com")},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
		}},
	}
}

func signingRequest() client.Object {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	Expect(err).NotTo(HaveOccurred())
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "evil"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), SignerName: "example.com/evil", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

func (t *team) requestToken(ctx context.Context, c *kubernetes.Clientset) error {
	_, err := c.CoreV1().ServiceAccounts(t.namespace).CreateToken(ctx, "web", &authenticationv1.TokenRequest{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// exec has no dry run. There is no kubelet, so it fails in any case; what counts is how.
func (t *team) exec(ctx context.Context, c *kubernetes.Clientset) error {
	return ignoreUnlessForbidden(c.CoreV1().RESTClient().Post().Resource("pods").Namespace(t.namespace).Name("web").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "web", Command: []string{"sh"}, Stdout: true}, scheme.ParameterCodec).Do(ctx).Error())
}

func (t *team) evict(ctx context.Context, c *kubernetes.Clientset) error {
	return c.CoreV1().RESTClient().Post().Resource("pods").Namespace(t.namespace).Name("web").SubResource("eviction").
		VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, scheme.ParameterCodec).
		Body([]byte(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}`)).Do(ctx).Error()
}

func (t *team) bind(ctx context.Context, c *kubernetes.Clientset) error {
	binding := &corev1.Binding{ObjectMeta: t.named("web"), Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
	return c.CoreV1().Pods(t.namespace).Bind(ctx, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func ignoreUnlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// changes are what one with the controller's token must not change.
func (t *team) changes() map[string]request {
	web := func(how func(*appsv1.Deployment)) request {
		return patches(&appsv1.Deployment{ObjectMeta: t.named("web")}, how)
	}
	child := func(how func(*appsv1.Deployment)) request {
		return patches(&appsv1.Deployment{ObjectMeta: t.named("box")}, how)
	}
	service := func(name string, how func(*corev1.Service)) request {
		return patches(&corev1.Service{ObjectMeta: t.named(name)}, how)
	}
	image := func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" }
	system := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "dns"}
	own := metav1.ObjectMeta{Namespace: controllerNamespace, Name: "modelbox-webhook"}
	return map[string]request{
		"the image of a Deployment":              web(image),
		"the image, with a restart":              web(restarts(image)),
		"another pod annotation, with a restart": web(restarts(func(d *appsv1.Deployment) { d.Spec.Template.Annotations["evil"] = "" })),
		"a pod label, with a restart":            web(restarts(func(d *appsv1.Deployment) { d.Spec.Template.Labels["evil"] = "" })),
		"an annotation, with a restart":          web(restarts(func(d *appsv1.Deployment) { d.Annotations = map[string]string{"evil": ""} })),
		"the service account, with a restart":    web(restarts(func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "web" })),
		"another pod annotation":                 web(func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"evil": ""} }),
		"an annotation of a Deployment":          web(func(d *appsv1.Deployment) { d.Annotations = map[string]string{api.AnnotationRestartedAt: ""} }),
		"a label of a Deployment":                web(func(d *appsv1.Deployment) { d.Labels = map[string]string{api.LabelManagedBy: api.ManagedBy} }),
		"a finalizer of a Deployment":            web(func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/evil"} }),
		"the controller of a Deployment":         web(func(d *appsv1.Deployment) { d.OwnerReferences = owned("", "", t.box).OwnerReferences }),
		"the replica count, not through /scale":  web(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }),
		"whether a Deployment is paused":         web(func(d *appsv1.Deployment) { d.Spec.Paused = true }),
		"the owner of a child":                   child(func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "1" }),
		"a child, so that it is none":            child(func(d *appsv1.Deployment) { d.OwnerReferences = nil }),
		"a finalizer of a child":                 child(func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/evil"} }),
		"the type of a Service":                  service("web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }),
		"the selector of a Service":              service("web", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "evil"} }),
		"the controller of a Service":            service("web", func(s *corev1.Service) { s.OwnerReferences = owned("", "", t.box).OwnerReferences }),
		"external addresses of a child":          service("box", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1"} }),
		"the Service of the API server": patches(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}},
			func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "evil"} }),
		"a DaemonSet, as a restart": patches(&appsv1.DaemonSet{ObjectMeta: t.named("web")}, func(d *appsv1.DaemonSet) {
			d.Spec.Template.Annotations = map[string]string{api.AnnotationRestartedAt: ""}
		}),
		"the image of a DaemonSet":    patches(&appsv1.DaemonSet{ObjectMeta: t.named("web")}, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" }),
		"a Secret":                    patches(&corev1.Secret{ObjectMeta: t.named("web")}, func(s *corev1.Secret) { s.Data = map[string][]byte{"evil": nil} }),
		"the image of a pod":          patches(&corev1.Pod{ObjectMeta: t.named("web")}, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" }),
		"the spec of a ModelBox":      patches(&modelv1.ModelBox{ObjectMeta: t.named("box")}, func(b *modelv1.ModelBox) { b.Spec.Image = "evil:1" }),
		"an annotation of a ModelBox": patches(&modelv1.ModelBox{ObjectMeta: t.named("box")}, func(b *modelv1.ModelBox) { b.Annotations = map[string]string{"evil": ""} }),
		"the spec of an Eru":          patches(&mtsrev1.Eru{ObjectMeta: t.named("web")}, func(e *mtsrev1.Eru) { e.Spec.Enabled = true }),
		"the label of a namespace": patches(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
			func(n *corev1.Namespace) { n.Labels["modelbox-operator/workloads"] = "allowed" }),
		"its own role": patches(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}, func(r *rbacv1.ClusterRole) { r.Labels["evil"] = "" }),
		"an event of another component": patches(&eventsv1.Event{ObjectMeta: t.named("web")}, func(e *eventsv1.Event) {
			e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
		}),
		"the status of a Deployment":       patchesSubresource(deploymentOf(t.named("web")), "status", `{"status":{"readyReplicas":0,"observedGeneration":9}}`),
		"the replica count of a ModelBox":  patchesSubresource(&modelv1.ModelBox{ObjectMeta: t.named("box")}, "scale", `{"spec":{"replicas":0}}`),
		"the replica count of cluster DNS": patchesSubresource(deploymentOf(system), "scale", `{"spec":{"replicas":0}}`),
		"a restart of cluster DNS":         patches(&appsv1.Deployment{ObjectMeta: system}, restarts(func(*appsv1.Deployment) {})),
		"the replica count of the webhook": patchesSubresource(deploymentOf(own), "scale", `{"spec":{"replicas":0}}`),
		"a restart of the webhook":         patches(&appsv1.Deployment{ObjectMeta: own}, restarts(func(*appsv1.Deployment) {})),
		"the Lease of another component": patches(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}},
			func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("thief") }),
		"the permissions of the controller's own role": patches(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}, func(r *rbacv1.ClusterRole) { r.AggregationRule = nil }),
	}
}

// deletions are what one with the controller's token must not delete.
func (t *team) deletions() map[string]request {
	return map[string]request{
		"a Deployment":          deletes(&appsv1.Deployment{ObjectMeta: t.named("web")}),
		"a child's Deployment":  deletes(&appsv1.Deployment{ObjectMeta: t.named("box")}),
		"a DaemonSet":           deletes(&appsv1.DaemonSet{ObjectMeta: t.named("daemon")}),
		"a Service":             deletes(&corev1.Service{ObjectMeta: t.named("web")}),
		"all Services":          deletesAll(&corev1.Service{}, t.namespace),
		"a ModelBox":            deletes(&modelv1.ModelBox{ObjectMeta: t.named("box")}),
		"an Eru":                deletes(&mtsrev1.Eru{ObjectMeta: t.named("web")}),
		"a Secret":              deletes(&corev1.Secret{ObjectMeta: t.named("web")}),
		"a pod":                 deletes(&corev1.Pod{ObjectMeta: t.named("web")}),
		"a namespace":           deletes(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}),
		"a Lease":               deletes(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}}),
		"an event":              deletes(&eventsv1.Event{ObjectMeta: t.named("web")}),
		"a role":                deletes(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}),
		"a service account":     deletes(&corev1.ServiceAccount{ObjectMeta: t.named("web")}),
		"the controller's pods": deletesAll(&corev1.Pod{}, t.namespace),
	}
}

// unseen is what the policy cannot tell from the controller's own writes. docs/security.md
// lists it, with what bounds it.
func (t *team) unseen() map[string]request {
	forged := owned(t.namespace, "other", t.box)
	forged.OwnerReferences[0].Name = "other"
	return map[string]request{
		"a privileged DaemonSet in a tenant's namespace, with a forged controller reference": creates(privileged(daemonSetOf(owned(t.namespace, "none", &mydomainv1beta1.Genericdaemon{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "none", UID: "1"},
		})))),
		"a Deployment with the uid of another owner": creates(deploymentOf(forged)),
		"a new image of a child":                     patches(&appsv1.Deployment{ObjectMeta: t.named("box")}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" }),
		"a child's Service":                          deletes(&corev1.Service{ObjectMeta: t.named("box")}),
		"the type of a child's Service":              patches(&corev1.Service{ObjectMeta: t.named("box")}, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }),
		"the replica count of any Deployment":        patchesSubresource(deploymentOf(t.named("web")), "scale", `{"spec":{"replicas":0}}`),
		"a restart of any Deployment":                patches(&appsv1.Deployment{ObjectMeta: t.named("web")}, restarts(func(*appsv1.Deployment) {})),
		"an Eru, enabled, for any Deployment":        creates(t.eru("other", "other", "other")),
		"the status of an object":                    patchesSubresource(&modelv1.ModelBox{ObjectMeta: t.named("box")}, "status", `{"status":{"readyReplicas":7}}`),
		"the status of a UnitedDeployment":           patchesSubresource(&extensionv1.UnitedDeployment{ObjectMeta: t.named("holder")}, "status", `{"status":{"readyReplicas":7}}`),
		"an event of its own":                        creates(t.event("modelbox-controller")),
	}
}

var _ = Describe("a stolen token of the controller", Ordered, ContinueOnFailure, func() {
	var (
		t *team
		// stolen has the permissions that are shipped; unbound by RBAC, only the policy denies.
		stolen, unbound *rest.Config
	)
	BeforeAll(func(ctx SpecContext) {
		t = newTeam(ctx)
		for _, obj := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}},
			deploymentOf(metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "dns"}),
			t.lease(metav1.NamespaceSystem, "kube-scheduler"), united(t.named("web"), "holder", 1),
		} {
			Expect(client.IgnoreAlreadyExists(env.Client.Create(ctx, obj))).To(Succeed())
		}
		own := deploymentOf(metav1.ObjectMeta{Namespace: controllerNamespace, Name: "modelbox-webhook"})
		Expect(env.Client.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Client.Delete(ctx, own))).To(Succeed()) })

		shipped, err := testenv.Permissions("config/controller/generated/role.yaml", testenv.Every)
		Expect(err).NotTo(HaveOccurred())
		revoke, err := env.Grant(ctx, controllers+"stolen", shipped)
		DeferCleanup(func() { Expect(revoke()).To(Succeed()) })
		Expect(err).NotTo(HaveOccurred())
		stolen, err = env.User(controllers + "stolen")
		Expect(err).NotTo(HaveOccurred())
		unbound, err = env.As(controllers + "unbound")
		Expect(err).NotTo(HaveOccurred())
	})

	// allowed returns the requests that are not denied as they have to be.
	allowed := func(ctx context.Context, requests map[string]request) map[string]string {
		wrong := map[string]string{}
		for name, r := range requests {
			if err := r(ctx, env.Config); err != nil {
				wrong[name] = "an administrator must be able to do it, or it shows nothing: " + err.Error()
			}
			if err := r(ctx, stolen); !apierrors.IsForbidden(err) {
				wrong[name+", with the shipped permissions"] = fmt.Sprint(err)
			}
			if err := r(ctx, unbound); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), deniedByPolicy) ||
				!strings.Contains(err.Error(), "the controller of modelbox-operator") {
				wrong[name+", with all permissions"] = fmt.Sprint(err)
			}
		}
		return wrong
	}

	It("creates nothing but what the controller creates", func(ctx SpecContext) {
		Expect(allowed(ctx, t.creations())).To(BeEmpty())
	})

	It("changes nothing but what the controller changes", func(ctx SpecContext) {
		Expect(allowed(ctx, t.changes())).To(BeEmpty())
	})

	It("deletes nothing but a child's Service", func(ctx SpecContext) {
		Expect(allowed(ctx, t.deletions())).To(BeEmpty())
	})

	It("does what the policy cannot tell from the controller's own writes", func(ctx SpecContext) {
		for name, r := range t.unseen() {
			Expect(r(ctx, stolen)).To(Succeed(), name)
		}
	})

	It("gets no workloads in a namespace that is closed to them, and the status says how to open it", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-spec-"}}
		Expect(env.Client.Create(ctx, namespace)).To(Succeed())
		DeferCleanup(removeAll, namespace.Name)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady).Message).To(
			ContainSubstring("set the label modelbox-operator/workloads=allowed on the namespace"))

		label := func(value string) {
			change(ctx, namespace, func(n *corev1.Namespace) { n.Labels["modelbox-operator/workloads"] = value })
		}
		label("allowed")
		// The admission plugin has an informer of its own, which may see the label later.
		Eventually(func(g Gomega) {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image += "1" })
			g.Eventually(readiness(ctx, box)).WithTimeout(time.Second).Should(Equal("False Progressing"))
		}).Should(Succeed())

		label("denied")
		Eventually(func(g Gomega) {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image += "1" })
			g.Eventually(readiness(ctx, box)).WithTimeout(time.Second).Should(Equal("False ChildRefused"))
		}).Should(Succeed())
	})

	It("gets no workloads in the controller's own namespace", func(ctx SpecContext) {
		DeferCleanup(removeAll, controllerNamespace)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady).Message).To(ContainSubstring("its own: use another namespace"))
	})

	It("changes a Deployment through /scale only in its replica count", func(ctx SpecContext) {
		free := deploymentOf(t.named("free")) // No UnitedDeployment keeps its replicas.
		Expect(env.Client.Create(ctx, free)).To(Succeed())
		c, err := client.New(stolen, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		body := `{"metadata":{"labels":{"evil":""},"annotations":{"evil":""},"finalizers":["example.com/evil"]},"spec":{"replicas":3,"paused":true}}`
		Expect(c.SubResource("scale").Patch(ctx, &appsv1.Deployment{ObjectMeta: t.named("free")}, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
		after := get(ctx, &appsv1.Deployment{ObjectMeta: t.named("free")})
		free.Spec.Replicas = new(int32(3))
		Expect(after.Spec).To(Equal(free.Spec))
		Expect([]any{after.Labels, after.Annotations, after.Finalizers}).To(Equal([]any{free.Labels, free.Annotations, free.Finalizers}))
	})
})
