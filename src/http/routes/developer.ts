import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { DeveloperService, Profile } from '../../domain/accounts/developers.ts'
import { changesBody } from '../field-schemas.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime } from '../pagination.ts'
import { data, name, nullable, object, timestamp, visibleText } from '../schemas.ts'

const profile = object(
  {
    id: Type.String(),
    uid: Type.String({ description: 'Subject (`sub`) of the developer at the identity provider.' }),
    email: nullable(Type.String()),
    name: nullable(Type.String()),
    company: nullable(Type.String()),
    plan: Type.String(),
    virtualPhoneNumber: Type.String(),
    limits: object(
      {
        projects: Type.Integer(),
        applications: Type.Integer(),
        sendPerMinute: Type.Integer({ description: 'Limit per application; 0 is unlimited.' }),
        verifyPerMinute: Type.Integer({ description: 'Limit per application; 0 is unlimited.' }),
        consolePerMinute: Type.Integer({
          description: 'Limit of calls with a bearer token, per developer; 0 is unlimited.',
        }),
        lookupsPerMinute: Type.Integer({
          description: 'Limit of look-ups of users and histories, per application; 0 is unlimited.',
        }),
      },
      'PlanLimits',
    ),
    createdAt: timestamp,
    updatedAt: timestamp,
  },
  'DeveloperProfile',
)

const present = ({ limits, ...developer }: Profile) => ({
  id: developer.id,
  uid: developer.subject ?? developer.id,
  email: developer.email,
  name: developer.name,
  company: developer.company,
  plan: developer.plan,
  virtualPhoneNumber: developer.virtualPhone,
  limits: {
    projects: limits.projects,
    applications: limits.applications,
    sendPerMinute: limits.sendPerMinute,
    verifyPerMinute: limits.verifyPerMinute,
    consolePerMinute: limits.consolePerMinute,
    lookupsPerMinute: limits.lookupsPerMinute,
  },
  createdAt: formatTime(developer.createdAt),
  updatedAt: formatTime(developer.updatedAt),
})

const company = nullable(
  visibleText(120, 'Expected 1 to 120 characters, not only spaces, without line breaks, or null'),
)

/** Routes for the caller's own profile. */
export function developerRoutes(services: {
  authenticateBeforeTotp: AuthenticateDeveloper
  developers: DeveloperService
}) {
  const { developers } = services
  const detail = { tags: ['Developer profile'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/developer' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateBeforeTotp))
    .get('/me', ({ developer }) => ({ data: present(developers.toProfile(developer)) }), {
      response: { 200: data(profile) },
      detail: {
        ...detail,
        operationId: 'getProfile',
        summary: 'Get your developer profile',
        description: 'Returns your profile, your plan and its limits.',
      },
    })
    .patch(
      '/me',
      async ({ developer, body }) => ({ data: present(await developers.update(developer, body)) }),
      {
        body: changesBody({ name, company }),
        response: { 200: data(profile) },
        detail: {
          ...detail,
          operationId: 'updateProfile',
          summary: 'Change your name or company',
          description:
            'Changes the fields that you send. The plan and the virtual phone number cannot be changed here.',
        },
      },
    )
}
