import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { choiceReasons, estimateScopes, strategies } from '../../domain/model/route-choice.ts'
import type { ProviderEstimate, RouteStatus, RouteStatusService } from '../../domain/routing/route-status.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { presentPrice, toPercentage, weighedProvider } from '../route-choice.ts'
import { data, messageChannel, nullable, object, oneOf } from '../schemas.ts'

const routeProvider = object(
  {
    ...weighedProvider,
    costPerVerified: nullable(
      Type.String({
        description: 'Price divided by the conversion, a decimal number; null without a price.',
      }),
    ),
    basis: {
      ...oneOf(estimateScopes),
      description:
        'The largest group of codes that the conversion is based on: the codes of the country, those of its region, all of the provider, those of other providers, or none.',
    },
    circuit: { ...oneOf(['closed', 'open']), description: '`open` while the provider fails at this node.' },
    silent: Type.Boolean({
      description: 'Whether so many of its last codes are unverified that messages probably do not arrive.',
    }),
  },
  'RouteProvider',
)

const route = object(
  {
    channel: { ...messageChannel, description: 'Channel of the route.' },
    country: Type.String({ description: 'ISO code of the country.' }),
    strategy: { ...oneOf(strategies), description: 'Strategy of the route.' },
    reason: nullable({
      ...oneOf(choiceReasons),
      description: 'Why the first provider comes first; null for the strategy `order`.',
    }),
    providers: Type.Array(routeProvider, { description: 'In the order in which a message would try them.' }),
    firstProvider: Type.String({ description: 'First provider of the route in the configuration.' }),
    currency: nullable(Type.String({ description: 'ISO 4217 code of all prices; null if there are none.' })),
    sent: Type.Integer({ description: 'Your messages of the last 30 days.' }),
    saved: nullable(
      Type.String({
        description:
          'Estimate of what the strategy saved on them: their verified codes at the cost per verified code of `firstProvider`, less their cost. Negative if they cost more; null for the strategy `order`, or if `firstProvider` has fewer than 20 verified codes.',
      }),
    ),
  },
  'Route',
)

const presentRoute = (row: RouteStatus, currency: string | undefined) => ({
  channel: row.channel,
  country: row.country,
  strategy: row.strategy,
  reason: row.reason,
  providers: row.providers.map(presentProvider),
  firstProvider: row.firstProvider,
  currency: currency ?? null,
  sent: row.sent,
  saved: presentPrice(row.saved),
})

const presentProvider = ({ provider, price, conversion, samples, ...row }: ProviderEstimate) => ({
  provider,
  price: presentPrice(price),
  conversion: toPercentage(conversion),
  samples: Math.round(samples),
  costPerVerified: presentPrice(price === null ? null : Math.round(price / conversion)),
  basis: row.scope,
  circuit: row.isOpen ? ('open' as const) : ('closed' as const),
  silent: row.isSilent,
})

/** Route that shows which providers messages would take. */
export function routeStatusRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  routeStatus: RouteStatusService
}) {
  return new Elysia({ prefix: '/v1' }).use(requireDeveloper(services.authenticateDeveloper)).get(
    '/routes',
    async ({ developer }) => {
      const rows = await services.routeStatus.list(developer.id)
      return { data: rows.map((row) => presentRoute(row, services.routeStatus.currency())) }
    },
    {
      query: object({}),
      response: { 200: data(Type.Array(route)) },
      detail: {
        tags: ['Delivery'],
        security: [{ console: [] }],
        operationId: 'listRoutes',
        summary: 'List the providers that messages would take',
        description:
          'Lists, by channel and country, the providers in the order in which a message would try them now, with the price, the expected conversion and the number of codes that this is based on. Countries appear once codes there were verified or expired. Routes of prefixes longer than a country code, or of some applications only, are left out.',
      },
    },
  )
}
