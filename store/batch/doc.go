// Package batch is the binary form of a record batch: what the Go producer sends,
// what an engine stores and what reads decode. openapi/BATCH.md draws it.
//
//	0   magic "OL"            2 bytes
//	2   version               1 byte, 1
//	3   reserved              1 byte, 0
//	4   record count          uint32, at least 1
//	8   length of forms       uint32
//	12  length of records     uint32
//	16  CRC32C                uint32, over bytes 0–15 and 20–end
//	20  forms, then records
//
// Integers are big endian; varints are unsigned LEB128 of the shortest form.
//
// The records section holds what the client said: keys, values, headers and the
// timestamps that it gave. The forms section holds how it said it: whether a value
// came as JSON, text, base64 or as a raw body, and of which media type. A batch's
// [sequence.Digest] is taken over the records section alone, so that a retry is
// recognised whatever media type carries it.
package batch
