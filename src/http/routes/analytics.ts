import type { ApplicationService } from '../../domain/apps/applications.ts'
import type { CostService } from '../../domain/routing/costs.ts'
import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { isoDate, type AnalyticsService, type BreakdownItem } from '../../domain/log/analytics.ts'
import { breakdownDimensions } from '../../domain/model/breakdown.ts'
import { normalizeCountry } from '../../shared/spellings.ts'
import { requestChannels } from '../../shared/otp-values.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { presentPrice } from '../route-choice.ts'
import { country, data, environmentQuery, idQuery, nullable, object, oneOf } from '../schemas.ts'

const ranges = { '7d': 7, '30d': 30, '90d': 90 } as const
const rangeNames = ['7d', '30d', '90d'] as const

/** Query parameter of the days to count. */
const rangeQuery = Type.Optional({
  ...oneOf(rangeNames),
  documentedAs: {
    type: 'string',
    enum: rangeNames,
    default: '30d',
    description: 'UTC days up to and including today.',
  },
})

const counts = {
  key: nullable(
    Type.String({
      description:
        'Id of the application, ISO code of the country, channel, or name of the provider; null for requests without one.',
    }),
  ),
  name: nullable(
    Type.String({
      description:
        'Name of the application, country, channel or provider; null if it has none, as a deleted application.',
    }),
  ),
  sent: Type.Integer({ description: 'Messages that a provider accepted, or that went to the inbox.' }),
  delivered: Type.Integer({ description: 'Messages whose delivery the provider confirmed.' }),
  undelivered: Type.Integer({ description: 'Messages that did not arrive, or that no provider accepted.' }),
  verified: Type.Integer({ description: 'Requests that were verified.' }),
  failed: Type.Integer({ description: 'Requests that failed or expired.' }),
  conversion: Type.Integer({
    description: 'Percentage of sent that was verified, rounded; 0 if nothing was sent.',
  }),
  blocked: Type.Integer({ description: "Messages that a provider's fraud filter blocked." }),
  medianSeconds: nullable(
    Type.Integer({
      description:
        'Seconds from the last send until the code was entered, for half of the verified requests; 120 means 120 or more, null that there are none. Estimated from counts.',
    }),
  ),
  currency: nullable(
    Type.String({ description: 'ISO 4217 code of the costs; null if the operator has set no currency.' }),
  ),
  cost: nullable(
    Type.String({
      description: 'Price of the messages sent, and of those with codes of other systems, as decimal number.',
    }),
  ),
  estimatedCost: nullable(
    Type.String({ description: 'Part of the cost that is estimated: no provider has named the price.' }),
  ),
  costPerVerified: nullable(
    Type.String({
      description:
        '`cost` without `relayedCost`, divided by `verified`; null if nothing was verified, or no message has a known price.',
    }),
  ),
  unpriced: nullable(Type.Integer({ description: 'Messages whose price is unknown.' })),
  relayed: Type.Integer({
    description:
      'Messages with codes of other systems (`POST /v1/otp/deliver`). They are in no other count, as otpd does not know whether their codes were entered.',
  }),
  relayedCost: nullable(Type.String({ description: 'Part of the cost that is theirs.' })),
}

const breakdownItem = object(counts, 'BreakdownItem')

const costItem = object(
  {
    ...counts,
    key: nullable(Type.String({ description: 'ISO code of the country; null if it is unknown.' })),
    name: nullable(Type.String({ description: 'Name of the country.' })),
    provider: Type.String({ description: 'Name of the provider.' }),
    saved: nullable(
      Type.String({
        description:
          'Estimate of what the strategy of the route saved with this provider: its verified codes at the cost per verified code of the first provider of the route, less `cost`. Negative if it cost more; null without a strategy, or if the first provider has fewer than 20 verified codes here.',
      }),
    ),
  },
  'CostItem',
)

