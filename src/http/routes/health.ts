import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Clock } from '../../domain/model/clock.ts'
import { formatTime } from '../pagination.ts'
import { data, object, timestamp } from '../schemas.ts'

/** Checks whether the server can serve requests. Resolves to `ready` or to the cause why it cannot. */
export type Readiness = () => Promise<'ready' | 'draining' | 'certificate' | 'database' | 'disk'>

/** Liveness and readiness probes. */
export function healthRoutes(services: { clock: Clock; readiness: Readiness }) {
  const tags = ['Health']
  return new Elysia({ prefix: '/v1/health' })
    .get(
      '/',
      () => ({
        data: { status: 'operational' as const, service: 'otpd', time: formatTime(services.clock.now()) },
      }),
      {
        response: {
          200: data(
            object(
              { status: Type.Literal('operational'), service: Type.String(), time: timestamp },
              'Health',
            ),
          ),
        },
        detail: {
          tags,
          security: [],
          operationId: 'getHealth',
          summary: 'Liveness probe',
          description: 'Responds as long as the process lives. Use it to decide on a restart.',
        },
      },
    )
    .get(
      '/ready',
      async ({ set }) => {
        const state = await services.readiness()
        if (state !== 'ready') {
          set.status = 503
          set.headers['retry-after'] = '1'
        }
        return {
          data: {
            status: state === 'ready' ? ('ready' as const) : ('not_ready' as const),
            cause: state === 'ready' ? null : state,
          },
        }
      },
      {
        response: {
          200: data(readinessSchema),
          503: data(readinessSchema),
        },
        detail: {
          tags,
          security: [],
          operationId: 'getReadiness',
          summary: 'Readiness probe',
          description:
            'Responds with 503 while the server shuts down, waits for its first certificate, upgrades its database, or cannot write to it, such as on a full disk. Use it to decide whether to send it requests.',
        },
      },
    )
}

const readinessSchema = object(
  {
    status: Type.Union([Type.Literal('ready'), Type.Literal('not_ready')]),
    cause: Type.Union([
      Type.Literal('draining'),
      Type.Literal('certificate'),
      Type.Literal('database'),
      Type.Literal('disk'),
      Type.Literal('upgrade'),
      Type.Null(),
    ]),
  },
  'Readiness',
)
