import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ProducersApi;
import org.openapitools.client.api.RecordsApi;
import org.openapitools.client.api.SnapshotsApi;
import org.openapitools.client.api.TopicsApi;
import org.openapitools.client.model.*;

/** The script that every generated client runs, here with what openapi-generator makes. */
public final class Script {
    private final String topic;
    private final TopicsApi topics;
    private final ProducersApi producers;
    private final RecordsApi records;
    private final SnapshotsApi snapshots;

    private Script(ApiClient client, String topic) {
        this.topic = topic;
        topics = new TopicsApi(client);
        producers = new ProducersApi(client);
        records = new RecordsApi(client);
        snapshots = new SnapshotsApi(client);
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient().setBasePath(args[0]);
        Script script = new Script(client, args[1]);
        Problem stranger = problem(() -> script.topics.createTopic(new CreateTopicRequest().name(args[1])));
        equal("code", stranger.getCode(), ProblemCode.UNAUTHENTICATED);
        client.setBearerToken(args[2]);
        script.run();
        System.out.println("java: all steps done");
    }

    private static void equal(String what, Object got, Object want) {
        if (!want.equals(got)) {
            throw new AssertionError(what + " is " + got + ", not " + want);
        }
    }

    private interface Call {
        void run() throws ApiException;
    }

    /** The problem with which a call is refused. */
    private static Problem problem(Call call) throws Exception {
        try {
            call.run();
        } catch (ApiException e) {
            return Problem.fromJson(e.getResponseBody());
        }
        throw new AssertionError("a problem was expected");
    }

    private AppendResponse append(AppendRequest batch) throws ApiException {
        return records.appendBatch(topic, 0, batch, null, null, null, null, null, null, null, "wait=0");
    }

    private void run() throws Exception {
        Topic created = topics.createTopic(new CreateTopicRequest().name(topic).partitions(1));
        equal("name", created.getName(), topic);

        ProducerID producer = producers.allocateProducer();

        AppendRequest batch = new AppendRequest()
                .pid(producer.getPid()).epoch(producer.getEpoch()).baseSeq(0L)
                .addRecordsItem(new AppendRecord().key("a").value(Map.of("n", 1))
                        .addHeadersItem(new Header().name("trace").value("1")))
                .addRecordsItem(new AppendRecord().valueText("two").timestamp(OffsetDateTime.now()));
        AppendResponse first = append(batch);
        equal("duplicate", first.getDuplicate(), false);
        equal("baseOffset", first.getBaseOffset(), 0L);
        equal("lastOffset", first.getLastOffset(), 1L);
        equal("nextSeq", first.getNextSeq(), 2L);

        equal("the answer to the duplicate", append(batch), first.duplicate(true));

        Problem gap = problem(() -> append(batch.baseSeq(5L)));
        equal("code", gap.getCode(), ProblemCode.OUT_OF_ORDER_SEQUENCE);
        equal("outcome", gap.getOutcome(), Outcome.NOT_APPLIED);
        equal("retryable", gap.getRetryable(), true);
        equal("expectedSeq", gap.getExpectedSeq(), 2L);

        RecordList read = records.readRecords(topic, 0, "earliest", 10, null, null, null, null, null);
        equal("highWatermark", read.getHighWatermark(), 2L);
        equal("value", read.getRecords().get(0).getValue(), Map.of("n", 1.0));
        equal("headers", read.getRecords().get(0).getHeaders(), List.of(new Header().name("trace").value("1")));
        equal("valueText", read.getRecords().get(1).getValueText(), "two");

        List<PartitionProducer> page = producers.listPartitionProducers(topic, 0, null, null).getItems();
        equal("pid", page.get(0).getPid(), producer.getPid());
        equal("lastSeq", page.get(0).getLastSeq(), 1L);
        ProducerCounters counters = page.get(0).getCounters();
        equal("counters", List.of(counters.getAccepted(), counters.getDuplicate(), counters.getOutOfOrder()), List.of(1L, 1L, 1L));

        Snapshot snapshot = snapshots.takeSnapshots(new SnapshotRequest().topic(topic).partition(0)).getItems().get(0);
        equal("reason", snapshot.getReason(), SnapshotReason.REQUEST);
        SnapshotVerification verified = snapshots.verifySnapshot(topic, 0, snapshot.getOffset());
        equal("match", verified.getMatch(), true);
        equal("differences", verified.getDifferences(), List.of());

        topics.deleteTopic(topic, null);
        equal("code", problem(() -> topics.describeTopic(topic, null)).getCode(), ProblemCode.UNKNOWN_TOPIC);
    }
}
