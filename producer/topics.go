package producer

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/oncelog/oncelog/openapi"
)

// Page asks for one page of a list. The zero value is the first page, of the
// server's default size.
type Page struct {
	Limit int    // 0: the server's default, 100; at most 1000
	Token string // NextPageToken of the page before
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Token != "" {
		q.Set("pageToken", p.Token)
	}
	return q
}

// Topics lists topics by name.
func (c *Client) Topics(ctx context.Context, p Page) (openapi.TopicList, error) {
	return get[openapi.TopicList](ctx, c, path("topics"), p.query())
}

// CreateTopic creates a topic. It fails with CodeTopicExists when the name is taken;
// PutTopic does not mind.
func (c *Client) CreateTopic(ctx context.Context, t openapi.CreateTopicRequest) (openapi.Topic, error) {
	out, _, err := send[openapi.Topic](ctx, c, http.MethodPost, path("topics"), t)
	return out, err
}

// PutTopic creates a topic, or confirms that it is there with the same configuration
// (created is false then). It fails with CodeTopicExists when the configuration
// differs.
func (c *Client) PutTopic(ctx context.Context, name string, t openapi.PutTopicRequest) (topic openapi.Topic, created bool, err error) {
	out, a, err := send[openapi.Topic](ctx, c, http.MethodPut, path("topics", name), t)
	return out, a.status == http.StatusCreated, err
}

// Topic describes a topic.
func (c *Client) Topic(ctx context.Context, name string) (openapi.Topic, error) {
	return get[openapi.Topic](ctx, c, path("topics", name), nil)
}

// UpdateTopic changes the members of a topic that are set in change and leaves the
// others. Partitions may only grow. With a topic in seen, the change depends on the
// topic being still what it was when it was described: CodeVersionMismatch.
func (c *Client) UpdateTopic(ctx context.Context, name string, change openapi.PutTopicRequest, seen *openapi.Topic) (openapi.Topic, error) {
	var out openapi.Topic
	r := call{method: http.MethodPatch, path: path("topics", name), media: "application/merge-patch+json"}
	if seen != nil {
		r.header = http.Header{"If-Match": {`"` + seen.ID + "-" + strconv.FormatInt(seen.Version, 10) + `"`}}
	}
	b, err := json.Marshal(change)
	if err != nil {
		return out, unsent(r, "", err)
	}
	r.body = b
	_, err = c.do(ctx, r, &out)
	return out, err
}

// DeleteTopic deletes a topic with all its records and producer state.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path("topics", name)}, nil)
	return err
}
