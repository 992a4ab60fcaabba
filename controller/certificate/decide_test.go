// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/test/certificates"
)

var (
	names    = []string{"modelbox-webhook.team.svc", "modelbox-webhook.team.svc.cluster.local"}
	testTime = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
)

const month = 30 * 24 * time.Hour

func newRules() *Options {
	return &Options{Service: "modelbox-webhook", Namespace: "team", Validity: month, Settle: settle, Mounted: mounted}
}

// apply returns what is observed after a step, with configurations that have the bundle.
func apply(t *testing.T, s step, o *observed, now time.Time) *observed {
	t.Helper()
	data, err := newRules().data(s, o, now)
	if err != nil {
		t.Fatal(err)
	}
	after := &observed{data: maps.Clone(o.data)}
	if after.data == nil {
		after.data = map[string][]byte{}
	}
	maps.Copy(after.data, data)
	maps.DeleteFunc(after.data, func(_ string, value []byte) bool { return value == nil })
	return after.withBundles(after.data[keyCA])
}

func (o *observed) withBundles(bundle []byte) *observed {
	o.bundles = [][]byte{bundle, bundle}
	return o
}

func (o *observed) with(key string, value []byte) *observed {
	changed := *o
	changed.data = maps.Clone(o.data)
	changed.data[key] = value
	return changed.withBundles(changed.data[keyCA])
}

func TestDecide(t *testing.T) {
	issued := apply(t, issue, &observed{}, testTime)
	staged := apply(t, stage, issued, testTime.Add(20*24*time.Hour))
	served := apply(t, serve, staged, testTime)
	requested, untrusted := *issued, *issued
	requested.requested = true
	untrusted.bundles = [][]byte{issued.data[keyCA], nil}
	foreignCert, foreignKey := certificates.New("x", 2)
	other := newRules()
	other.Namespace = "other"
	forOther, err := other.data(issue, &observed{}, testTime)
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	due := issued.serving()
	current, err := due.verify(parse(issued.data[keyCA]), names, testTime)
	if err != nil {
		t.Fatal(err)
	}
	renewal := current.due(testTime, month).Sub(testTime)
	for name, test := range map[string]struct {
		o      *observed
		lasted time.Duration
		at     time.Duration
		want   step
		after  time.Duration
		reason string
	}{
		"an empty Secret":                      {o: &observed{}, want: issue, reason: "missing"},
		"an empty Secret, and a bundle":        {o: (&observed{}).withBundles(issued.data[keyCA]), want: issue},
		"a certificate that is not one":        {o: issued.with("tls.crt", []byte("x")), want: issue},
		"the key of another certificate":       {o: issued.with("tls.key", foreignKey), want: issue, reason: "private key"},
		"a certificate of an unknown CA":       {o: issued.with("tls.crt", foreignCert).with("tls.key", foreignKey), want: issue},
		"no ca.crt":                            {o: issued.with("ca.crt", nil), want: issue, reason: "unknown authority"},
		"another namespace":                    {o: (&observed{data: forOther}).withBundles(forOther[keyCA]), want: issue, reason: "modelbox-webhook.team.svc"},
		"an expired certificate":               {o: issued, at: 31 * day, want: issue, reason: "expired"},
		"a clock that is behind":               {o: issued, at: -90 * time.Minute, after: renewal + 90*time.Minute},
		"a clock that is far behind":           {o: issued, at: -3 * time.Hour, want: issue, reason: "not yet valid"},
		"a bundle that is missing":             {o: &untrusted, want: trust},
		"rest":                                 {o: issued, after: renewal},
		"no configurations":                    {o: &observed{data: issued.data}, after: renewal},
		"two thirds of the validity":           {o: issued, at: renewal, want: stage, reason: "due"},
		"a request":                            {o: &requested, want: stage, reason: AnnotationRenew},
		"a staged pair, at once":               {o: staged, at: 20 * day, after: settle},
		"a staged pair, a little later":        {o: staged, at: 20 * day, lasted: settle - time.Second, after: time.Second},
		"a staged pair that all know":          {o: staged, at: 20 * day, lasted: settle, want: serve},
		"a staged pair that not all know":      {o: (&observed{data: staged.data}).withBundles(issued.data[keyCA]), at: 20 * day, lasted: settle, want: trust},
		"a staged certificate without its key": {o: staged.with("next.key", nil), at: 20 * day, want: stage},
		"a staged key alone":                   {o: staged.with("next.crt", nil), at: 20 * day, want: stage},
		"a staged pair of an unknown CA":       {o: staged.with("ca.crt", issued.data["ca.crt"]), at: 20 * day, want: stage, reason: "unknown authority"},
		"two CAs":                              {o: served, at: 20 * day, after: mounted},
		"two CAs, and no pod needs the old":    {o: served, at: 20 * day, lasted: mounted, want: retire},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRules().decide(test.o, test.lasted, testTime.Add(test.at))
			if d.step != test.want || !strings.Contains(d.reason, test.reason) {
				t.Errorf("%s (%s), want %s (%s)", d.step, d.reason, test.want, test.reason)
			}
			if d.step == idle && d.after != test.after {
				t.Errorf("decides again after %s, want %s", d.after, test.after)
			}
		})
	}
}

