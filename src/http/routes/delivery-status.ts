import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { DeveloperGuardStatus, GuardStatusService } from '../../domain/guard/status.ts'
import type { ProviderStatus, ProviderStatusService } from '../../domain/otp/provider-status.ts'
import { guardRules } from '../../domain/model/guard.ts'
import { formatTime } from '../pagination.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { data, messageChannel, nullable, object, oneOf, timestamp } from '../schemas.ts'

const provider = object(
  {
    name: Type.String({ description: 'Name in the configuration, as requests show it in `provider`.' }),
    kind: Type.String({ description: 'Kind in the configuration, such as `twilio-sms`.' }),
    title: Type.String({ description: 'Name of the service.' }),
    channels: Type.Array(messageChannel, { description: 'Channels that it sends through.' }),
    circuit: {
      ...oneOf(['closed', 'open']),
      description:
        '`open` while the provider fails, until a message passes: messages take the next one of their route.',
    },
    failure: nullable(
      Type.String({ description: 'Class of the failure; null while the circuit is closed.' }),
    ),
    retryAt: nullable({
      ...timestamp,
      description:
        'When it is tried again: with the next message, if it is in the past. Null while the circuit is closed.',
    }),
    recentRefusals: Type.Array(
      object({
        requestId: Type.String({ description: 'The OTP request, or the id of a relayed message.' }),
        at: timestamp,
        channel: messageChannel,
        outcome: {
          ...oneOf(['refused', 'uncertain']),
          description: '`refused`: the provider did not take the message. `uncertain`: it may have.',
        },
        error: nullable(Type.String({ description: 'Class of the failure.' })),
        providerReply: nullable(
          Type.String({ description: 'What the provider said, as in `delivery.attempted` of the log.' }),
        ),
      }),
      {
        description:
          'Your newest messages, ten at most, that the answering node could not hand over to it since it started, newest first.',
      },
    ),
  },
  'Provider',
)

const presentProvider = ({
  name,
  kind,
  title,
  channels: ownChannels,
  openCircuit,
  recentRefusals,
}: ProviderStatus) => ({
  name,
  kind,
  title,
  channels: [...ownChannels],
  circuit: openCircuit === null ? ('closed' as const) : ('open' as const),
  failure: openCircuit?.failure ?? null,
  retryAt: openCircuit === null ? null : formatTime(openCircuit.openUntil),
  recentRefusals: recentRefusals.map(({ requestId, at, channel, outcome, error, reply }) => ({
    requestId,
    at: formatTime(at),
    channel,
    outcome: outcome === 'uncertain' ? ('uncertain' as const) : ('refused' as const),
    error,
    providerReply: reply,
  })),
})

const guard = object(
  {
    mode: {
      ...oneOf(['off', 'monitor', 'enforce']),
      description: '`monitor` sends every message and logs which it would block; `enforce` blocks them.',
    },
    challenge: nullable(oneOf(['turnstile', 'hcaptcha', 'altcha'])),
    rules: Type.Array(
      object({
        rule: { ...oneOf(guardRules), description: 'Name of the rule, as log entries show it.' },
        limit: nullable(Type.String({ description: 'Limit of the rule in words; null if it is off.' })),
      }),
    ),
    allowances: Type.Array(
      object({
        country: Type.String({ description: 'ISO code of the country.' }),
        verifiedPhones: Type.Integer({
          description: 'Distinct phones that your applications verified there in 14 days.',
        }),
        allowance: Type.Integer({
          description: 'Messages that may leave unverified in 24 hours; up to 100 of them from the pool.',
        }),
        unverified: Type.Integer({ description: 'Unverified messages of the last 24 hours.' }),
        fromPool: Type.Integer({ description: 'Those of them that the pool paid for.' }),
      }),
      { description: 'Countries that you sent to in the last weeks, the most used first.' },
    ),
    relays: Type.Array(
      object({
        country: Type.String({ description: 'ISO code of the country.' }),
        allowance: Type.Integer({
          description: 'Codes of other systems that it takes in 24 hours. Beyond, its allowance above pays.',
        }),
        unverified: Type.Integer({
          description: 'How many left, without those that were reported as verified.',
        }),
      }),
      { description: 'Countries that got codes of other systems in the last weeks, the most used first.' },
    ),
    pool: object({
      allowance: Type.Integer({
        description: 'Messages that all countries together may send beyond their own allowances in 24 hours.',
      }),
      unverified: Type.Integer({ description: 'How many of them are spent.' }),
    }),
    alerts: Type.Array(
      object({
        country: Type.String({
          description:
            'ISO code of the country; `pool`: what all countries together send beyond their own allowances; or `relays`: all codes of other systems.',
        }),
        until: { ...timestamp, description: 'When the alert ends, unless its cause lasts.' },
      }),
      { description: 'Countries with more unverified messages than usual.' },
    ),
  },
  'Guard',
)

const presentGuard = ({
  mode,
  challenge,
  rules,
  alerts,
  allowances,
  relays,
  pool,
}: DeveloperGuardStatus) => ({
  mode,
  challenge,
  rules,
  allowances: allowances.map(({ country, verifiedPhones, allowance, unverified, fromPool }) => ({
    country,
    verifiedPhones,
    allowance,
    unverified,
    fromPool,
  })),
  relays: relays.map(({ country, allowance, unverified }) => ({ country, allowance, unverified })),
  pool: { allowance: pool.allowance, unverified: pool.unverified },
  alerts: alerts.map(({ country, until }) => ({ country, until })),
})

/** Routes that show how messages are delivered: the operator's providers, and the guard against SMS pumping. */
export function deliveryStatusRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  guardStatus: GuardStatusService
  providerStatus: ProviderStatusService
}) {
  const detail = { tags: ['Delivery'], security: [{ console: [] }] }
  return new Elysia({ prefix: '/v1' })
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/providers',
      async ({ developer }) => ({
        data: (await services.providerStatus.list(developer.id)).map(presentProvider),
      }),
      {
        query: object({}),
        response: { 200: data(Type.Array(provider)) },
        detail: {
          ...detail,
          operationId: 'listProviders',
          summary: 'List the providers, their circuits and recent refusals',
          description:
            'Lists the providers that the operator configured, for the channels of your messages. Settings and credentials are never part of it.',
        },
      },
    )
    .get(
      '/guard',
      async ({ developer }) => ({ data: presentGuard(await services.guardStatus.read(developer.id)) }),
      {
        query: object({}),
        response: { 200: data(guard) },
        detail: {
          ...detail,
          operationId: 'getGuard',
          summary: 'Get the allowances and alerts of the guard',
          description:
            'Returns how the guard against SMS pumping judges your messages, what each country may send unverified and has sent in the last 24 hours, and the countries with more unverified messages than usual.',
        },
      },
    )
}
