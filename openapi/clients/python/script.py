"""The script that every generated client runs, here with the package openapi_client that
openapi-generator makes."""

import datetime
import sys

import openapi_client
from openapi_client import AppendRecord, AppendRequest, Header, Outcome, ProblemCode


def problem_of(error: openapi_client.ApiException) -> openapi_client.Problem:
    assert isinstance(error.data, openapi_client.Problem), error
    return error.data


def main(url: str, topic: str, token: str) -> None:
    with openapi_client.ApiClient(openapi_client.Configuration(host=url)) as stranger:
        try:
            openapi_client.TopicsApi(stranger).create_topic(openapi_client.CreateTopicRequest(name=topic))
            raise AssertionError("a stranger has created a topic")
        except openapi_client.exceptions.UnauthorizedException as error:
            assert problem_of(error).code is ProblemCode.UNAUTHENTICATED
    with openapi_client.ApiClient(openapi_client.Configuration(host=url, access_token=token)) as client:
        run(client, topic)
    print("python: all steps done")


def run(client: openapi_client.ApiClient, topic: str) -> None:
    topics = openapi_client.TopicsApi(client)
    producers = openapi_client.ProducersApi(client)
    records = openapi_client.RecordsApi(client)
    snapshots = openapi_client.SnapshotsApi(client)

    created = topics.create_topic(openapi_client.CreateTopicRequest(name=topic, partitions=1))
    assert created.name == topic

    producer = producers.allocate_producer()

    batch = AppendRequest(
        pid=producer.pid,
        epoch=producer.epoch,
        base_seq=0,
        records=[
            AppendRecord(key="a", value={"n": 1}, headers=[Header(name="trace", value="1")]),
            AppendRecord(value_text="two", timestamp=datetime.datetime.now(datetime.timezone.utc)),
            AppendRecord(key="a", value=None),
        ],
    )
    first = records.append_batch(topic, 0, batch, prefer="wait=0")
    assert not first.duplicate
    assert (first.base_offset, first.last_offset, first.next_seq) == (0, 2, 3)

    again = records.append_batch(topic, 0, batch, prefer="wait=0")
    assert again.duplicate
    again.duplicate = False
    assert again == first, again

    batch.base_seq = 5
    try:
        records.append_batch(topic, 0, batch, prefer="wait=0")
        raise AssertionError("a batch after a gap was stored")
    except openapi_client.exceptions.ConflictException as error:
        gap = problem_of(error)
    assert gap.code is ProblemCode.OUT_OF_ORDER_SEQUENCE
    assert gap.outcome is Outcome.NOT_APPLIED
    assert gap.retryable and gap.status == 409
    assert gap.expected_seq == 3

    read = records.read_records(topic, 0, offset="earliest", limit=10)
    assert read.high_watermark == 3
    assert [r.value or r.value_text for r in read.records] == [{"n": 1}, "two", None]
    assert read.records[0].headers == [Header(name="trace", value="1")]

    page = producers.list_partition_producers(topic, 0)
    assert [(p.pid, p.last_seq) for p in page.items] == [(producer.pid, 2)]
    counters = page.items[0].counters
    assert (counters.accepted, counters.duplicate, counters.out_of_order) == (1, 1, 1)
    assert producer.pid in [p.pid for p in producers.list_producers().items]

    taken = snapshots.take_snapshots(openapi_client.SnapshotRequest(topic=topic, partition=0))
    snapshot = taken.items[0]
    assert snapshot.reason is openapi_client.SnapshotReason.REQUEST
    verified = snapshots.verify_snapshot(topic, 0, snapshot.offset)
    assert verified.match and verified.differences == []

    topics.delete_topic(topic)
    try:
        topics.describe_topic(topic)
        raise AssertionError("a deleted topic is there")
    except openapi_client.exceptions.NotFoundException as error:
        assert problem_of(error).code is ProblemCode.UNKNOWN_TOPIC


if __name__ == "__main__":
    main(*sys.argv[1:])
