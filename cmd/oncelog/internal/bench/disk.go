package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// Sync measures the two syncs that a bbolt commit needs, with nothing around them: 16
// KiB somewhere in a file, fdatasync, 4 KiB at its beginning, fdatasync. A request is
// such a pair.
func Sync(ctx context.Context, dir string, duration time.Duration, progress func(Progress)) (*Result, error) {
	const (
		length = 64 << 20
		data   = 16 << 10
		meta   = 4 << 10
	)
	path, err := WriteFile(dir, length, false)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path) //nolint:errcheck // a temporary file
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // a temporary file
	page := make([]byte, data)
	at := int64(data)
	return repeat(ctx, duration, progress, func() (int64, error) {
		binary.BigEndian.PutUint64(page, uint64(at))
		_, err := f.WriteAt(page, at)
		if at += data; at == length {
			at = data
		}
		if err == nil {
			err = syncData(f)
		}
		if err == nil {
			_, err = f.WriteAt(page[:meta], 0)
		}
		if err == nil {
			err = syncData(f)
		}
		return 0, err
	})
}

// Commit measures a bare loop of bbolt transactions, each of which puts values of the
// given length under rising keys. A request is a transaction.
func Commit(ctx context.Context, dir string, duration time.Duration, values, length int, progress func(Progress)) (*Result, error) {
	dir, err := os.MkdirTemp(dir, "oncelog-bench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	db, err := bbolt.Open(filepath.Join(dir, "bbolt"), 0o600, &bbolt.Options{
		// The fastest of what bbolt offers for large values on the usual disks.
		PageSize: 16 << 10, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true,
	})
	if err != nil {
		return nil, err
	}
	bucket, value := []byte("b"), newPayload(&Load{Format: Raw, RecordBytes: length, BatchRecords: 1}).tails[0]
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	})
	var result *Result
	if err == nil {
		var n uint64
		result, err = repeat(ctx, duration, progress, func() (int64, error) {
			return int64(values) * int64(length), db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucket)
				b.FillPercent = 1 // keys only rise
				for range values {
					n++
					key := binary.BigEndian.AppendUint64(nil, n)
					if err := b.Put(key, value); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return result, errors.Join(err, db.Close())
}

// repeat calls f again and again; it gives the bytes that it has written.
func repeat(ctx context.Context, duration time.Duration, progress func(Progress), f func() (int64, error)) (*Result, error) {
	times, link := newRecorder(), &link{}
	d := newDrive(nil, progress)
	d.links = append(d.links, link)
	p := newPace(d, nil)
	out := &Result{Errors: map[string]int64{}}
	begin := time.Now()
	for now := begin; now.Sub(begin) < duration; {
		n, err := f()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		end := time.Now()
		times.record(0, end.Sub(now))
		out.Requests++
		link.requests.Add(1)
		if end.Sub(p.at) > reportEvery {
			p.report("measuring", end.Sub(begin), duration)
		}
		out.Bytes += n
		now = end
	}
	out.Seconds = time.Since(begin).Seconds()
	out.LatencyMs = times.latency()
	out.rates()
	return out, nil
}
