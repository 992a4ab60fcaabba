// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;create;delete

// uncached is an option of the writes of records, which no cache has.
const uncached = client.DisableReadYourWritesConsistency

// readRecord returns what the record of an owner with a hash has, nil if there is none: users who
// may write ControllerRevisions cannot give it another content.
func (r *Reconciler) readRecord(ctx context.Context, owner kinds.Object, hash string) ([]byte, error) {
	record := emptyRecord(owner, hash)
	if err := r.Writer.Live.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	data, have, err := workload.Record(record.Data)
	if err != nil || have != hash {
		return nil, nil //nolint:nilerr // What cannot be decoded has another hash.
	}
	return data, nil
}

// createRecord stores the record with a hash, in place of whatever has its name.
func (r *Reconciler) createRecord(ctx context.Context, s *State, hash string, data []byte) error {
	record := emptyRecord(s.Owner, hash)
	record.OwnerReferences, record.Data, record.Revision = s.ObjectMeta().OwnerReferences, runtime.RawExtension{Raw: data}, s.Owner.GetGeneration()
	err := r.Writer.Client.Create(ctx, record.DeepCopy(), uncached, client.FieldOwner(apply.FieldManager), s.Writer.Owner)
	if apierrors.IsAlreadyExists(err) { // Of a reconcile whose status was not written, or of another client.
		err = r.replaceRecord(ctx, s, record, hash)
	}
	if err != nil {
		return apply.Refused("creating", record, err)
	}
	return nil
}

// replaceRecord replaces a record that exists, unless it has the content of that hash.
func (r *Reconciler) replaceRecord(ctx context.Context, s *State, record *appsv1.ControllerRevision, hash string) error {
	if existing, err := r.readRecord(ctx, s.Owner, hash); err != nil || existing != nil {
		return err
	}
	if err := r.deleteRecord(ctx, s, hash); err != nil {
		return err
	}
	return r.Writer.Client.Create(ctx, record, uncached, client.FieldOwner(apply.FieldManager), s.Writer.Owner)
}

// deleteRecord deletes the record with a hash, if it exists.
func (r *Reconciler) deleteRecord(ctx context.Context, s *State, hash string) error {
	record := emptyRecord(s.Owner, hash)
	if err := r.Writer.Client.Delete(ctx, record, uncached, s.Writer.Owner); client.IgnoreNotFound(err) != nil {
		return apply.Refused("deleting", record, err)
	}
	return nil
}

// emptyRecord returns the ControllerRevision for what has a hash, without it.
func emptyRecord(owner kinds.Object, hash string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: workload.RecordName(owner.GetName(), hash),
			Labels: map[string]string{api.LabelManagedBy: api.ManagedBy},
		},
	}
}
