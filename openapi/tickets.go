package openapi

// TicketRequest says what a ticket is to be for.
type TicketRequest struct {
	// The path of an event stream, escaped as in a URL and without a query.
	Path string `json:"path" validate:"required,max=1024" maxLength:"1024" example:"/events"`
} // @name TicketRequest

// Ticket lets one GET in.
type Ticket struct {
	// The value of the query parameter ticket.
	Ticket string `json:"ticket" validate:"required" example:"K6MIGWHTQJPLCAOVNQ4XEV4GJ2"`
	// The time after which the ticket is good for nothing.
	ExpiresAt string `json:"expiresAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:35.678Z"`
} // @name Ticket
