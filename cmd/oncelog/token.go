package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

// tokenCmd makes and revokes what servers let callers in by.
type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token and print it, or grant a client certificate its rights."`
	List   tokenListCmd   `cmd:"" help:"List tokens and certificates that have rights."`
	Revoke tokenRevokeCmd `cmd:"" help:"Take tokens and certificates their rights."`
}

// Help is what follows the description in the command's help.
func (tokenCmd) Help() string {
	return `The first token switches access control on. A running server notices changes within a second or two, or at once on SIGHUP; it needs no restart. Tokens are kept as SHA-256 hashes, so that a lost one cannot be shown again: make another and revoke the old one.

Scopes: produce appends and allocates producer ids; consume reads records and state, and without --topic-prefix also /metrics and /events; admin does that and all the rest, such as creating and deleting topics.

The name is the principal. Producer ids belong to it: nobody else can append with them, and a new token under the same name goes on with them.`
}

// accessStore is where tokens are kept.
type accessStore struct {
	Data       string `env:"ONCELOG_DATA" default:"./oncelog-data" placeholder:"DIR" help:"The server's data directory. Default ${default}."`
	AccessFile string `env:"ONCELOG_ACCESS_FILE" placeholder:"FILE" help:"File of tokens and other grants. Default: access.json in the data directory."`
}

func (s *accessStore) file() access.File {
	if s.AccessFile != "" {
		return access.File{Path: s.AccessFile}
	}
	return access.File{Path: filepath.Join(s.Data, access.FileName)}
}

// tokenCreateCmd makes a grant.
type tokenCreateCmd struct {
	accessStore
	output
	Scope       []string      `required:"" placeholder:"SCOPE" help:"produce, consume or admin, which has the others in it; several with commas."`
	TopicPrefix []string      `placeholder:"PREFIX" help:"What the names of topics must begin with, such as orders. with the dot. May be repeated. Default: all topics."`
	Expires     time.Duration `placeholder:"TIME" help:"How long it is good, such as 720h. Default: until it is revoked."`
	Name        string        `placeholder:"NAME" help:"The principal. Tokens of one name share producer ids and quotas. Default: one of its own."`
	Certificate string        `placeholder:"NAME" help:"Make no token, but grant the rights to client certificates of this name: the first URI, DNS name or email address among its alternative names, else its subject, such as CN=orders."`

	quotaFlags `prefix:"quota-"`
}

// Validate refuses what no token can have.
func (c *tokenCreateCmd) Validate() error {
	if _, err := access.ParseScopes(c.Scope); err != nil {
		return fmt.Errorf("--scope: %w", err)
	}
	if c.Expires < 0 {
		return errors.New("--expires is negative")
	}
	return nil
}

// created is what is printed of a new grant in JSON. The token is there this once.
type created struct {
	Token string `json:"token,omitempty"`
	grantRow
}

// Run makes the grant, and prints the token alone to standard output, so that
// TOKEN=$(oncelog token create …) works.
func (c *tokenCreateCmd) Run(std *stdio) error {
	now := time.Now()
	g := access.Grant{
		Name: c.Name, Certificate: c.Certificate, Scopes: c.Scope, TopicPrefixes: c.TopicPrefix, Quota: c.quota(),
	}
	if c.Expires > 0 {
		g.ExpiresAt = now.Add(c.Expires)
	}
	var token string
	var err error
	if c.Certificate == "" {
		token, g, err = c.file().CreateToken(g, now)
	} else {
		g, err = c.file().AllowCertificate(g, now)
	}
	if err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	if c.Output == outputJSON {
		return writeJSON(std.out, created{token, rowOf(&g)})
	}
	if token != "" {
		if _, err := fmt.Fprintln(std.out, token); err != nil {
			return err
		}
		fmt.Fprintln(std.err, "This is the only time that the token is shown.")
	}
	row := rowOf(&g)
	fmt.Fprintf(std.err, "id %s, name %q, scope %s, topics %s, expires %s\n",
		row.ID, row.Name, strings.Join(row.Scopes, ","), row.topics(), row.expires())
	return nil
}

// grantRow is a grant as JSON output has it.
type grantRow struct {
	ID            string       `json:"id"`
	Name          string       `json:"name"`
	Certificate   string       `json:"certificate,omitempty"`
	Scopes        []string     `json:"scopes"`
	TopicPrefixes []string     `json:"topicPrefixes,omitempty"`
	CreatedAt     time.Time    `json:"createdAt"`
	ExpiresAt     *time.Time   `json:"expiresAt,omitempty"`
	Quota         access.Quota `json:"quota,omitzero"`
}

func rowOf(g *access.Grant) grantRow {
	r := grantRow{
		ID: g.ID, Name: g.Name, Certificate: g.Certificate, Scopes: g.Scopes, TopicPrefixes: g.TopicPrefixes,
		CreatedAt: g.CreatedAt, Quota: g.Quota,
	}
	if !g.ExpiresAt.IsZero() {
		r.ExpiresAt = &g.ExpiresAt
	}
	return r
}

func (r grantRow) topics() string {
	if len(r.TopicPrefixes) == 0 {
		return "all"
	}
	return strings.Join(r.TopicPrefixes, "*,") + "*"
}

func (r grantRow) expires() string {
	if r.ExpiresAt == nil {
		return "never"
	}
	return r.ExpiresAt.Format(time.RFC3339)
}

func (r grantRow) kind() string {
	if r.Certificate != "" {
		return "certificate " + r.Certificate
	}
	return "token"
}

// tokenListCmd lists grants.
type tokenListCmd struct {
	accessStore
	output
}

// Run lists them, expired ones too. There is no secret in what it prints.
func (c *tokenListCmd) Run(std *stdio) error {
	grants, err := c.file().Grants()
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	rows := make([]grantRow, len(grants))
	for i := range grants {
		rows[i] = rowOf(&grants[i])
	}
	return writeItems(std, c.output, []column[grantRow]{
		{"ID", func(r grantRow) any { return r.ID }},
		{"NAME", func(r grantRow) any { return r.Name }},
		{"SCOPE", func(r grantRow) any { return strings.Join(r.Scopes, ",") }},
		{"TOPICS", func(r grantRow) any { return r.topics() }},
		{"EXPIRES", func(r grantRow) any { return r.expires() }},
		{"KIND", func(r grantRow) any { return r.kind() }},
	}, rows)
}

// tokenRevokeCmd removes grants.
type tokenRevokeCmd struct {
	accessStore
	ID   []string `arg:"" optional:"" help:"Ids of tokens, as oncelog token list shows them."`
	Name string   `placeholder:"NAME" help:"All tokens and certificates of this name."`
}

// Validate wants something to revoke.
func (c *tokenRevokeCmd) Validate() error {
	if len(c.ID) == 0 && c.Name == "" {
		return errors.New("give the id of a token, or --name")
	}
	return nil
}

// Run removes them. All that are named must be there.
func (c *tokenRevokeCmd) Run(std *stdio) error {
	grants, err := c.file().Grants()
	if err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	for _, id := range c.ID {
		if !slices.ContainsFunc(grants, func(g access.Grant) bool { return g.ID == id }) {
			return fmt.Errorf("there is no token with the id %s; none is revoked", id)
		}
	}
	revoked, err := c.file().Revoke(func(g access.Grant) bool {
		return slices.Contains(c.ID, g.ID) || c.Name != "" && g.Name == c.Name
	})
	if err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	for i := range revoked {
		fmt.Fprintf(std.err, "revoked %s, name %q\n", revoked[i].ID, revoked[i].Name)
	}
	return nil
}
