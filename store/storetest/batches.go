package storetest

import (
	"fmt"

	"github.com/oncelog/oncelog/store/batch"
)

// Batch is a batch of n records; the value of record i is the text payload, a dash and i.
func Batch(payload string, n int) batch.Batch {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%s-%d", payload, i)
	}
	return Texts(values...)
}

// Texts is a batch of one record for each value, without keys, headers or timestamps.
func Texts(values ...string) batch.Batch {
	var b batch.Builder
	for _, v := range values {
		b.Add(&batch.Record{Value: []byte(v), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	}
	return b.Build()
}

// Records is a batch of the records.
func Records(records ...batch.Record) batch.Batch {
	var b batch.Builder
	for i := range records {
		b.Add(&records[i])
	}
	return b.Build()
}

// Values decodes the record values of an encoded batch.
func Values(encoded []byte) ([]string, error) {
	r, err := batch.NewReader(encoded)
	if err != nil {
		return nil, fmt.Errorf("stored batch: %w", err)
	}
	out := make([]string, 0, r.Len())
	var rec batch.Record
	for {
		ok, err := r.Next(&rec)
		if err != nil {
			return nil, fmt.Errorf("stored batch: %w", err)
		}
		if !ok {
			return out, nil
		}
		out = append(out, string(rec.Value))
	}
}
