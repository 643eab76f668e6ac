package openapi

// topicProblems are about topics and partitions.
func topicProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "unknown-topic", Status: 404, Title: "There is no such topic", Outcome: NotApplied,
			Meaning: "No topic has this name: it was never created, or it has been deleted. Names are case-sensitive.",
			Do: "Look at `GET /topics` for a slip in the name. To create the topic: `curl -X PUT localhost:8080/topics/orders -H 'Content-Type: application/json' -d '{}'`. " +
				"A server that runs with `--auto-create-topics` creates it on the first append.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, `there is no topic "orders"`),
		},
		{
			Code: "unknown-partition", Status: 404, Title: "The topic has no such partition", Outcome: NotApplied,
			Meaning:   "Partitions are numbered from 0: a topic with 4 partitions has 0, 1, 2 and 3.",
			Do:        "`GET /topics/{topic}` says how many there are. A PATCH of the topic can add some; none can be removed.",
			RetrySafe: safeUnchanged,
			Example:   about("/topics/orders/partitions/4/batches", `topic "orders" has partitions 0 to 3, not 4`),
		},
		{
			Code: "topic-exists", Status: 409, Title: "The topic exists already", Outcome: NotApplied,
			Meaning: "POST: there is a topic of this name. PUT: there is one, and its partitions or settings are not those that the request asks for, " +
				"where a setting that the request leaves out stands for its default.",
			Do: "Use the topic as it is, change it with PATCH, or choose another name. " +
				"A program that only wants the topic to be there sends PUT with the settings that it wants: that answers 200 when all is as wanted already.",
			RetrySafe: safeUnchanged,
			Example:   about("/topics", `topic "orders" exists already`),
		},
		{
			Code: "topic-deleting", Status: 409, Title: "The topic is being deleted", Retryable: true, Outcome: NotApplied,
			Meaning:   "Somebody has asked for the topic to be deleted, and the deletion is not finished.",
			Do:        "Wait a moment and send the same again. When the deletion is done, the topic can be created anew; it then starts empty, with offsets from 0.",
			RetrySafe: safeLater,
			Example:   about("/topics", `topic "orders" is being deleted`),
		},
	}
}

// offsetProblems are about what is kept at an offset.
func offsetProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "records-trimmed", Status: 410, Title: "The records are no longer kept", Outcome: NotApplied,
			Meaning: "The partition once had records at this offset, and has none below `earliestOffset` any more: they went by the topic's retention, or somebody trimmed them.",
			Do: "Read on from `earliestOffset` if what lies between may be missed; `offset=earliest` always begins there. " +
				"If nothing may be missed, keep records for longer (`retentionMs`, `retentionBytes`) than your slowest reader may lag.",
			RetrySafe: safeUnchanged,
			Example:   Problem{Instance: atRead, Detail: "offset 0 is below the first kept one, 3", EarliestOffset: new(int64(3))},
		},
		{
			Code: "offset-out-of-range", Status: 416, Title: "The offset is above the end of the partition", Outcome: NotApplied,
			Meaning: "The partition ends below this offset. `nextOffset` is its end: the offset that the next record will get. " +
				"To read exactly there is allowed, and gives nothing yet.",
			Do: "Read from `nextOffset`, with `waitMs` to wait for what comes. " +
				"A reader that had a place above the end was following another topic: one that has been deleted and created again starts at 0, and so does a server that was set back to an older copy of its data. Begin again from `earliest`.",
			RetrySafe: safeUnchanged,
			Example:   Problem{Instance: atRead, Detail: "offset 9 is above the high watermark 3", NextOffset: new(int64(3))},
		},
		{
			Code: "unknown-snapshot", Status: 404, Title: "There is no such snapshot", Outcome: NotApplied,
			Meaning:   "The partition has no snapshot of producer state at this offset. Old ones are removed as new ones are taken.",
			Do:        "`GET /snapshots` lists those that there are; `POST /snapshots` takes new ones.",
			RetrySafe: safeUnchanged,
			Example:   about("/snapshots/orders/0/9", `topic "orders" partition 0 has no snapshot at offset 9`),
		},
		{
			Code: "records-damaged", Status: 500, Title: "A stored batch fails its checksum", Outcome: NotApplied,
			Meaning: "The batch at this offset is not what was stored there: it does not match the CRC32C that was computed when it was written. The disk or something else has changed the file. " +
				"Its records are not given out, since they could be wrong.",
			Do: "Tell whoever runs the server: `oncelog check` on the stopped server, or on a copy, finds all that is damaged, and a backup brings it back. " +
				"Records after the damaged batch can still be read by their offsets.",
			RetrySafe: safeUnchanged,
			Example:   about(atRead, `topic "orders" partition 0: the batch at offset 17 does not match its checksum`),
		},
	}
}

