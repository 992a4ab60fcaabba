// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listKeys are the keys by which the lists of our children are merged: the
// listMapKey markers of k8s.io/api for the lists that a Deployment, a DaemonSet
// and a Service hold. A list that is not named here is atomic.
var listKeys = map[string][]string{
	"containers":                {"name"},
	"initContainers":            {"name"},
	"env":                       {"name"},
	"volumes":                   {"name"},
	"volumeMounts":              {"mountPath"},
	"volumeDevices":             {"devicePath"},
	"imagePullSecrets":          {"name"},
	"resourceClaims":            {"name"},
	"claims":                    {"name"},
	"schedulingGates":           {"name"},
	"hostAliases":               {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"ownerReferences":           {"uid"},
	// A Service's ports have the first key, a container's the second.
	"ports": {"port", "containerPort", "protocol"},
}

// differs names the first field, by its path, in which live is not as desired
// says, or "" if there is none. What desired does not say is not looked at: it
// belongs to the cluster or to somebody else.
func differs(desired, live client.Object) (string, error) {
	want, err := tree(desired)
	if err != nil {
		return "", err
	}
	have, err := tree(live)
	if err != nil {
		return "", err
	}
	return difference("", want, have), nil
}

// tree is an object without its type, which the cache drops, and its status,
// which is not ours to say.
func tree(obj client.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %q: %w", kindOf(obj), obj.GetName(), err)
	}
	delete(out, "apiVersion")
	delete(out, "kind")
	delete(out, "status")
	return out, nil
}

func difference(path string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		return mapDifference(path, want, have)
	case []any:
		return listDifference(path, want, have)
	}
	if want == have {
		return ""
	}
	return path
}

func mapDifference(path string, want map[string]any, have any) string {
	haveMap, ok := have.(map[string]any)
	if !ok && len(want) > 0 {
		return path
	}
	for _, key := range sortedKeys(want) {
		if want[key] == nil {
			continue // A pointer that its type cannot leave out: it says nothing.
		}
		if at := difference(join(path, key), want[key], haveMap[key]); at != "" {
			return at
		}
	}
	return ""
}

func listDifference(path string, want []any, have any) string {
	haveList, _ := have.([]any)
	keys := listKeys[path[strings.LastIndexByte(path, '.')+1:]]
	if keys == nil && len(want) != len(haveList) {
		return path
	}
	for i, item := range want {
		other, at := counterpart(path, keys, i, item, haveList)
		if other == nil {
			return at
		}
		if at := difference(at, item, other); at != "" {
			return at
		}
	}
	return ""
}

// counterpart finds the item of a list that an item is to be compared with: the
// one of equal keys, or in an atomic list the one in the same place. A key that
// the item leaves out, such as a container port's protocol, has a default on the
// server and matches any.
func counterpart(path string, keys []string, i int, item any, list []any) (any, string) {
	if keys == nil {
		return list[i], fmt.Sprintf("%s[%d]", path, i)
	}
	want, _ := item.(map[string]any)
	at := fmt.Sprintf("%s[%s]", path, keyText(keys, want))
	found := slices.IndexFunc(list, func(other any) bool {
		have, _ := other.(map[string]any)
		return !slices.ContainsFunc(keys, func(key string) bool {
			value, said := want[key]
			return said && value != have[key]
		})
	})
	if found < 0 {
		return nil, at
	}
	return list[found], at
}

func keyText(keys []string, item map[string]any) string {
	var parts []string
	for _, key := range keys {
		if value, ok := item[key]; ok {
			parts = append(parts, fmt.Sprintf("%s=%v", key, value))
		}
	}
	return strings.Join(parts, ",")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// kindOf is the object's kind, from its Go type: objects read from a cache do not
// carry it.
func kindOf(obj client.Object) string {
	name := fmt.Sprintf("%T", obj)
	return name[strings.LastIndexByte(name, '.')+1:]
}
