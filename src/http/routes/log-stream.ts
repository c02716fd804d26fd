import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { LogStreams } from '../../domain/log/stream.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { createEventStream } from '../event-stream.ts'
import { consoleErrors, errorBody, eventStream, object } from '../schemas.ts'
import { logTypeQuery, presentLogEntry, readLogTypes } from './logs.ts'

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Proxies that gather an answer before they pass it on would hold every entry back.
  'x-accel-buffering': 'no',
}

/** A stalled connection would hold up the end of the server: nothing can be written to it that would close it. */
const stalledSecondsMax = 1

export function logStreamRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  logStreams: LogStreams
  clock: Clock
  /** In place of ten seconds. */
  heartbeatMs?: number
  onBug(error: unknown, traceId: string): void
}) {
  const { clock, logStreams, heartbeatMs, onBug } = services

  return new Elysia({ prefix: '/v1/logs' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/stream',
    async ({ developer, query, headers, request, server, set }) => {
      // The framework serves HEAD with what GET answers, and would read to the end of it.
      if (request.method === 'HEAD') return new Response(null, { headers: streamHeaders })
      const { appId, type } = query
      // A browser that comes back repeats its URL, so that the header is the newer of the two.
      const after = headers['last-event-id'] || query.after
      const filter = { appId, types: readLogTypes(type), after }
      const stream = await logStreams.open(developer, filter, () =>
        server?.timeout(request, stalledSecondsMax),
      )
      const traceId = String(set.headers['x-request-id'])
      const body = createEventStream(stream, {
        clock,
        heartbeatMs,
        present: presentLogEntry,
        onError: (error) => onBug(error, traceId),
      })
      return new Response(body, { headers: streamHeaders })
    },
    {
      query: object({
        appId: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
        type: logTypeQuery,
        after: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 64,
            description:
              'Id of an entry: the stream starts after it. `evt_` and 26 zeros starts at the beginning of the log. If omitted, only new entries are sent.',
          }),
        ),
      }),
      // Open: a call has headers of every kind.
      headers: Type.Object({
        'last-event-id': Type.Optional(
          Type.String({
            maxLength: 64,
            description:
              'The last `id` received; takes precedence over `after`. Browsers send it when they reconnect.',
          }),
        ),
      }),
      response: {
        200: eventStream(
          'Endless stream of server-sent events, each with an entry as `data` and its id as `id`. An `id` without `data` is a position to resume from. `event: end` gives the reason why the server ends the stream.',
        ),
        ...consoleErrors,
        429: errorBody,
      },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'streamLogs',
        summary: 'Stream events as they happen, resumable without gaps or duplicates',
      },
    },
  )
}
