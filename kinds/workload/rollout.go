// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

// notReturned are the fields of a spec that a return leaves as they are: how many pods there are, which
// requests they have, and whether and when a rollout happens.
var notReturned = sets.New("replicas", "schedules", "autoscaling", "route", "paused", "holdChanges", "windows", "skipDates", "onFailedRollout")

// RolledOut returns the part of a stored spec that a return restores, and its hash.
func RolledOut(spec any) (data []byte, hash string, err error) {
	fields, err := fieldsOf(spec)
	if err != nil {
		return nil, "", err
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return notReturned.Has(name) })
	return Record(fields)
}

// Return restores such a part into a spec, a pointer to a struct, or to a map as unstructured objects
// have it.
func Return(spec any, data []byte) error {
	fields, err := fieldsOf(spec)
	if err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !notReturned.Has(name) })
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if data, err = json.Marshal(fields); err != nil {
		return err
	}
	returned := reflect.New(reflect.TypeOf(spec).Elem())
	if err := utiljson.Unmarshal(data, returned.Interface()); err != nil { // Whole numbers of a map stay whole.
		return err
	}
	reflect.ValueOf(spec).Elem().Set(returned.Elem())
	return nil
}

// RecordName returns the name of the ControllerRevision of an object for what has a hash.
func RecordName(object, hash string) string { return object + "-" + hash[:min(len(hash), 16)] }

// Record returns a value in JSON, whose fields are in the order of their names, and its hash (SHA-256).
func Record(value any) (data []byte, hash string, err error) {
	if data, err = json.Marshal(value); err != nil {
		return nil, "", err
	}
	var ordered any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&ordered); err != nil {
		return nil, "", err
	}
	data, err = json.Marshal(ordered)
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:]), err
}

func fieldsOf(spec any) (fields map[string]json.RawMessage, err error) {
	data, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	return fields, err
}
