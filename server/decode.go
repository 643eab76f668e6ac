package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

const mediaJSON = "application/json"

// newValidate makes the validator of the shapes in package openapi. It speaks of
// members by their names in JSON.
func newValidate() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	err := v.RegisterValidation("topicname", func(f validator.FieldLevel) bool {
		return store.ValidTopicName(f.Field().String())
	})
	if err != nil {
		panic(err) // only for an empty tag name
	}
	return v
}

// bodyRules say what a JSON body may be.
type bodyRules struct {
	types    []string // media types besides application/json
	required []string // members that must be there
	optional bool     // an empty body stands for {}
	nulls    bool     // null is a value: that of a merge patch
}

// decode reads the JSON body of r into dst, a pointer to a struct, strictly. It
// returns the names of the members that are null.
func (s *Server) decode(r *http.Request, dst any, rules bodyRules) (nulls []string, err error) {
	body, err := s.bodies.read(r, nil)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 && rules.optional {
		return nil, nil
	}
	if err := checkMediaType(r, rules.types); err != nil {
		return nil, err
	}
	if nulls, err = checkMembers(body, rules); err != nil {
		return nil, err
	}
	err = json.Unmarshal(body, dst, json.RejectUnknownMembers(true), json.WithUnmarshalers(strictIntegers()))
	if err != nil {
		return nil, jsonProblem("", err)
	}
	if err := s.validate.StructCtx(r.Context(), dst); err != nil {
		return nil, validationProblem(err)
	}
	return nulls, nil
}

// checkMediaType fails unless the body is JSON or of one of the types in others.
func checkMediaType(r *http.Request, others []string) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && (media == mediaJSON || slices.Contains(others, media)) {
		return nil
	}
	p := &problem{code: codeUnsupportedMediaType, detail: "the body must be application/json, and Content-Type must say so"}
	if len(others) > 0 {
		p.detail = "the body must be application/json or " + strings.Join(others, " or ") + ", and Content-Type must say so"
	}
	if r.Method == http.MethodPatch {
		p.header = [2]string{"Accept-Patch", strings.Join(append([]string{mediaJSON}, others...), ", ")}
	}
	return p
}

// checkMembers walks the top of a body: an object, nothing after it, every required
// member there, nulls only where they mean something. Decoding into a struct cannot
// tell absent from null from zero.
func checkMembers(body []byte, rules bodyRules) (nulls []string, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return nil, jsonProblem("", err)
		}
		return nil, malformed("", "the body must be a JSON object")
	}
	_, _ = dec.ReadToken() // just peeked at
	var names []string
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, jsonProblem("", err)
		}
		names = append(names, name.String())
		value, err := dec.ReadValue()
		if err != nil {
			return nil, jsonProblem("", err)
		}
		if value.Kind() != 'n' {
			continue
		}
		if !rules.nulls {
			return nil, malformed(string(dec.StackPointer()), "must not be null")
		}
		nulls = append(nulls, names[len(names)-1])
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, jsonProblem("", err)
	}
	if err := atEnd(dec); err != nil {
		return nil, err
	}
	for _, name := range rules.required {
		if !slices.Contains(names, name) {
			return nil, malformed("/"+name, "is missing")
		}
	}
	return nulls, nil
}

// atEnd fails when something follows the value that was read.
func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed("", "something follows the JSON value")
	}
	return nil
}

// strictIntegers reads integers as parseInteger does, −1 being allowed too: it is what
// "keep" is on the wire, and the validator knows where.
func strictIntegers() *json.Unmarshalers {
	read := func(dec *jsontext.Decoder) (int64, error) {
		v, err := dec.ReadValue()
		if err != nil {
			return 0, err
		}
		if n, ok := parseInteger(v); ok {
			return n, nil
		}
		if name := dec.StackPointer(); v.Kind() == '0' && v[0] == '-' && (name == "/retentionMs" || name == "/retentionBytes") {
			if n, ok := parseInteger(v[1:]); ok && n > 0 {
				return -n, nil // −1 keeps everything; the validator refuses the others
			}
		}
		return 0, &problem{code: codeMalformed, detail: "must be an integer from 0 to 9007199254740991"}
	}
	return json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *int64) (err error) {
			*v, err = read(dec)
			return err
		}),
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *int) error {
			n, err := read(dec)
			*v = int(n)
			return err
		}),
	)
}

// jsonProblem says what is wrong with a JSON text. The prefix leads from the body to
// the text.
func jsonProblem(prefix string, err error) *problem {
	var pointer jsontext.Pointer
	detail := err.Error()
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		pointer, detail = e.JSONPointer, "is not valid JSON: "+cause(e.Err)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		pointer, detail = e.JSONPointer, "has the wrong type: "+cause(e.Err)
		if e.Err == nil {
			detail = "has the wrong type"
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		detail = "is empty"
	case errors.Is(err, jsontext.ErrDuplicateName):
		detail = "is given more than once"
	case errors.Is(err, json.ErrUnknownName):
		detail = "is not a member that is known here"
	}
	if p, ok := errors.AsType[*problem](err); ok {
		detail = p.detail
	}
	return malformed(prefix+string(pointer), detail)
}

func cause(err error) string {
	if err == nil {
		return "it ends early or holds a wrong character"
	}
	return strings.TrimPrefix(err.Error(), "jsontext: ")
}

// validationProblem turns what the validator found into pointers. All bodies that it
// sees are flat.
func validationProblem(err error) error {
	var fields validator.ValidationErrors
	if !errors.As(err, &fields) {
		return err
	}
	errs := make([]openapi.MemberError, 0, len(fields))
	for _, f := range fields {
		errs = append(errs, openapi.MemberError{Pointer: "/" + f.Field(), Detail: ruleText(f)})
	}
	return memberProblem(string(store.CodeInvalidArgument), errs)
}

func ruleText(f validator.FieldError) string {
	switch f.Tag() {
	case "min":
		return "must be at least " + f.Param()
	case "max":
		return "must be at most " + f.Param()
	case "topicname", "required":
		return topicNameRule
	}
	return "breaks the rule " + f.Tag()
}

// topicNameRule says what a topic may be called.
const topicNameRule = "must be 1 to 249 of A-Z a-z 0-9 . _ - and neither . nor .."
