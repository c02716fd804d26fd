import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ListRuleService } from '../../domain/guard/list-rules.ts'
import { ruleEffects, ruleTargets, type ListRule } from '../../domain/model/list-rule.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import {
  data,
  dateTime,
  deleted,
  idParams,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
  visibleText,
} from '../schemas.ts'

const effect = { ...oneOf(ruleEffects), description: 'Whether messages pass or are refused.' }
const target = { ...oneOf(ruleTargets), description: 'What the value names.' }
const valueText =
  'Phone in E.164 format, `+` and the first digits of phones, ISO code of a country (`001`: none), or IP address or CIDR of end users.'

const guardRule = object(
  {
    id: Type.String(),
    effect,
    target,
    value: Type.String({ description: valueText }),
    appId: nullable(Type.String()),
    createdAt: timestamp,
    expiresAt: nullable(timestamp),
  },
  'GuardListRule',
)

const newGuardRule = object({
  effect,
  target: Type.Optional({
    ...target,
    description:
      'What the value names. If omitted, the value tells: `+1415*` is always a prefix, and so is `+4915123`: no phone has this number, and longer ones begin with it.',
  }),
  value: { ...visibleText(50, 'Expected 1 to 50 characters'), description: valueText },
  country: Type.Optional(
    Type.String({
      format: 'country',
      errorText: 'Expected the two-letter code of a country, such as GB',
      description:
        'Country of a phone that is written without its country code: ISO 3166-1 alpha-2. The value then names a phone; another `target` is refused.',
    }),
  ),
  appId: Type.Optional({
    ...nullable(Type.String()),
    description: 'Application whose messages it concerns. Null or absent: all of yours.',
  }),
  expiresAt: Type.Optional({
    ...nullable(dateTime),
    description: 'At most ten years away. Null or absent: never.',
  }),
})

const present = ({ id, effect, target, value, appId, createdAt, expiresAt }: ListRule) => ({
  id,
  effect,
  target,
  value,
  appId,
  createdAt: formatTime(createdAt),
  expiresAt: formatTimeOrNull(expiresAt),
})

/** Routes that manage the rules with which a developer allows and denies destinations and networks. */
export function guardRuleRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  listRules: ListRuleService
}) {
  const { listRules } = services
  const detail = { tags: ['Delivery'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/guard/rules' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) =>
        services.paginate({ developer, path, query }, (page) => listRules.list(developer, page), present),
      {
        query: object(pageQuery),
        response: { 200: page(guardRule) },
        detail: {
          ...detail,
          operationId: 'listGuardRules',
          summary: 'List guard rules, newest first',
          description: 'Lists the rules with which you allow and deny destinations and networks.',
        },
      },
    )
    .post(
      '/',
      async ({ developer, body, set }) => {
        const { expiresAt } = body
        const input = { ...body, expiresAt: typeof expiresAt === 'string' ? Date.parse(expiresAt) : null }
        set.status = 201
        return { data: present(await listRules.create(developer, input)) }
      },
      {
        body: newGuardRule,
        response: { 201: data(guardRule) },
        detail: {
          ...detail,
          operationId: 'createGuardRule',
          summary: 'Allow or deny a destination or network',
          description:
            'Creates a rule, and replaces one for the same value and application. It is in force at once, on all nodes. Of the rules for a destination the most specific decides: the phone, then the longest prefix, then the country; of those for a network the narrowest. If the two disagree, deny beats allow. At most 1,000 rules.',
        },
      },
    )
    .delete(
      '/:id',
      async ({ developer, params }) => {
        await listRules.delete(developer, params.id)
        return { data: { id: params.id, deleted: true } }
      },
      {
        params: idParams,
        response: { 200: deleted },
        detail: {
          ...detail,
          operationId: 'deleteGuardRule',
          summary: 'Delete a guard rule',
          description: 'Deletes a rule. Messages are judged without it at once.',
        },
      },
    )
}
