package producer

import "context"

// Ack says where a record is stored.
type Ack struct {
	Topic     string
	Partition int
	// Offset is -1 when the record is stored but its offset is no longer known: its
	// answer was lost for so long that the server has forgotten it.
	Offset int64
	// Duplicate: the acknowledged request was not the first to arrive. The record is
	// stored once.
	Duplicate bool
}

// Future is the outcome of a record to come. The zero value is not valid.
type Future struct {
	d     *delivery
	index int32 // of the record in the delivery
}

// Wait returns the outcome of the record, or the error of ctx when that ends first.
// Giving up the wait does not take the record back. The error is an [*Error]; its
// Outcome says whether the record is stored.
func (f Future) Wait(ctx context.Context) (Ack, error) {
	d, i := f.d, f.index
	for {
		select {
		case <-d.done:
		default:
			select {
			case <-d.done:
			case <-ctx.Done():
				return Ack{}, ctx.Err()
			}
		}
		if len(d.parts) == 0 {
			return d.result(i)
		}
		d, i = d.part(i)
	}
}

// delivery is what the futures of one batch wait for. Its fields are set before done
// is closed and never changed after.
type delivery struct {
	done       chan struct{}
	topic      string
	partition  int
	baseOffset int64 // -1: not known
	duplicate  bool
	err        error
	parts      []part // of a batch that had to be split; the other fields are void then
}

// part is a stretch of a delivery's records that has become a delivery of its own.
type part struct {
	first int32
	d     *delivery
}

func (d *delivery) result(i int32) (Ack, error) {
	if d.err != nil {
		return Ack{}, d.err
	}
	a := Ack{Topic: d.topic, Partition: d.partition, Offset: -1, Duplicate: d.duplicate}
	if d.baseOffset >= 0 {
		a.Offset = d.baseOffset + int64(i)
	}
	return a, nil
}

// part finds record i among the parts.
func (d *delivery) part(i int32) (*delivery, int32) {
	at := len(d.parts) - 1
	for d.parts[at].first > i {
		at--
	}
	return d.parts[at].d, i - d.parts[at].first
}

// wait returns when every record of the delivery has its outcome.
func (d *delivery) wait(ctx context.Context) error {
	select {
	case <-d.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, p := range d.parts {
		if err := p.d.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// failed is the future of a record that was never accepted.
func failed(err *Error) Future {
	d := &delivery{done: make(chan struct{}), err: err}
	close(d.done)
	return Future{d: d}
}
