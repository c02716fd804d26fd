import { Elysia } from 'elysia'
import type { Developer } from '../domain/developers.ts'

/** Tells whose token an `Authorization` header carries. @throws UNAUTHENTICATED; FORBIDDEN; UNAVAILABLE */
export type ConsoleAuth = (authorization: string | undefined) => Promise<Developer>

/**
 * Gives the routes beside it `developer`, before their input is looked at: a `derive` runs ahead of validation, a
 * macro's `resolve` behind it.
 */
export const consoleAuth = (authenticate: ConsoleAuth) =>
  new Elysia({ name: 'console-auth' }).derive({ as: 'scoped' }, async ({ headers }) => ({
    developer: await authenticate(headers['authorization']),
  }))
