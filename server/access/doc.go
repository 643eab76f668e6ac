// Package access says who is calling and what they may do.
//
// A caller is known by a bearer token or by a TLS client certificate. What it may do is a
// [Grant]: scopes (produce, consume, admin), topic prefixes, an expiry and quotas. Grants
// are in one file, which `oncelog token` writes and [Control] reads again whenever it
// changes, so that a token is made and revoked without a restart.
//
// With neither a file of grants nor certificates the server is anonymous: everybody is
// the same [Caller], who may do everything. As soon as there are grants, it never
// becomes anonymous again before its next start, whatever happens to the file.
//
// A caller's name is its principal. Producer ids belong to a principal, not to a token, so
// that a new token under the same name goes on where the old one stopped.
//
// THREATS.md beside this file says what is defended, and by which test.
package access
