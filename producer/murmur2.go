package producer

import "encoding/binary"

// murmur2 is the 32-bit MurmurHash2 with the seed that Kafka's clients use, so that a
// key goes to the partition of the same number as it would there.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(data))
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data)
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
		data = data[4:]
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// KeyPartition is the partition, of so many, that Kafka's default partitioner gives a
// key.
func KeyPartition(key []byte, partitions int) int {
	return int(murmur2(key)&0x7fffffff) % partitions
}
