import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { isoDate, type AnalyticsService } from '../../domain/log/analytics.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { consoleErrors, data, object, oneOf } from '../schemas.ts'

const ranges = { '7d': 7, '30d': 30, '90d': 90 } as const
const rangeNames = ['7d', '30d', '90d'] as const

/** Routes for totals and daily counts. */
export function analyticsRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  analytics: AnalyticsService
}) {
  const { analytics } = services
  const detail = { tags: ['Analytics'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/analytics' })
    .use(requireDeveloper(services.authenticateDeveloper))
    .get('/summary', async ({ developer }) => ({ data: await analytics.summary(developer) }), {
      response: {
        200: data(
          object({
            applications: Type.Integer(),
            otpRequests: Type.Integer(),
            otpVerified: Type.Integer(),
            successRate: Type.Integer({
              description: 'Percentage of otpRequests that were verified, rounded; 0 if there are none.',
            }),
            activeUsers: Type.Integer({
              description: 'Phone identities verified in the last 30 UTC days, including today.',
            }),
          }),
        ),
        ...consoleErrors,
      },
      detail: { ...detail, operationId: 'getSummary', summary: 'Get the totals' },
    })
    .get(
      '/timeseries',
      async ({ developer, query }) => {
        const days = await analytics.timeSeries(developer, ranges[query.range ?? '30d'])
        return {
          data: days.map(({ day, sent, verified, failed }) => ({
            date: isoDate(day),
            sent,
            verified,
            failed,
          })),
        }
      },
      {
        query: object({
          range: Type.Optional({
            ...oneOf(rangeNames),
            documentedAs: {
              type: 'string',
              enum: rangeNames,
              default: '30d',
              description: 'UTC days up to and including today.',
            },
          }),
        }),
        response: {
          200: data(
            Type.Array(
              object({
                date: Type.String({ description: 'UTC day, such as 2026-11-20.' }),
                sent: Type.Integer(),
                verified: Type.Integer(),
                failed: Type.Integer(),
              }),
            ),
          ),
          ...consoleErrors,
        },
        detail: { ...detail, operationId: 'getTimeSeries', summary: 'Get daily counts, oldest first' },
      },
    )
}
