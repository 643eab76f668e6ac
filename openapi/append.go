package openapi

import "encoding/json"

// AppendRequest is one batch, appended as a whole or not at all.
type AppendRequest struct {
	// PID, Epoch and BaseSeq come together or not at all.
	PID     *int64         `json:"pid,omitzero" validate:"omitnil,min=0,max=9007199254740991" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch   *int64         `json:"epoch,omitzero" validate:"omitnil,min=0,max=9007199254740991" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	BaseSeq *int64         `json:"baseSeq,omitzero" validate:"omitnil,min=0,max=9007199254740991" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Records []AppendRecord `json:"records" validate:"required" minItems:"1" maxItems:"65536"`
} // @name AppendRequest

// AppendRecord is one record of an append: exactly one of value, valueText and
// valueBase64, at most one of key and keyBase64.
type AppendRecord struct {
	Key         *string         `json:"key,omitzero" example:"order-17"`
	KeyBase64   *string         `json:"keyBase64,omitzero" swaggertype:"string" format:"byte"`
	Value       json.RawMessage `json:"value,omitzero" swaggertype:"object"`
	ValueText   *string         `json:"valueText,omitzero"`
	ValueBase64 *string         `json:"valueBase64,omitzero" swaggertype:"string" format:"byte"`
	Headers     []Header        `json:"headers,omitzero" maxItems:"64"`
	// Timestamp is RFC 3339 or integer milliseconds since 1970; absent: arrival time.
	Timestamp json.RawMessage `json:"timestamp,omitzero" swaggertype:"string" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name AppendRecord

// Header is a named annotation of a record.
type Header struct {
	Name  string `json:"name" validate:"required" example:"trace"`
	Value string `json:"value" validate:"required" example:"4bf92f35"`
} // @name Header

// AppendResponse says where a batch is stored. A duplicate gets the answer of the
// first time, with duplicate set.
type AppendResponse struct {
	Topic     string `json:"topic" validate:"required" example:"orders"`
	Partition int    `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// BaseOffset, LastOffset and AppendedAt are null for a duplicate of a batch so old
	// that its offsets are no longer remembered.
	BaseOffset *int64 `json:"baseOffset" validate:"required" extensions:"x-nullable" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	LastOffset *int64 `json:"lastOffset" validate:"required" extensions:"x-nullable" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	// NextSeq is the sequence after the batch; absent for a plain append.
	NextSeq    *int64  `json:"nextSeq,omitzero" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	Duplicate  bool    `json:"duplicate" validate:"required" example:"false"`
	AppendedAt *string `json:"appendedAt" validate:"required" extensions:"x-nullable" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name AppendResponse
