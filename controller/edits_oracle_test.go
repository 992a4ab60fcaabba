// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
)

// oracle returns the expected child after another field manager edited it and the operator
// reconciled.
type oracle struct{ schemas }

// want returns the expected value of one field. desired is what the operator writes, before is
// the child before the edit, and edited the child after it. A field that the operator owns has
// its value from before the edit; any other has the value of the edit.
func (o oracle) want(t *typeSchema, desired, before, edited any) any {
	switch {
	case desired == nil || before == nil:
		return edited
	case edited == nil || t.scalar() || t.atomic():
		return before
	}
	switch desired := desired.(type) {
	case []any:
		return o.wantList(t, desired, before.([]any), edited.([]any))
	case tree:
		return o.wantObject(t, desired, before.(tree), edited.(tree))
	}
	return before
}

func (o oracle) wantObject(t *typeSchema, desired, before, edited tree) any {
	members := t.members()
	owned := slices.ContainsFunc(members, func(field string) bool { return desired[field] != nil }) || t.name == "EnvVar"
	both := maps.Clone(before)
	maps.Copy(both, edited)
	result := tree{}
	chosen := o.chosenAnew(t, desired, before, edited)
	for key := range both {
		value := o.want(o.child(t, key), desired[key], before[key], edited[key])
		if desired[key] == nil && owned && slices.Contains(members, key) {
			value = before[key] // Only one of them may be set: the desired one.
		}
		if desired[key] == nil && slices.Contains(chosen, key) {
			value = anything
		}
		if value != nil {
			result[key] = value
		}
	}
	return result
}

// wantList keeps the desired items, once each, and of the others those that the API server
// stores beside them.
func (o oracle) wantList(t *typeSchema, desired, before, edited []any) any {
	item := o.of(t.Items)
	var result []any
	found := map[string]bool{}
	for _, ours := range desired {
		key := keyOf(t.ListKeys, ours)
		found[key] = true
		was := itemOf(t.ListKeys, before, key)
		is := itemOf(t.ListKeys, edited, key)
		value := o.want(item, ours, was, is)
		if item.name == "ServicePort" && ours.(tree)["nodePort"] == nil && valueAt(is, path{"nodePort"}) == nil && valueAt(was, path{"nodePort"}) != nil {
			value = altered(value, path{"nodePort"}, always(anything))
		}
		result = append(result, value)
	}
	for _, theirs := range edited {
		if !found[keyOf(t.ListKeys, theirs)] && !collides(item, theirs, before, desired, t.ListKeys) {
			result = append(result, theirs)
		}
	}
	return result
}

func itemOf(keys []string, list []any, key string) any {
	for _, item := range list {
		if keyOf(keys, item) == key {
			return item
		}
	}
	return nil
}

// chosenAnew returns the fields that the API server assigns again when the operator reverts a
// field on which they depend: the type of a Service, or a port that was removed.
func (o oracle) chosenAnew(t *typeSchema, desired, before, edited tree) []string {
	if t.name == "ServiceSpec" && before["type"] != edited["type"] && desired["type"] != nil {
		return []string{"allocateLoadBalancerNodePorts", "clusterIP", "clusterIPs", "externalName", "externalTrafficPolicy",
			"internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "loadBalancerClass", "healthCheckNodePort"}
	}
	return nil
}

// collides reports whether an item cannot be stored beside the desired ones: names of ports and
// of devices are unique, and so are node ports.
func collides(item *typeSchema, theirs any, before, desired []any, keys []string) bool {
	if !slices.Contains([]string{"ServicePort", "ContainerPort", "VolumeDevice"}, item.name) {
		return false
	}
	other := theirs.(tree)
	for _, ours := range desired {
		was := itemOf(keys, before, keyOf(keys, ours)).(tree)
		sameName := was["name"] == other["name"] && (was["name"] != nil || item.name == "ServicePort")
		if sameName || other["nodePort"] != nil && ours.(tree)["nodePort"] == other["nodePort"] {
			return true
		}
	}
	return false
}
