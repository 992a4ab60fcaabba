// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options say which certificate is kept, and where.
type Options struct {
	// Namespace is that of the operator, with the Secret and the webhook's Service.
	Namespace string
	// Secret is the name of the Secret, which must exist.
	Secret string
	// Service is the name of the webhook's Service.
	Service string
	// Configuration is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration. One that does not exist is left out.
	Configuration string
	// Validity is how long a certificate is valid. It is renewed after two thirds of that.
	Validity time.Duration

	// Settle is how long both configurations have a new bundle before the pods get a certificate
	// that needs it; zero is a minute. Mounted is how long a Secret is as it is before no pod
	// serves an earlier one; zero is ten minutes. Tests shorten them.
	Settle, Mounted time.Duration
}

// Validate returns an error if no certificate of these options could be kept.
func (o *Options) Validate() error {
	if o.Validity < MinValidity {
		return fmt.Errorf("the validity is %s: it must be at least %s, because a renewal takes minutes", o.Validity, MinValidity)
	}
	return nil
}

// MinValidity is the shortest validity: twenty minutes remain after two thirds of it, and the steps of a
// renewal take eleven.
const MinValidity = time.Hour

// rules returns what decisions depend on.
func (o *Options) rules() rules {
	service := o.Service + "." + o.Namespace + ".svc"
	return rules{names: []string{service, service + ".cluster.local"}, validity: o.Validity, settle: o.Settle, mounted: o.Mounted}
}

// rotator brings the Secret and the webhook configurations to the desired state, by one step in
// each reconcile.
type rotator struct {
	Options
	rules rules
	// cached reads the one Secret and the configurations from informers, and live reads and
	// writes on the API server.
	cached   client.Reader
	live     client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock

	// state is the last one that was observed, and since when it was.
	state string
	since time.Time
}

// seen is what was read of the API server.
type seen struct {
	secret         *corev1.Secret
	configurations []configuration
}

// Reconcile makes the next step, or waits until one is due. Its own writes, and those of others,
// cause the next reconcile.
func (r *rotator) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	s, err := r.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	o := s.observed()
	now := r.clock.Now()
	d := r.rules.decide(o, r.lasted(s.state(o)), now)
	if d.step == rest {
		return reconcile.Result{RequeueAfter: min(max(d.after, time.Second), maxSleep)}, nil
	}
	if err := r.act(ctx, s, o, d, now); err != nil {
		r.report(s.secret, err)
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("Certificate of the webhook", "step", d.step.String(), "reason", d.reason)
	return reconcile.Result{}, nil
}

// maxSleep bounds the time until the next decision, so that a clock that was wrong delays no
// renewal for long. Such a reconcile sends no request.
const maxSleep = 12 * time.Hour

// lasted returns for how long this process has observed a state.
func (r *rotator) lasted(state string) time.Duration {
	if r.since.IsZero() || state != r.state {
		r.state, r.since = state, r.clock.Now()
	}
	return r.clock.Since(r.since)
}

func (r *rotator) read(ctx context.Context) (*seen, error) {
	s := &seen{secret: &corev1.Secret{}}
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Secret}, s.secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s/%s does not exist, and the controller may not create it: apply the manifests of the install again", r.Namespace, r.Secret)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Secret of the webhook's certificate: %w", err)
	}
	for _, c := range newConfigurations() {
		err := r.cached.Get(ctx, client.ObjectKey{Name: r.Configuration}, c.object())
		if err == nil {
			s.configurations = append(s.configurations, c)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading a webhook configuration: %w", err)
		}
	}
	return s, nil
}

func (s *seen) observed() *observed {
	var bundles [][]byte
	for _, c := range s.configurations {
		for _, config := range c.clientConfigs() {
			bundles = append(bundles, config.CABundle)
		}
	}
	return observe(s.secret, bundles)
}

// state identifies what was observed, and the generations of the configurations: a bundle that
// was replaced and restored between two events is another state.
func (s *seen) state(o *observed) string {
	parts := []string{o.state()}
	for _, c := range s.configurations {
		parts = append(parts, fmt.Sprintf("%s/%d", c.object().GetUID(), c.object().GetGeneration()))
	}
	return strings.Join(parts, " ")
}

// act makes a step. Each write has the precondition that its object is as it was read.
func (r *rotator) act(ctx context.Context, s *seen, o *observed, d decision, now time.Time) error {
	if d.step == trust {
		return r.trust(ctx, s)
	}
	data, err := r.rules.write(d.step, o, now)
	if err != nil {
		return err
	}
	patch, err := secretPatch(s.secret, data, d.step == serve || d.step == issue)
	if err != nil {
		return err
	}
	if err := r.live.Patch(ctx, s.secret.DeepCopy(), patch); err != nil {
		return fmt.Errorf("writing the Secret of the webhook's certificate: %w", err)
	}
	return nil
}

// trust writes the bundle of the Secret into the configurations. A former leader whose cache is
// behind must not restore an earlier bundle, so the Secret is read once more.
func (r *rotator) trust(ctx context.Context, s *seen) error {
	var stored corev1.Secret
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s.secret), &stored); err != nil {
		return fmt.Errorf("reading the Secret of the webhook's certificate: %w", err)
	}
	if stored.ResourceVersion != s.secret.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("secrets"), stored.Name, errors.New("the cache is behind"))
	}
	for _, c := range s.configurations {
		if err := r.writeBundle(ctx, c, stored.Data[keyCA]); err != nil {
			return err
		}
	}
	return nil
}

func (r *rotator) writeBundle(ctx context.Context, c configuration, bundle []byte) error {
	patch, err := bundlePatch(c, bundle)
	if err != nil || patch == nil {
		return err
	}
	if err := r.live.Patch(ctx, c.object().DeepCopyObject().(client.Object), patch, fieldOwner); err != nil {
		return fmt.Errorf("writing caBundle of a webhook configuration: %w", err)
	}
	return nil
}

// report emits an event about what stops a renewal. A conflict is resolved by the next attempt.
func (r *rotator) report(secret *corev1.Secret, err error) {
	if !apierrors.IsConflict(err) {
		r.recorder.Eventf(secret, nil, corev1.EventTypeWarning, "CertificateNotRenewed", "Renew", "%s", err.Error())
	}
}

// configuration is a webhook configuration of one of the two kinds.
type configuration interface {
	object() client.Object
	// clientConfigs returns those of its webhooks, in their order.
	clientConfigs() []admissionregistrationv1.WebhookClientConfig
}

type (
	mutating   admissionregistrationv1.MutatingWebhookConfiguration
	validating admissionregistrationv1.ValidatingWebhookConfiguration
)

func newConfigurations() []configuration { return []configuration{&mutating{}, &validating{}} }

func (c *mutating) object() client.Object {
	return (*admissionregistrationv1.MutatingWebhookConfiguration)(c)
}

func (c *validating) object() client.Object {
	return (*admissionregistrationv1.ValidatingWebhookConfiguration)(c)
}

func (c *mutating) clientConfigs() (configs []admissionregistrationv1.WebhookClientConfig) {
	for i := range c.Webhooks {
		configs = append(configs, c.Webhooks[i].ClientConfig)
	}
	return configs
}

func (c *validating) clientConfigs() (configs []admissionregistrationv1.WebhookClientConfig) {
	for i := range c.Webhooks {
		configs = append(configs, c.Webhooks[i].ClientConfig)
	}
	return configs
}
