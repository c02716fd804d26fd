/** Characters in which a body ends that has a trace context. */
const endMax = 200

/**
 * Writes the body of a webhook. The W3C trace context of the call that caused the event comes last, where
 * `readTraceContext` finds it without parsing the body.
 */
export const writeWebhookBody = (event: object, traceparent: string | undefined): string =>
  JSON.stringify(traceparent === undefined ? event : { ...event, traceparent })

/** Reads the trace context of a body that `writeWebhookBody` wrote, for the header of the request. */
export const readTraceContext = (body: string): string | undefined =>
  /,"traceparent":"([0-9a-f][!-~]{1,127})"\}$/.exec(body.slice(-endMax))?.[1]