// sequenceProblems are about the sequences of a batch.
func sequenceProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "out-of-order-sequence", Status: 409, Title: "The batch is ahead of its predecessors", Retryable: true, Outcome: NotApplied,
			Meaning: "Something before this batch has not arrived: the partition waits for `expectedSeq`, and the batch begins at `receivedSeq`, which is `gap` further on. " +
				"Had it been stored, there would be a hole, and what is missing could never be stored in its place.\n" +
				"A producer that is new to a partition begins at 0, and so does each new epoch. `lastSeq` and `currentEpoch` are null when the partition does not know the producer.",
			Do: "Send what is missing, from `expectedSeq` on, and then this batch again.\n" +
				"- With several requests under way, one has overtaken another: wait for the answers to those before it. The server has waited for them too, for as long as `--reorder-wait` says.\n" +
				"- If nothing comes any more, a batch was given up or was never sent. Its records are not stored.\n" +
				"- Sequences count in each partition separately.",
			RetrySafe: "Safe: nothing was changed. The same request succeeds once what comes before it is stored.",
			Example: Problem{
				Instance: atAppend, Detail: "base sequence 5 is 2 ahead of the expected 3; send what is missing first",
				ExpectedSeq: new(int64(3)), ReceivedSeq: new(int64(5)), LastSeq: NullOr(new(int64(2))), CurrentEpoch: NullOr(new(int64(0))), Gap: new(int64(2)),
			},
		},
		{
			Code: "sequence-reused", Status: 422, Title: "The sequence was used for another payload", Outcome: NotApplied,
			Meaning: "A batch with exactly these sequences is stored at `originalOffset`, and its keys, values, headers or timestamps are not those of this batch. " +
				"Had it been taken for a retry, this one would have been lost without a word.",
			Do: "Find out why one sequence has been given to two batches. What it usually is:\n" +
				"- The batch was built anew for the retry, with a new timestamp for instance. Keep the bytes of the first send, and send those.\n" +
				"- Two processes use the same `pid`. Each needs one of its own.\n" +
				"- A process has started again and counts from 0 under its old id. Let it take a new id, or go on with a higher epoch.\n" +
				"If this batch is new, send it under new sequences.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "sequences 0 to 2 are stored at offset 0 with another payload; never use a sequence twice",
				OriginalOffset: new(int64(0)),
			},
		},
		{
			Code: "sequence-overlap", Status: 409, Title: "The batch overlaps stored ones", Outcome: NotApplied,
			Meaning: "Some of the sequences of this batch are stored already, but not as this batch: it was cut up, joined with another, or shifted since it was first sent. " +
				"`receivedSeq` is where the batch begins, `expectedSeq` the next sequence that is new.",
			Do: "Send a batch again only as it was sent the first time: the same records under the same `baseSeq`. " +
				"If that is lost, drop the records below `expectedSeq`, which are stored, and go on with the others from there.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "sequences 2 to 4 cover stored ones without being a stored batch; the next new one is 3",
				ExpectedSeq: new(int64(3)), ReceivedSeq: new(int64(2)),
			},
		},
	}
}

