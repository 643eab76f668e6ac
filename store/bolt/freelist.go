package bolt

import "context"

// bbolt writes the list of free pages, 8 bytes for each, with every commit. That is
// nothing while few are free, but the deletion of 10 GiB would make each commit write 20
// MB until the space is used again. So a long list is left out of the commits, and
// written when the store falls quiet or closes. Only a crash in between costs something:
// the next start has to find the free pages by reading the tree.

// listedPages is how many free pages a commit writes the list of: 256 KiB of it.
const listedPages = 32 << 10

// freelist says what becomes of the list. It belongs to the committer.
type freelist struct {
	longest int64 // list that a commit writes, in pages
	missing bool  // the list is not on disk
	seen    int64 // commits when the store was last looked at
}

// plan decides whether the next commit writes the list.
func (s *Store) plan(write bool) {
	s.freelist.missing = !write && s.freePages() > s.freelist.longest
	s.db.NoFreelistSync = s.freelist.missing
}

// saveFreelist writes the list if it is missing and nothing has been committed since the
// last call.
func (s *Store) saveFreelist(ctx context.Context) error {
	return s.control(ctx, func() error {
		quiet := s.stats.commits.Load() == s.freelist.seen
		s.freelist.seen = s.stats.commits.Load()
		if !quiet || s.failed() {
			return nil
		}
		if s.tail.rows > 0 && s.writable() == nil {
			if err := s.update(nothing); err != nil {
				return err
			}
		}
		if !s.freelist.missing {
			return nil
		}
		return s.writeFreelist()
	})
}

// writeFreelist commits nothing but the list.
func (s *Store) writeFreelist() error {
	return s.commit(nothing, true)
}
