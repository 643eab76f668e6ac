package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/oncelog/oncelog/openapi"
)

//go:embed templates
var templates embed.FS

// problemPages renders the page about all problem codes, and the page about each, by
// their paths.
func problemPages() (map[string]*file, error) {
	t, err := template.ParseFS(templates, "templates/problems.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*file{}
	render := func(path, name string, data any) error {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, name, data); err != nil {
			return fmt.Errorf("page %s: %w", path, err)
		}
		pages[path] = newFile(mediaHTML, b.Bytes())
		return nil
	}
	index := problemIndex{}
	for i, g := range openapi.ProblemGroups() {
		part := problemGroup{ID: "group-" + strconv.Itoa(i+1), Name: g.Name}
		for j := range g.Types {
			part.Types = append(part.Types, &g.Types[j])
		}
		for _, p := range part.Types {
			page, err := newProblemPage(p, part)
			if err != nil {
				return nil, err
			}
			if err := render(p.Path(), "problem", page); err != nil {
				return nil, err
			}
			index.Count++
		}
		index.Groups = append(index.Groups, part)
	}
	return pages, render("/problems", "index", index)
}

// problemIndex is what the page about all codes shows.
type problemIndex struct {
	Count  int
	Groups []problemGroup
}

type problemGroup struct {
	ID, Name string
	Types    []*openapi.ProblemType
}

// problemPage is what the page about one code shows.
type problemPage struct {
	Code, Title            string
	Status                 int
	Retryable              bool
	Outcome                openapi.Outcome
	Meaning, Do, RetrySafe []paragraph
	Sample                 string
	Group                  string
	Others                 []*openapi.ProblemType
}

func newProblemPage(p *openapi.ProblemType, group problemGroup) (*problemPage, error) {
	sample, err := sampleAnswer(p)
	if err != nil {
		return nil, err
	}
	page := &problemPage{
		Code: p.Code, Title: p.Title, Status: p.Status, Retryable: p.Retryable, Outcome: p.Outcome,
		Meaning: paragraphs(p.Meaning), Do: paragraphs(p.Do), RetrySafe: paragraphs(p.RetrySafe),
		Sample: sample, Group: group.Name,
	}
	for _, o := range group.Types {
		if o != p {
			page.Others = append(page.Others, o)
		}
	}
	return page, nil
}

// sampleAnswer is an answer with the problem as curl -i would show it.
func sampleAnswer(p *openapi.ProblemType) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\nContent-Type: %s\n", p.Status, http.StatusText(p.Status), openapi.ProblemContentType)
	if p.RetryAfter > 0 {
		fmt.Fprintf(&b, "Retry-After: %d\n", p.RetryAfter)
	}
	b.WriteByte('\n')
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(p.Sample())
	return strings.TrimSuffix(b.String(), "\n"), err
}

// paragraph is a line of a text, or the items of a list in it.
type paragraph struct {
	Line  []span
	Items [][]span
}

// span is a stretch of text, or of code.
type span struct {
	Text string
	Code bool
}

// paragraphs reads the markup of the texts of [openapi.ProblemType].
func paragraphs(text string) []paragraph {
	var all []paragraph
	for line := range strings.SplitSeq(text, "\n") {
		item, listed := strings.CutPrefix(line, "- ")
		switch n := len(all) - 1; {
		case !listed:
			all = append(all, paragraph{Line: spans(line)})
		case n >= 0 && all[n].Items != nil:
			all[n].Items = append(all[n].Items, spans(item))
		default:
			all = append(all, paragraph{Items: [][]span{spans(item)}})
		}
	}
	return all
}

// spans takes a line apart at its backquotes.
func spans(line string) []span {
	var all []span
	for i, text := range strings.Split(line, "`") {
		if text != "" {
			all = append(all, span{Text: text, Code: i%2 == 1})
		}
	}
	return all
}
