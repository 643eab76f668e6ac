package openapi

import (
	"bytes"
	"encoding/json"
)

// NullableInt is an integer member that is absent, null or a number. The zero value
// is absent.
type NullableInt struct {
	Present bool
	Value   *int64 // nil: null
}

// NullOr gives a member that is null for nil.
func NullOr(v *int64) NullableInt { return NullableInt{Present: true, Value: v} }

// IsZero reports that the member is absent, for omitzero.
func (n NullableInt) IsZero() bool { return !n.Present }

// MarshalJSON writes the number or null.
func (n NullableInt) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// UnmarshalJSON reads a number or null.
func (n *NullableInt) UnmarshalJSON(b []byte) error {
	n.Present = true
	if bytes.Equal(b, []byte("null")) {
		n.Value = nil
		return nil
	}
	return json.Unmarshal(b, &n.Value)
}
