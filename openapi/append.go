package openapi

import "encoding/json"

// AppendRequest is one batch, appended as a whole or not at all.
type AppendRequest struct {
	// The producer id, from POST /producers. PID, Epoch and BaseSeq come together or not at
	// all; without them the append is at-least-once.
	PID *int64 `json:"pid,omitzero" validate:"omitnil,min=0,max=9007199254740991" example:"0"`
	// The producer's epoch: 0 at first, higher after a restart that cannot tell what was
	// stored.
	Epoch *int64 `json:"epoch,omitzero" validate:"omitnil,min=0,max=9007199254740991" example:"0"`
	// The sequence of the first record. Sequences count the producer's records in this
	// partition, from 0 in each epoch.
	BaseSeq *int64 `json:"baseSeq,omitzero" validate:"omitnil,min=0,max=9007199254740991" example:"0"`
	// The records, which are stored together, one after the other.
	Records []AppendRecord `json:"records" validate:"required" minItems:"1" maxItems:"65536"`
} // @name AppendRequest

// AppendRecord is one record of an append: exactly one of value, valueText and
// valueBase64, at most one of key and keyBase64.
type AppendRecord struct {
	// The key as text. At most one of Key and KeyBase64.
	Key *string `json:"key,omitzero" example:"order-17"`
	// The key as bytes, in base64.
	KeyBase64 *string `json:"keyBase64,omitzero" swaggertype:"string" format:"byte"`
	// Any JSON value. Its bytes are kept as they were sent; null is a tombstone. Exactly one
	// of Value, ValueText and ValueBase64.
	Value json.RawMessage `json:"value,omitzero" swaggertype:"object"`
	// The value as text.
	ValueText *string `json:"valueText,omitzero"`
	// The value as bytes, in base64.
	ValueBase64 *string `json:"valueBase64,omitzero" swaggertype:"string" format:"byte"`
	// Named annotations of the record, kept in this order; names may repeat.
	Headers []Header `json:"headers,omitzero" maxItems:"64"`
	// The time of the record, RFC 3339; absent: when it arrives. Integer milliseconds since
	// 1970 are taken too.
	Timestamp json.RawMessage `json:"timestamp,omitzero" swaggertype:"string" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name AppendRecord

// Header is a named annotation of a record.
type Header struct {
	// The name, 1 to 256 bytes.
	Name string `json:"name" validate:"required" minLength:"1" maxLength:"256" example:"trace"`
	// The value, at most 8192 bytes.
	Value string `json:"value" validate:"required" maxLength:"8192" example:"4bf92f35"`
} // @name Header

// AppendResponse says where a batch is stored. A duplicate gets the answer of the
// first time, with duplicate set.
type AppendResponse struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The offset of the first record; null for a duplicate of a batch so old that its offsets
	// are no longer remembered.
	BaseOffset *int64 `json:"baseOffset" validate:"required" extensions:"x-nullable" example:"0"`
	// The offset of the last record; null where BaseOffset is.
	LastOffset *int64 `json:"lastOffset" validate:"required" extensions:"x-nullable" example:"2"`
	// The sequence after the batch: the baseSeq of the next one. Absent for a plain append.
	NextSeq *int64 `json:"nextSeq,omitzero" example:"3"`
	// Whether the batch was stored before. It is stored once all the same, and the offsets are
	// those of the first time.
	Duplicate bool `json:"duplicate" validate:"required" example:"false"`
	// The time when the batch was stored; null where BaseOffset is.
	AppendedAt *string `json:"appendedAt" validate:"required" extensions:"x-nullable" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name AppendResponse
