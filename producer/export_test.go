package producer

import "github.com/oncelog/oncelog/store/sequence"

// Murmur2 is the hash behind KeyPartition, as Kafka's tests print it.
func Murmur2(b []byte) int32 { return int32(murmur2(b)) }

// SetIdentity makes p send under an id and epoch that it did not allocate.
func (p *Producer) SetIdentity(pid, epoch int64) { p.ids.set(identity{pid: pid, epoch: epoch}) }

// MaxEpoch is the last epoch.
const MaxEpoch = sequence.Max
