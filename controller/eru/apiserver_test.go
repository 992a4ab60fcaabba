// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// server is a fake API server with one Eru and one Deployment. It is a hundred times as
// fast as the fake client, and has the optimistic lock, which is important here: a patch
// with a resourceVersion is refused for any other version. It is safe for concurrent use.
type server struct {
	mu         sync.Mutex
	version    int
	eru        *mtsrev1.Eru
	deployment *appsv1.Deployment // nil if there is none
	// restarts and statuses are called for each write while mu is held.
	restarts func(before, after *appsv1.Deployment)
	statuses func(before, after *mtsrev1.Eru)
}

func (s *server) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// change changes the Deployment's spec.
func (s *server) change(how func(*appsv1.Deployment)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deployment == nil {
		return
	}
	d := s.deployment.DeepCopy()
	d.Generation++
	how(d)
	d.ResourceVersion = s.next()
	s.deployment = d
}

// replace replaces the Deployment with another one, or deletes it if d is nil.
func (s *server) replace(d *appsv1.Deployment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d != nil {
		d.ResourceVersion = s.next()
		d.UID = types.UID("web-" + d.ResourceVersion)
	}
	s.deployment = d
}

// edit changes the Eru's spec.
func (s *server) edit(how func(*mtsrev1.EruSpec)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.eru.DeepCopy()
	how(&obj.Spec)
	obj.Generation++
	obj.ResourceVersion = s.next()
	s.eru = obj
}

func (s *server) patchDeployment(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deployment == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web")
	}
	after, err := merged(s.deployment, data)
	if err != nil {
		return err
	}
	after.Generation++
	after.ResourceVersion = s.next()
	s.restarts(s.deployment, after)
	s.deployment = after
	return nil
}

// patchStatus patches the Eru's status and returns its new version.
func (s *server) patchStatus(data []byte) (version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, err := merged(s.eru, data)
	if err != nil {
		return "", err
	}
	after.ResourceVersion = s.next()
	s.statuses(s.eru, after)
	s.eru = after
	return after.ResourceVersion, nil
}

// merged applies a patch to an object, if the resourceVersion in the patch is current.
func merged[T client.Object](stored T, patch []byte) (T, error) {
	var none T
	doc, err := json.Marshal(stored)
	if err != nil {
		return none, err
	}
	if doc, err = patched(doc, patch); err != nil {
		return none, err
	}
	after := stored.DeepCopyObject().(T)
	clearObject(after)
	if err := json.Unmarshal(doc, after); err != nil {
		return none, err
	}
	if after.GetResourceVersion() != stored.GetResourceVersion() || after.GetUID() != stored.GetUID() {
		return none, apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", stored)}, stored.GetName(),
			errors.New("the object has been modified"))
	}
	return after, nil
}

// patched applies a patch: a JSON patch if it is a list, else a merge patch.
func patched(doc, patch []byte) ([]byte, error) {
	if patch[0] != '[' {
		return jsonpatch.MergePatch(doc, patch)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(doc)
}

func clearObject(obj client.Object) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		*obj = appsv1.Deployment{}
	case *mtsrev1.Eru:
		*obj = mtsrev1.Eru{}
	}
}

// cachedClient is the client of one controller. It reads from a cache that is updated by
// syncEru and syncDeployment, and calls write for each write.
type cachedClient struct {
	client.Client // Nil: nothing else is called.
	server        *server
	eru           *mtsrev1.Eru
	deployment    *appsv1.Deployment
	// write is called for each write, and decides whether and when to do it.
	write func(do func() error) error
}

func (v *cachedClient) syncEru() {
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.eru = v.server.eru
}

func (v *cachedClient) syncDeployment() {
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	v.deployment = v.server.deployment
}

// Get reads from the cache.
func (v *cachedClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *mtsrev1.Eru:
		v.eru.DeepCopyInto(into)
	case *appsv1.Deployment:
		if v.deployment == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, key.Name)
		}
		v.deployment.DeepCopyInto(into)
	}
	return nil
}

// Patch patches the Deployment.
func (v *cachedClient) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return v.write(func() error { return v.server.patchDeployment(data) })
}

// Status patches the Eru's status.
func (v *cachedClient) Status() client.SubResourceWriter { return statusOf{client: v} }

type statusOf struct {
	client.SubResourceWriter // Nil: nothing else is called.
	client                   *cachedClient
}

func (s statusOf) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return s.client.write(func() error {
		version, err := s.client.server.patchStatus(data)
		if err == nil {
			obj.SetResourceVersion(version)
		}
		return err
	})
}
