// Package logs says in each line of the log which request it belongs to.
//
//	ctx = logs.WithRequest(ctx, "0197...")           // once for each request
//	log := slog.New(logs.NewHandler(handler))        // once for each program
//	log.InfoContext(ctx, "order placed")             // request_id=0197...
//
// What is promised:
//
//   - A line that is logged with the context of a request has its request_id.
//     One that is logged inside a trace also has trace_id and span_id, in the
//     form of the W3C.
//   - A line below the handler's level costs nothing.
package logs
