package openapi

// topicProblems are about topics, partitions, offsets and snapshots.
func topicProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "unknown-topic", Status: 404, Title: "There is no such topic", Outcome: NotApplied,
			Meaning:   "No topic has this name; it was never created, or has been deleted. A name that breaks the rule for names is unknown too.",
			Do:        "Create the topic with PUT /topics/{topic}, or start the server with --auto-create-topics.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "unknown-partition", Status: 404, Title: "The topic has no such partition", Outcome: NotApplied,
			Meaning:   "Partitions are numbered from 0 to one below the topic's partitions.",
			Do:        "Read GET /topics/{topic} for the number of partitions. It can only grow, with PATCH.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "topic-exists", Status: 409, Title: "The topic exists already", Outcome: NotApplied,
			Meaning:   "A topic of this name exists; for PUT: with other partitions or settings than the request names (absent members stand for the defaults).",
			Do:        "Use the topic as it is, change it with PATCH, or choose another name. PUT confirms a topic that is already as wanted.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "topic-deleting", Status: 409, Title: "The topic is being deleted", Retryable: true, Outcome: NotApplied,
			Meaning:   "A deletion of the topic has begun and is not finished.",
			Do:        "Wait a moment and try again.",
			RetrySafe: safeLater,
		},
		{
			Code: "records-trimmed", Status: 410, Title: "The records are no longer kept", Outcome: NotApplied,
			Meaning:   "The offset lies below the first record that retention or trimming has left. earliestOffset says where the partition begins now.",
			Do:        "Go on from earliestOffset if the records in between may be missed, or read with offset=earliest.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "offset-out-of-range", Status: 416, Title: "The offset is above the end of the partition", Outcome: NotApplied,
			Meaning:   "The offset lies above the high watermark, nextOffset, which is the offset that the next record will get. Reading exactly there is allowed and gives nothing yet.",
			Do:        "Read from nextOffset. A stored position above the end usually belongs to a topic that has been deleted and created again.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "unknown-snapshot", Status: 404, Title: "There is no such snapshot", Outcome: NotApplied,
			Meaning:   "The partition has no producer-state snapshot at this offset; older ones are removed as new ones are taken.",
			Do:        "List them with GET /snapshots.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "records-damaged", Status: 500, Title: "A stored batch fails its checksum", Outcome: NotApplied,
			Meaning:   "The batch at this offset no longer matches the CRC32C that was stored with it: the file has been damaged. The bytes are not given out.",
			Do:        "Tell the operator, who should run oncelog check. Records behind the damaged batch can be read by their offsets.",
			RetrySafe: safeUnchanged,
		},
	}
}

// sequenceProblems are the refusals of the append rule, and what concerns producers.
func sequenceProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "idempotence-required", Status: 400, Title: "The topic takes idempotent appends only", Outcome: NotApplied,
			Meaning:   "The topic is set to requireIdempotence, and the append names no pid, epoch and baseSeq.",
			Do:        "Allocate a producer id with POST /producers and number the batches.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "unknown-producer-id", Status: 404, Title: "The producer id is not known", Outcome: NotApplied,
			Meaning:   "For an append: this server has never issued the id. For a look at a partition's producer: the producer has no live state there.",
			Do:        "Allocate an id with POST /producers; never make one up.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "producers-exhausted", Status: 503, Title: "No producer id is left", Outcome: NotApplied,
			Meaning:   "All 2^53 producer ids have been issued. Ids never return.",
			Do:        "Go on with the ids that you have.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "sequence-reused", Status: 422, Title: "The sequence was used for another payload", Outcome: NotApplied,
			Meaning:   "A batch with exactly these sequences is stored, at originalOffset, with other keys, values, headers or timestamps. If it were taken for a duplicate, this one would be lost without a word.",
			Do:        "Find the fault in the producer: a sequence belongs to one batch for ever, from the moment it is first sent. Two processes that share a pid cause this too. Send the new records under new sequences.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "sequence-overlap", Status: 409, Title: "The batch overlaps stored ones", Outcome: NotApplied,
			Meaning:   "Some of the batch's sequences are stored already, but not as this very batch: it was split, merged or shifted after its first send. expectedSeq is the next new sequence.",
			Do:        "Send batches again only as they were first sent. To go on, start a batch at expectedSeq.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "out-of-order-sequence", Status: 409, Title: "The batch is ahead of its predecessors", Retryable: true, Outcome: NotApplied,
			Meaning:   "Batches before this one have not arrived: the partition expects expectedSeq, and got receivedSeq, gap further on. A producer that is new to the partition, and a new epoch, start at 0. A small gap is a request that was overtaken; one that stays means that a batch was lost on its way.",
			Do:        "Send what is missing, from expectedSeq on, then this batch again. With requests in flight: wait for their answers first.",
			RetrySafe: "Safe: nothing was changed. It succeeds as soon as its predecessors are stored.",
		},
		{
			Code: "producer-fenced", Status: 409, Title: "A newer epoch has replaced this one", Outcome: NotApplied,
			Meaning:   "The partition has seen the producer with a higher epoch, currentEpoch: another instance has taken over, and this one is a leftover.",
			Do:        "Stop, unless you are the instance that should go on; then use an epoch above currentEpoch and start at sequence 0.",
			RetrySafe: safeUnchanged,
		},
		{
			Code: "producer-expired", Status: 409, Title: "The producer's state has expired", Outcome: NotApplied,
			Meaning:   "The producer was idle for longer than the topic's producerExpiryMs, or was expired by hand or to make room. Its last epoch and sequence are remembered, its batches are not: whether this one was stored cannot be told any more, except that nothing up to lastSeq is missing.",
			Do:        "action is bump-epoch: if the batch lies above lastSeq it is not stored; go on with an epoch above lastEpoch and sequence 0.",
			RetrySafe: safeUnchanged,
		},
	}
}
