package bolt_test

import (
	"context"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// readTexts reads the first record of every batch of a partition.
func readTexts(s *bolt.Store, p store.Partition) (out []string, err error) {
	ctx := context.Background()
	b, err := s.Bounds(ctx, p)
	if err != nil {
		return nil, err
	}
	for offset := b.Earliest; offset < b.HighWatermark; {
		got, err := s.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 1 << 20, MaxBytes: 1 << 20})
		if err != nil {
			return out, err
		}
		for _, sb := range got.Batches {
			rd, err := batch.NewReader(sb.Bytes)
			if err != nil {
				return out, err
			}
			var rec batch.Record
			if _, err := rd.Next(&rec); err != nil {
				return out, err
			}
			out = append(out, string(rec.Value))
			offset = sb.LastOffset + 1
		}
	}
	return out, nil
}

func bounds(r *rig, p store.Partition) store.Bounds {
	r.t.Helper()
	b, err := r.Bounds(context.Background(), p)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}
