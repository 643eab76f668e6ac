package openapi

import "encoding/json"

// Record is one record as a read gives it. Key and value come back in the form in
// which they were stored; ?values=base64 forces valueBase64.
type Record struct {
	Offset    int64   `json:"offset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Timestamp string  `json:"timestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	Key       *string `json:"key,omitzero" example:"order-17"`
	KeyBase64 *string `json:"keyBase64,omitzero" format:"byte"`
	// Value is any JSON, null for a tombstone.
	Value       json.RawMessage `json:"value,omitzero" swaggertype:"object"`
	ValueText   *string         `json:"valueText,omitzero"`
	ValueBase64 *string         `json:"valueBase64,omitzero" format:"byte"`
	// ContentType is that of a record appended as a raw body.
	ContentType *string  `json:"contentType,omitzero" example:"image/png"`
	Headers     []Header `json:"headers" validate:"required"`
} // @name Record

// RecordList is a stretch of records, by offset.
type RecordList struct {
	Records        []Record `json:"records" validate:"required"`
	NextOffset     int64    `json:"nextOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	HighWatermark  int64    `json:"highWatermark" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	EarliestOffset int64    `json:"earliestOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
} // @name RecordList
