import { Elysia } from 'elysia'
import type { AppAuth, CallingApplication } from '../domain/apps/authentication.ts'
import type { Developer } from '../domain/accounts/developers.ts'
import type { AuthenticateDeveloper } from './require-developer.ts'

type Headers = Record<string, string | undefined>

const readAppCredentials = (headers: Headers) => ({
  clientId: headers['x-client-id'],
  clientSecret: headers['x-client-secret'],
  apiKey: headers['x-api-key'],
})

/**
 * Gives the routes beside it `application`, the one whose three headers came with the call. A `derive`, so that a call
 * that is not authenticated gets 401 whatever else is wrong with it.
 */
export const requireApplication = (auth: AppAuth) =>
  new Elysia({ name: 'app-auth' }).derive({ as: 'scoped' }, async ({ headers }) => ({
    application: await auth.authenticate(readAppCredentials(headers)),
  }))

/** Who calls a route that is open to developers and to applications. */
export type Caller =
  { kind: 'developer'; developer: Developer } | { kind: 'application'; application: CallingApplication }

/**
 * Gives the routes beside it `caller`. Where an `Authorization` header is present it alone counts; without it, the
 * headers of an application, if there are any.
 *
 * @param accepts whether an application presents all three headers or its API key alone
 */
export const requireEither = (
  services: { authenticateDeveloper: AuthenticateDeveloper; appAuth: AppAuth },
  accepts: 'full_credentials' | 'api_key_only',
) =>
  new Elysia({ name: `console-or-app-auth (${accepts})` }).derive(
    { as: 'scoped' },
    async ({ headers, request, server, set }): Promise<{ caller: Caller }> => {
      const credentials = readAppCredentials(headers)
      const isFromApplication =
        accepts === 'api_key_only'
          ? credentials.apiKey !== undefined
          : Object.values(credentials).some((value) => value !== undefined)
      if (headers['authorization'] !== undefined || !isFromApplication) {
        const developer = await services.authenticateDeveloper(headers['authorization'], {
          request,
          server,
          set,
        })
        return { caller: { kind: 'developer', developer } }
      }
      const application =
        accepts === 'api_key_only'
          ? await services.appAuth.authenticateKey(credentials.apiKey)
          : await services.appAuth.authenticate(credentials)
      return { caller: { kind: 'application', application } }
    },
  )
