// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import "testing"

// attacks are objects by which a user who may write only the five kinds once had the
// operator do what the user may not do.
var attacks = map[string]struct {
	kind kind
	spec string
	// want is the outcome for a delegated user.
	want outcome
}{
	"a privileged pod with hostPath on a chosen node": {modelBox, `
image: evil:1
podTemplate:
  spec:
    nodeName: control-plane
    hostPID: true
    containers: [{name: attack, securityContext: {privileged: true}, volumeMounts: [{name: host, mountPath: /host}]}]
    volumes: [{name: host, hostPath: {path: /}}]
`, byDelegated},
	"a pod under another service account":                    {app, `{image: "evil:1", podTemplate: {spec: {serviceAccountName: admin}}}`, byDelegated},
	"the values of a Secret as env":                          {modelBox, `{image: "evil:1", envFrom: [{secretRef: {name: root}}]}`, byDelegated},
	"one value of a Secret as env":                           {app, `{image: "evil:1", envs: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]}`, byDelegated},
	"a private image by another team's registry credentials": {modelBox, `{image: "registry.example.com/theirs:1", imagePullSecrets: [{name: root}]}`, byDelegated},
	"the same by an App":                                     {app, `{image: "registry.example.com/theirs:1", imagePullSecrets: [{name: db}, {name: root}]}`, byDelegated},
	"all values of a Secret, by App":                         {app, `{image: "evil:1", command: [env], envFrom: [{secretRef: {name: root}}]}`, byDelegated},
	"a ConfigMap, by App":                                    {app, `{image: "evil:1", envFrom: [{prefix: A_, configMapRef: {name: theirs}}]}`, byDelegated},
	"a LoadBalancer":                                         {modelBox, `{image: "evil:1", serviceType: LoadBalancer, ports: [{port: 22}]}`, byDelegated},
	"a DaemonSet on the control plane": {genericdaemon, `
image: evil:1
label: node-role.kubernetes.io/control-plane
podTemplate: {spec: {tolerations: [{operator: Exists}]}}
`, byDelegated},
	"the Deployment of another user scaled to 0 by a UnitedDeployment": {unitedDeployment, `{deploymentName: theirs, replicas: 0}`, byDelegated},
	"the Deployment of another user restarted":                         {eru, `{deploymentName: theirs, enabled: true, schedule: "* * * * *"}`, byDelegated},
	"the same by the deprecated name of the field":                     {eru, `{deploymentname: theirs, enabled: true, schedule: "* * * * *"}`, byDelegated},
	"the same beside an empty name":                                    {eru, `{deploymentName: "", deploymentname: theirs, enabled: true}`, byDelegated},
	"another team's model from its claim":                              {modelBox, `{image: "evil:1", model: {uri: pvc://theirs/weights}}`, byDelegated},
	"the same by the alias":                                            {modelBox, `{image: "evil:1", modelFileURL: pvc://theirs/weights}`, byDelegated},
	"a model written into another team's claim":                        {modelBox, `{image: "evil:1", model: {` + fromHTTPS + `, claim: theirs}}`, byDelegated},
	"the values of a Secret as the credentials of a model":             {modelBox, `{image: "evil:1", model: {uri: s3://evil/key, credentials: {name: root}}}`, byDelegated},
	"any model": {modelBox, `{image: "a:1", model: {` + fromHTTPS + `}}`, allowed},
	"any pod":   {modelBox, `{image: "miner:1", replicas: 1000}`, allowed},
}

// No attack succeeds for a user who may write only the kinds, and of a delegated user only
// what is delegated: pods without rights.
func TestAttacks(t *testing.T) {
	t.Parallel()
	onlyKinds := user(t, "attacks-only-kinds", lists, kindsRole)
	delegated := user(t, "attacks-delegated", lists, kindsRole, delegatedRole)
	editor := user(t, "attacks-edit", nil, "edit")
	for name, attack := range attacks {
		s := parse(t, attack.spec)
		if got, err := tried(t, onlyKinds, attack.kind, "attack", s); got != byRequester {
			t.Errorf("%s: %s (%v)", name, got, err)
		}
		if got, err := tried(t, delegated, attack.kind, "attack", s); got != attack.want {
			t.Errorf("%s, delegated: %s, want %s (%v)", name, got, attack.want, err)
		}
		// With edit a user may create the pod and the rest directly.
		if got, err := tried(t, editor, attack.kind, "attack", s); got != allowed {
			t.Errorf("%s, edit: %s (%v)", name, got, err)
		}
	}
}
