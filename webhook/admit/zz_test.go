package admit

import (
	gojson "encoding/json"
	"testing"
	"sigs.k8s.io/json"
)

func BenchmarkZZ(b *testing.B) {
	box := typical()
	raw := []byte(marshal(box))
	box.ManagedFields = nil
	raw2 := []byte(marshal(box))
	for _, c := range []struct{ n string; raw []byte }{{"managed", raw}, {"plain", raw2}} {
		b.Run(c.n+"/sigs", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { json.UnmarshalCaseSensitivePreserveInts(c.raw, new(Box)) } })
		b.Run(c.n+"/std", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { gojson.Unmarshal(c.raw, new(Box)) } })
	}
	b.Logf("%s", raw2)
}
