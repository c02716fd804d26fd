import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { PageService } from '../../domain/apps/pages.ts'
import { returnOriginsMax } from '../../domain/model/application-page.ts'
import { logoCharactersMax } from '../../shared/logo.ts'
import { changesBody } from '../field-schemas.ts'
import { jsonBody } from '../json-body.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { data, idParams, name, nullable, object } from '../schemas.ts'

const fields = {
  enabled: Type.Boolean({
    errorText: 'Expected true or false',
    description: 'Whether the page can be used. Off by default.',
  }),
  name: nullable({ ...name, description: 'Name in the header; null: the name of the application.' }),
  logo: nullable(
    Type.String({
      maxLength: logoCharactersMax,
      errorText: 'Expected a data URL of at most 32 KiB',
      description: 'PNG, JPEG, GIF or WebP image as a data URL of at most 32 KiB; null: none.',
    }),
  ),
  colour: nullable(
    Type.String({
      pattern: '^#[0-9A-Fa-f]{6}$',
      errorText: 'Expected a colour such as #0055cc',
      description: 'Colour of the buttons, as #rrggbb; null: black on white, white on black.',
    }),
  ),
  returnOrigins: Type.Array(
    Type.String({
      minLength: 1,
      maxLength: 300,
      errorText: 'Expected an origin such as https://shop.example',
    }),
    {
      maxItems: returnOriginsMax,
      errorText: `Expected at most ${returnOriginsMax} origins`,
      description:
        'Origins of the URLs to which the page may return, such as https://shop.example: scheme, host and port must be equal.',
    },
  ),
}

const applicationPage = object(fields, 'ReadyPage')

/** Routes of the ready page of an application. */
export function applicationPageRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  pages: PageService
}) {
  const { pages } = services
  const detail = { tags: ['Applications'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/applications' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/:id/page',
      async ({ developer, params }) => ({ data: await present(pages.get(developer, params.id)) }),
      {
        params: idParams,
        response: { 200: data(applicationPage) },
        detail: {
          ...detail,
          operationId: 'getApplicationPage',
          summary: 'Get the ready page of an application',
          description: 'Returns how the page looks, where it may return to, and whether it is on.',
        },
      },
    )
    .patch(
      '/:id/page',
      async ({ developer, params, body }) => ({
        data: await present(pages.update(developer, params.id, body)),
      }),
      {
        params: idParams,
        body: changesBody(fields),
        response: { 200: data(applicationPage) },
        detail: {
          ...detail,
          operationId: 'updateApplicationPage',
          summary: 'Set up the ready page of an application',
          description:
            'Changes the fields that you send and leaves all others as they are. A page that is turned off refuses its open links at once.',
        },
      },
    )
}

const present = async (found: ReturnType<PageService['get']>) => {
  const page = await found
  return { ...page, returnOrigins: [...page.returnOrigins] }
}
