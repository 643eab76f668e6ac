package openapi

import "encoding/json"

// Record is one record as a read gives it. Key and value come back in the form in
// which they were stored; ?values=base64 forces valueBase64.
type Record struct {
	// The offset in the partition.
	Offset int64 `json:"offset" validate:"required" example:"0"`
	// The time that the producer gave, or of arrival.
	Timestamp string `json:"timestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The key, if it was stored as text.
	Key *string `json:"key,omitzero" example:"order-17"`
	// The key in base64, if it was stored as bytes.
	KeyBase64 *string `json:"keyBase64,omitzero" format:"byte"`
	// The value, if it was stored as JSON; null is a tombstone.
	Value json.RawMessage `json:"value,omitzero" swaggertype:"object"`
	// The value, if it was stored as text.
	ValueText *string `json:"valueText,omitzero"`
	// The value in base64, if it was stored as bytes, or with ?values=base64.
	ValueBase64 *string `json:"valueBase64,omitzero" format:"byte"`
	// The media type, if the record was appended as a raw body.
	ContentType *string `json:"contentType,omitzero" example:"image/png"`
	// The annotations, in the order in which they were sent.
	Headers []Header `json:"headers" validate:"required"`
} // @name StoredRecord

// RecordList is a stretch of records, by offset.
type RecordList struct {
	// The records.
	Records []Record `json:"records" validate:"required"`
	// Where to go on.
	NextOffset int64 `json:"nextOffset" validate:"required" example:"3"`
	// The offset that the next record will get.
	HighWatermark int64 `json:"highWatermark" validate:"required" example:"3"`
	// The first offset that is kept.
	EarliestOffset int64 `json:"earliestOffset" validate:"required" example:"0"`
} // @name RecordList
