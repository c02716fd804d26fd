import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { TemplateService } from '../../domain/apps/templates.ts'
import {
  templateTextsMax,
  variableNames,
  variablesOf,
  type MessageTemplate,
  type TextSize,
} from '../../domain/model/message-template.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime } from '../pagination.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { data, idParams, object, oneOf, timestamp } from '../schemas.ts'

/** Texts by language. */
const texts = (description: string) =>
  Type.Record(
    // `Record` itself takes `.*` for any key, which leaves out those with a line break.
    Type.String({ pattern: String.raw`^[\s\S]*$` }),
    Type.String({ errorText: 'Expected a text with {code}, such as {code} is your {app} code.' }),
    {
      description,
      errorText: `Expected 1 to ${templateTextsMax} texts by language, such as {"en": "…"}`,
      examples: [{ en: '{code} is your {app} login code. It is valid for {ttl} minutes.' }],
    },
  )

const template = object(
  {
    name: Type.String({ description: 'Name of the template, unique in its application.' }),
    texts: texts('Texts by language (BCP 47), in the order in which they were written.'),
    variables: Type.Array(oneOf(variableNames), {
      description:
        'Variables that its messages show and a send must give; empty for a template that is not of a payment.',
    }),
    sizes: Type.Array(
      object({
        locale: Type.String({ description: 'Language of the text.' }),
        encoding: Type.String({
          description: '`GSM-7`, or `UCS-2` if a character is outside of its alphabet.',
        }),
        units: Type.Integer({ description: 'Length in septets (GSM-7) or 16-bit units (UCS-2).' }),
        unitsMax: Type.Integer({ description: 'Units that fit into `parts`.' }),
        parts: Type.Integer({ description: 'SMS parts. Each is charged as one message.' }),
        foreign: Type.Array(Type.String(), {
          description: 'Characters of the text that are outside of the GSM alphabet.',
        }),
      }),
      {
        description:
          'Size of each text as an SMS, with an application name of 20 characters and the longest variables. Variables outside of the GSM alphabet make a message longer.',
      },
    ),
    createdAt: timestamp,
    updatedAt: timestamp,
  },
  'Template',
)

const nameParams = object({
  id: Type.String(),
  name: Type.String({
    description: 'Name of the template: 1 to 32 lower-case letters, digits, hyphens and underscores.',
  }),
})

const presentSize = (locale: string, { encoding, units, unitsMax, parts, foreign }: TextSize) => ({
  locale,
  encoding,
  units,
  unitsMax,
  parts,
  foreign: [...foreign],
})

/** Routes of the message templates of an application. */
export function applicationTemplateRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  templates: TemplateService
}) {
  const { templates } = services
  const detail = { tags: ['Applications'], security: [{ console: [] }] }

  const present = ({ name, texts: rows, createdAt, updatedAt }: MessageTemplate) => ({
    name,
    texts: Object.fromEntries(rows.map(({ locale, text }) => [locale, text])),
    variables: variablesOf(rows[0]?.text ?? ''),
    sizes: rows.map(({ locale, text }) => presentSize(locale, templates.measure(locale, text))),
    createdAt: formatTime(createdAt),
    updatedAt: formatTime(updatedAt),
  })

  return new Elysia({ prefix: '/v1/applications' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/:id/templates',
      async ({ developer, params }) => ({ data: (await templates.list(developer, params.id)).map(present) }),
      {
        params: idParams,
        query: object({}),
        response: { 200: data(Type.Array(template)) },
        detail: {
          ...detail,
          operationId: 'listTemplates',
          summary: 'List the templates of an application',
          description:
            'Lists the message texts that you have written for the purposes of an application, by name.',
        },
      },
    )
    .get(
      '/:id/templates/:name',
      async ({ developer, params }) => ({
        data: present(await templates.get(developer, params.id, params.name)),
      }),
      {
        params: nameParams,
        response: { 200: data(template) },
        detail: {
          ...detail,
          operationId: 'getTemplate',
          summary: 'Get a template',
          description: 'Returns the texts of a template, with the size of each as an SMS.',
        },
      },
    )
    .put(
      '/:id/templates/:name',
      async ({ developer, params, body }) => ({
        data: present(await templates.put(developer, params.id, params.name, body.texts)),
      }),
      {
        params: nameParams,
        body: object({
          texts: texts(
            'Texts by language (BCP 47), each of up to 480 characters. Placeholders: `{code}` (required), `{app}`, `{ttl}` (minutes until the code expires; `{minutes}` is the same), and for a payment both `{amount}` and `{payee}`. A message is in the language that a send, the application or the country of the phone asks for, else in English, else in the first of the texts.',
          ),
        }),
        response: { 200: data(template) },
        detail: {
          ...detail,
          operationId: 'putTemplate',
          summary: 'Create or replace a template',
          description:
            'Writes the message texts of a purpose, such as `login` or `payment`, and replaces all that were there. A send names the template as `template`. Codes that were sent keep their text, also in a resend. Texts have no links, and no five digits in a row. An application has at most 20 templates.',
        },
      },
    )
    .delete(
      '/:id/templates/:name',
      async ({ developer, params }) => {
        await templates.delete(developer, params.id, params.name)
        return { data: { name: params.name, deleted: true } }
      },
      {
        params: nameParams,
        response: {
          200: data(object({ name: Type.String(), deleted: Type.Boolean() }, 'TemplateDeletion')),
        },
        detail: {
          ...detail,
          operationId: 'deleteTemplate',
          summary: 'Delete a template',
          description:
            'Deletes a template: sends that name it are refused. Codes that were sent keep their text.',
        },
      },
    )
}