/** Routes for totals, daily counts and the breakdown. */
export function analyticsRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  applications: Pick<ApplicationService, 'requireFilter'>
  analytics: AnalyticsService
  costs: CostService
}) {
  const { analytics } = services
  const detail = { tags: ['Analytics'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/analytics' })
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/summary',
      async ({ developer, query }) => ({ data: await analytics.summary(developer, query.environment) }),
      {
        query: object({ environment: environmentQuery }),
        response: {
          200: data(
            object(
              {
                applications: Type.Integer(),
                otpRequests: Type.Integer(),
                otpVerified: Type.Integer(),
                successRate: Type.Integer({
                  description: 'Percentage of otpRequests that were verified, rounded; 0 if there are none.',
                }),
                activeUsers: Type.Integer({
                  description: 'Phone identities verified in the last 30 UTC days, including today.',
                }),
              },
              'AnalyticsSummary',
            ),
          ),
        },
        detail: {
          ...detail,
          operationId: 'getSummary',
          summary: 'Get the totals',
          description:
            'Totals of all your applications since the beginning; deleted applications and requests past their retention stay counted.',
        },
      },
    )
    .get(
      '/timeseries',
      async ({ developer, query }) => {
        const { range = '30d', ...filter } = query
        await services.applications.requireFilter(developer, filter.appId)
        const days = await analytics.timeSeries(developer, ranges[range], filter)
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
          range: rangeQuery,
          environment: environmentQuery,
          appId: idQuery(
            'Only this application. Its messages count as sent once a provider accepted them, or they are in the inbox.',
          ),
        }),
        response: {
          200: data(
            Type.Array(
              object(
                {
                  date: Type.String({ description: 'UTC day, such as 2026-11-20.' }),
                  sent: Type.Integer(),
                  verified: Type.Integer(),
                  failed: Type.Integer(),
                },
                'DailyCounts',
              ),
            ),
          ),
        },
        detail: {
          ...detail,
          operationId: 'getTimeSeries',
          summary: 'Get daily counts, oldest first',
          description:
            'One item for each UTC day of the range, days without traffic included, the oldest first and today last.',
        },
      },
    )
    .get(
      '/breakdown',
      async ({ developer, query }) => {
        const { by, range = '30d', country: code, ...filter } = query
        const items = await analytics.breakdown(developer, by, {
          ...filter,
          country: code === undefined ? code : normalizeCountry(code),
          days: ranges[range],
        })
        return { data: items.map(presentItem) }
      },
      {
        query: object({
          by: { ...oneOf(breakdownDimensions), description: 'What to list the counts by.' },
          range: rangeQuery,
          environment: environmentQuery,
          country: { ...country, description: 'Only this country, as ISO code.' },
          channel: Type.Optional({ ...oneOf(requestChannels), description: 'Only this channel.' }),
          provider: Type.Optional(
            Type.String({ minLength: 1, maxLength: 32, description: 'Only this provider.' }),
          ),
        }),
        response: { 200: data(Type.Array(breakdownItem)) },
        detail: {
          ...detail,
          operationId: 'getBreakdown',
          summary: 'Get counts by application, country, channel or provider',
          description:
            'The 200 with the most messages, most first. Counted per UTC day and kept for 400 days. Requests of test applications have no channel and no provider; a request has no provider until one accepts its message.',
        },
      },
    )
    .get(
      '/costs',
      async ({ developer, query: { range = '30d', environment } }) => {
        const items = await services.costs.list(developer, { days: ranges[range], environment })
        return {
          data: items.map((item) => ({
            ...presentItem(item),
            provider: item.provider,
            saved: presentPrice(item.saved),
          })),
        }
      },
      {
        query: object({ range: rangeQuery, environment: environmentQuery }),
        response: { 200: data(Type.Array(costItem)) },
        detail: {
          ...detail,
          operationId: 'getCosts',
          summary: 'Get the costs by country and provider',
          description:
            'Counts and costs of the messages that each provider had for each country, the dearest first, with an estimate of what the strategies of routes saved. Counted per UTC day and kept for 400 days.',
        },
      },
    )
}

const presentItem = (item: BreakdownItem): Static<typeof breakdownItem> => ({
  key: item.key,
  name: item.name,
  sent: item.sent,
  delivered: item.delivered,
  undelivered: item.undelivered,
  verified: item.verified,
  failed: item.failed,
  conversion: item.conversion,
  blocked: item.blocked,
  medianSeconds: item.medianSeconds,
  currency: item.costs?.currency ?? null,
  cost: presentPrice(item.costs?.cost),
  estimatedCost: presentPrice(item.costs?.estimatedCost),
  costPerVerified: presentPrice(item.costs?.costPerVerified),
  unpriced: item.costs && Math.max(0, item.costs.unpriced),
  relayed: item.relayed,
  relayedCost: presentPrice(item.costs?.relayedCost),
})
