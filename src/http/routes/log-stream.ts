import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ApplicationService } from '../../domain/apps/applications.ts'
import type { LogStreams } from '../../domain/log/stream.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { invalidField, ServiceError } from '../../domain/model/errors.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { createEventStream } from '../event-stream.ts'
import { environmentQuery, eventStream, idQuery, object } from '../schemas.ts'
import { readTraceId } from '../client.ts'
import { logTypeQuery, presentLogEntry, readLogTypes } from './logs.ts'
import type { World } from '../../world/world.ts'

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Disables buffering in proxies such as nginx, which would delay every entry.
  'x-accel-buffering': 'no',
}

/** Describes the stream that GET opens: without this header, the framework says that it has no bytes (RFC 9110 §8.6). */
const headHeaders = { ...streamHeaders, 'transfer-encoding': 'chunked' }

/** Idle timeout of streams during shutdown: a stalled connection accepts no write that would close it. */
const stalledSecondsMax = 1

/** The position of an error about `after` was in the header. */
function nameLastEventId(error: unknown): unknown {
  const detail = error instanceof ServiceError ? error.details?.[0] : undefined
  return detail?.path === 'after' ? invalidField('header', 'last-event-id', detail.message) : error
}

/** Route that streams the event log as server-sent events. */
export function logStreamRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  applications: Pick<ApplicationService, 'requireFilter'>
  logStreams: LogStreams
  clock: Clock
  world: Pick<World, 'timers'>
  /** Interval of the heartbeat; 10 s by default. */
  heartbeatMs?: number
  onBug(error: unknown, traceId: string): void
}) {
  const { clock, logStreams, heartbeatMs, onBug } = services

  return new Elysia({ prefix: '/v1/logs' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/stream',
    async ({ developer, query, headers, request, server, set }) => {
      await services.applications.requireFilter(developer, query.appId)
      // The framework runs the GET handler for HEAD and would read the endless stream.
      if (request.method === 'HEAD') return new Response(null, { headers: headHeaders })
      const { appId, environment, type } = query
      // A browser that reconnects repeats the original URL, so the header is more recent than `after`.
      const lastEventId = headers['last-event-id'] || undefined
      const after = lastEventId ?? query.after
      const filter = { appId, environment, types: readLogTypes(type), after }
      const endIfStalled = () => server?.timeout(request, stalledSecondsMax)
      const stream = await logStreams.open(developer, filter, endIfStalled).catch((error: unknown) => {
        throw lastEventId === undefined ? error : nameLastEventId(error)
      })
      const traceId = readTraceId(request, set.headers)
      const body = createEventStream(stream, {
        clock,
        timers: services.world.timers,
        heartbeatMs,
        present: presentLogEntry,
        onError: (error) => onBug(error, traceId),
      })
      return new Response(body, { headers: streamHeaders })
    },
    {
      query: object({
        appId: idQuery('Only entries of this application.'),
        environment: environmentQuery,
        type: logTypeQuery,
        after: idQuery(
          'Id of an entry: the stream starts after it. `evt_` and 26 zeros starts at the beginning of the log. If omitted, only new entries are sent.',
        ),
      }),
      // Allows any other header.
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
      },
      detail: {
        tags: ['Logs'],
        security: [{ console: [] }],
        operationId: 'streamLogs',
        summary: 'Stream events as they happen, resumable without gaps or duplicates',
        description:
          'Server-sent events: each entry as it is written. A client that reconnects with `Last-Event-ID` misses nothing and gets nothing twice. A comment is sent every 10 seconds to keep the connection open.',
      },
    },
  )
}