// producerProblems are about a producer as a whole.
func producerProblems() []ProblemType {
	return []ProblemType{
		{
			Code: "producer-fenced", Status: 409, Title: "A newer epoch has replaced this one", Outcome: NotApplied,
			Meaning: "The partition has had a batch of this producer with a higher epoch, `currentEpoch`. Another instance has taken over, and this sender is the one that was replaced.",
			Do: "Stop, if another instance is at work under this `pid`. " +
				"If you are the one that should go on, use an epoch above `currentEpoch` and begin at sequence 0; that fences off the other.",
			RetrySafe: safeUnchanged,
			Example:   Problem{Instance: atAppend, Detail: "epoch 0 has been replaced by epoch 1", CurrentEpoch: NullOr(new(int64(1)))},
		},
		{
			Code: "producer-expired", Status: 409, Title: "The producer's state has expired", Outcome: NotApplied,
			Meaning: "The partition has let go of what it knew of this producer: it had sent nothing for longer than the topic's `producerExpiryMs`, or it had to make room for others (`maxProducers`), or somebody expired it. " +
				"That was at `expiredAt`. All that is left is how far it had come: epoch `lastEpoch`, up to sequence `lastSeq`. Everything up to there is stored.",
			Do: "Compare your batch with `lastSeq`:\n" +
				"- If it ends at or below `lastSeq`, and was sent with epoch `lastEpoch`, it is stored. Go on with the next one.\n" +
				"- If it begins above, it is not stored. Send it now.\n" +
				"Whatever you send next needs an epoch above `lastEpoch`, and `baseSeq` 0: that is what `\"action\": \"bump-epoch\"` means.",
			RetrySafe: safeUnchanged,
			Example: Problem{
				Instance: atAppend, Detail: "the producer's state expired after sequence 2 of epoch 0; go on with a higher epoch and sequence 0",
				ExpiredAt: new("2026-01-09T03:04:05.678Z"), LastSeq: NullOr(new(int64(2))), LastEpoch: new(int64(0)), Action: new("bump-epoch"),
			},
		},
		{
			Code: "unknown-producer-id", Status: 404, Title: "The producer id is not known", Outcome: NotApplied,
			Meaning: "To an append: this server has never issued the id. Perhaps it comes from another server, or the server was set back to an older copy of its data.\n" +
				"To a look at a partition's producer: the id may well have been issued, but the producer has no state in this partition. If it had and that has expired, `expiredAt`, `lastEpoch` and `lastSeq` say what is left of it.",
			Do:        "Take an id with `POST /producers`, and begin with epoch 0 and sequence 0. Never make one up.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, "producer id 99 was never issued; POST /producers issues one"),
		},
		{
			Code: "idempotence-required", Status: 400, Title: "The topic takes idempotent appends only", Outcome: NotApplied,
			Meaning: "The topic has the setting `requireIdempotence`, and the append came without `pid`, `epoch` and `baseSeq`. A retry of it could store it twice.",
			Do: "Take a producer id with `POST /producers`, number your records from 0, and send `pid`, `epoch` and `baseSeq` with each batch.\n" +
				"If you did send them in a JSON body, look at the `Content-Type`: without `-H 'Content-Type: application/json'` the whole body is the value of one record.",
			RetrySafe: safeUnchanged,
			Example:   about(atAppend, `topic "orders" takes only appends with pid, epoch and baseSeq`),
		},
		{
			Code: "producers-exhausted", Status: 503, Title: "No producer id is left", Outcome: NotApplied,
			Meaning:   "All 2^53 producer ids have been issued. Ids are never issued twice.",
			Do:        "Use the ids that you have; they stay valid. A program that takes a new id for every batch should keep one.",
			RetrySafe: safeUnchanged,
			Example:   about("/producers", "all producer ids have been issued"),
		},
	}
}