// A shorter --webhook-certificate-validity applies to the certificate there is.
func TestALongerValidityIsReplaced(t *testing.T) {
	r := newRules()
	o := apply(t, issue, &observed{}, testTime)
	r.Validity = 24 * time.Hour
	if d := r.decide(o, 0, testTime); d.step != stage {
		t.Errorf("%s (%s), want stage", d.step, d.reason)
	}
}

func TestWhatIsIssued(t *testing.T) {
	p, bundle, err := newPair(names, testTime, month)
	if err != nil {
		t.Fatal(err)
	}
	u, err := p.verify(parse(bundle), names, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if !u.leaf.NotBefore.Equal(testTime.Add(-backdated)) || !u.leaf.NotAfter.Equal(testTime.Add(month)) || !u.ca.NotAfter.Equal(u.leaf.NotAfter) {
		t.Errorf("valid from %s to %s, the CA to %s", u.leaf.NotBefore, u.leaf.NotAfter, u.ca.NotAfter)
	}
	if !slices.Equal(u.leaf.DNSNames, names) || u.leaf.IsCA || !slices.Equal(u.leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("the leaf is %+v", u.leaf)
	}
	ca := u.ca
	if !ca.IsCA || !ca.MaxPathLenZero || !ca.PermittedDNSDomainsCritical || !slices.Equal(ca.PermittedDNSDomains, names) || len(ca.ExcludedIPRanges) != 2 {
		t.Errorf("the CA is not limited to the names: %+v", ca)
	}
	if bytes.Contains(slices.Concat(p.cert, bundle), []byte("PRIVATE KEY")) || bytes.Count(p.key, []byte("PRIVATE KEY")) != 2 {
		t.Error("a key is where none may be")
	}
	if _, again, _ := newPair(names, testTime, month); bytes.Equal(again, bundle) {
		t.Error("two CAs are the same")
	}
}

// A bundle that others have filled does not grow without end, and keeps what is served.
func TestBundlesAreBounded(t *testing.T) {
	var many []byte
	for range maxCAs + 3 {
		_, ca, err := newPair(names, testTime, month)
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, ca...)
	}
	_, ca, err := newPair(names, testTime, month)
	if err != nil {
		t.Fatal(err)
	}
	got := bundleOf(ca, testTime, many, many)
	if n := len(parse(got)); n != maxCAs || !bytes.HasPrefix(got, ca) {
		t.Errorf("%d CAs", n)
	}
	if got := bundleOf(ca, testTime.Add(2*month), many); !bytes.Equal(got, ca) {
		t.Error("expired CAs stay")
	}
}
